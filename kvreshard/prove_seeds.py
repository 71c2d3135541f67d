# SPDX-License-Identifier: Apache-2.0
"""`kvreshard prove-seeds`: whether the proofs need luck."""

from __future__ import annotations

import os
import sys

import click
from rich.console import Console

from kvreshard.exit_codes import HOLDS, NOT_DECIDED
from kvreshard.extras import needs_prove


@click.command("prove-seeds", short_help="Prove with many solver seeds.")
@click.option("--count", default=32, show_default=True, type=click.IntRange(2), help="Seeds.")
@click.option("--no-cache", is_flag=True, help="Ask the solver everything again.")
@click.option("--jobs", type=click.IntRange(1), help="Solver processes; by default one per core.")
def prove_seeds(count: int, no_cache: bool, jobs: int | None) -> None:
    """Prove with many solver seeds, and report the spread of what each proof takes.

    Fails, as not decided, where one seed does not prove what others do.
    """
    proving = needs_prove("kvreshard.proofs.seeds")
    console = Console(soft_wrap=True, highlight=False)
    spreads = proving.prove_with_seeds(
        console, seeds=count, use_cache=not no_cache, jobs=jobs or os.cpu_count() or 1
    )
    flaky = not spreads or any(spread.flakes for spread in spreads)
    sys.exit(NOT_DECIDED if flaky else HOLDS)
