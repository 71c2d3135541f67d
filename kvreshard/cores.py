# SPDX-License-Identifier: Apache-2.0
"""`kvreshard cores`: which hypotheses the proofs rest on."""

from __future__ import annotations

import os
import sys

import click

from kvreshard.exit_codes import HOLDS
from kvreshard.extras import NotDecidedError, needs_prove


@click.command(short_help="Find the hypotheses that no proof needs.")
@click.option("--jobs", type=click.IntRange(1), help="Solver processes; by default one per core.")
def cores(jobs: int | None) -> None:
    """Find the hypotheses that no proof needs, and write proofs/needed_hypotheses.json."""
    finding = needs_prove("kvreshard.proofs.cores")
    every = needs_prove("kvreshard.proofs.obligations").obligations()
    try:
        record = finding.find_needed(every, jobs=jobs or os.cpu_count() or 1)
    except finding.NoCoreError as error:
        raise NotDecidedError(str(error)) from error
    finding.write(record)
    rows = record["hypotheses"]
    unneeded = [row["name"] for row in rows if not row["needed_by"]]
    click.echo(
        f"{record['statements']} statements, {len(rows)} named hypotheses; "
        f"needed by no proof: {', '.join(unneeded) or 'none'}"
    )
    sys.exit(HOLDS)
