# SPDX-License-Identifier: Apache-2.0
"""The command line. Each command imports what it needs, so that one works without the others."""

from __future__ import annotations

import importlib
import json
import os
import sys
from pathlib import Path

import click
from rich.console import Console

from kvreshard.audit import audit
from kvreshard.cores import cores
from kvreshard.demo import demo
from kvreshard.diff import diff
from kvreshard.exit_codes import FAILED, HOLDS
from kvreshard.extras import needs_prove
from kvreshard.mutate import mutate
from kvreshard.plan import plan
from kvreshard.prove_cvc5 import prove_cvc5
from kvreshard.prove_seeds import prove_seeds
from kvreshard.refute import refute


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="kvreshard")
def main() -> None:
    """Prove, emit, check and run the plans that move a KV cache between TP groups.

    Exit codes: 0 it holds, 1 it does not, 2 wrong usage, 3 not decided.
    """


for command in (audit, cores, demo, diff, mutate, plan, prove_cvc5, prove_seeds, refute):
    main.add_command(command)


@main.command(short_help="Prove the specification.")
@click.option("--filter", "wanted", default="", help="Only obligations whose name holds this text.")
@click.option("--no-cache", is_flag=True, help="Ask the solver everything again.")
@click.option("--json", "as_json", is_flag=True, help="Print the ledger as JSON, nothing else.")
@click.option(
    "--smt2",
    type=click.Path(file_okay=False, path_type=Path),
    help="Write each obligation as SMT-LIB into this folder and prove nothing.",
)
@click.option("--jobs", type=click.IntRange(1), help="Solver processes; by default one per core.")
def prove(wanted: str, no_cache: bool, as_json: bool, smt2: Path | None, jobs: int | None) -> None:
    """Prove the specification and write proofs/ledger.json.

    A run with --filter writes no ledger.
    """
    if smt2 is not None and as_json:
        raise click.UsageError("--smt2 proves nothing, so it has no ledger to print with --json")
    proving = needs_prove("kvreshard.proofs.command")
    if smt2 is not None:
        count = proving.export(smt2, wanted)
        click.echo(f"{count} obligations written to {smt2}")
        sys.exit(HOLDS if count else FAILED)
    console = Console(stderr=as_json, soft_wrap=True, highlight=False)
    run = proving.prove_all(
        console, wanted=wanted, use_cache=not no_cache, jobs=jobs or os.cpu_count() or 1
    )
    if as_json:
        click.echo(json.dumps(run.ledger, indent=1))
    sys.exit(run.exit_code)


@main.command(short_help="Emit generated/ from the proved specification.")
def generate() -> None:
    """Emit generated/ from the specification. Refused where the ledger lacks a proof."""
    files = needs_prove("kvreshard.codegen.files")
    evidence = needs_prove("kvreshard.codegen.evidence")
    try:
        written = files.write_generated()
    except evidence.EmissionRefused as refused:
        raise click.ClickException(str(refused)) from refused
    for path in written:
        click.echo(f"written: {path.relative_to(files.generated_folder())}")


@main.command(short_help="Check generated/ as it lies.")
@click.option("--enumerate-to", default=16, show_default=True, type=click.IntRange(1))
def check(enumerate_to: int) -> None:
    """Check generated/ as it lies: translation, freshness, and every small case by running it."""
    checking = needs_prove("kvreshard.codegen.check")
    console = Console(soft_wrap=True, highlight=False)
    complaints = checking.check_generated(console, enumerate_to)
    for complaint in complaints:
        console.print(complaint, style="bold red")
    sys.exit(FAILED if complaints else HOLDS)


@main.command("verify-vendored", short_help="Say whether a copy is the emitted planner.")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
def verify_vendored(file: Path) -> None:
    """Say whether a copy of the planner module is the emitted text, and for which spec."""
    result = importlib.import_module("kvreshard.codegen.freshness").verify_vendored(file)
    click.echo(str(result))
    sys.exit(HOLDS if result.matches else FAILED)
