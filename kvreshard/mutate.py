# SPDX-License-Identifier: Apache-2.0
"""`kvreshard mutate`: break every formula in every way, and check that an invariant notices."""

from __future__ import annotations

import json
import os
import sys

import click
from rich.console import Console

from kvreshard.exit_codes import FAILED
from kvreshard.extras import needs_prove


@click.command(short_help="Break every formula; an invariant has to notice.")
@click.option("--filter", "wanted", default="", help="Only mutants whose name holds this text.")
@click.option("--jobs", type=click.IntRange(1), help="Solver processes; by default one per core.")
@click.option("--no-cache", is_flag=True, help="Ask the solver everything again.")
@click.option("--json", "as_json", is_flag=True, help="Print the matrix as JSON, nothing else.")
def mutate(wanted: str, jobs: int | None, no_cache: bool, as_json: bool) -> None:
    """Change every operator of every formula, and check that an invariant notices.

    Writes proofs/kill_matrix.json and docs/mutation.md; a run with --filter writes neither.
    """
    mutating = needs_prove("kvreshard.proofs.mutation.command")
    refuting = needs_prove("kvreshard.proofs.mutation.refute")
    console = Console(stderr=as_json, soft_wrap=True, highlight=False)
    try:
        run = mutating.mutate_all(
            console, wanted=wanted, jobs=jobs or os.cpu_count() or 1, use_cache=not no_cache
        )
    except mutating.NoMutantError as error:
        raise click.BadParameter(str(error), param_hint="'--filter'") from error
    except refuting.DoesNotReplayError as error:
        click.echo(f"the solver's model is none in plain Python: {error}", err=True)
        sys.exit(FAILED)
    if as_json:
        click.echo(json.dumps(run.matrix, indent=1))
    sys.exit(run.exit_code)
