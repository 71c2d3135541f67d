# SPDX-License-Identifier: Apache-2.0
"""`kvreshard prove-cvc5`: what a second solver makes of the proofs."""

from __future__ import annotations

import os
import sys

import click
from rich.console import Console

from kvreshard.exit_codes import FAILED, HOLDS
from kvreshard.extras import NotDecidedError, needs_prove


@click.command("prove-cvc5", short_help="Put every obligation to cvc5 too.")
@click.option("--no-cache", is_flag=True, help="Ask the solvers everything again.")
@click.option("--jobs", type=click.IntRange(1), help="Solver processes; by default one per core.")
def prove_cvc5(no_cache: bool, jobs: int | None) -> None:
    """Put every obligation to cvc5 too, and write proofs/second_solver.json.

    Fails on a contradiction, and where less is confirmed than was before.
    """
    confirming = needs_prove("kvreshard.proofs.confirm")
    solver = needs_prove("kvreshard.proofs.cvc5_solver")
    console = Console(soft_wrap=True, highlight=False)
    try:
        complaints = confirming.confirm_all(
            console, use_cache=not no_cache, jobs=jobs or os.cpu_count() or 1
        )
    except solver.NoAnswerError as error:
        raise NotDecidedError(str(error)) from error
    for complaint in complaints:
        console.print(complaint, style="bold red")
    sys.exit(FAILED if complaints else HOLDS)
