# SPDX-License-Identifier: Apache-2.0
"""What proving takes, per obligation: every question is put anew, nothing comes from the cache.

Seconds are solver time on this machine, added up over the queries of an obligation. `rlimit` is the
dearest query in z3's own resource units, which do not depend on the machine; the last column is its
share of the limit.
"""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

import click
from rich.console import Console
from rich.table import Table

from kvreshard.proofs.command import prove_all
from kvreshard.proofs.question import RLIMIT, ROAD_RLIMIT

if TYPE_CHECKING:
    from kvreshard.proofs.run import Verdict


@click.command()
@click.option("--filter", "wanted", default="", help="Only obligations whose name holds this text.")
@click.option("--jobs", type=click.IntRange(1), default=os.cpu_count() or 1, show_default=True)
def main(wanted: str, jobs: int) -> None:
    """Prove without the cache and print what each obligation takes, the dearest first."""
    console = Console(width=160, soft_wrap=True, highlight=False)
    started = time.perf_counter()
    run = prove_all(console, wanted=wanted, use_cache=False, jobs=jobs)
    elapsed = time.perf_counter() - started
    table = Table(box=None, pad_edge=False)
    for column in ("seconds", "queries", "rlimit", "of limit"):
        table.add_column(column, justify="right")
    table.add_column("obligation", no_wrap=True)
    for verdict in sorted(run.verdicts, key=lambda one: -one.seconds):
        table.add_row(*_row(verdict))
    console.print(table)
    spent = sum(verdict.seconds for verdict in run.verdicts)
    console.print(
        f"{elapsed:.0f} s on the clock with {jobs} processes, {spent:.0f} s of solver time"
    )
    raise SystemExit(run.exit_code)


def _row(verdict: Verdict) -> tuple[str, ...]:
    road = verdict.obligation.road
    limit = ROAD_RLIMIT if road is not None and road.fixed else RLIMIT
    return (
        f"{verdict.seconds:.2f}",
        str(verdict.queries),
        f"{verdict.largest_rlimit:,}",
        f"{verdict.largest_rlimit / limit:.1%}",
        verdict.obligation.name,
    )


if __name__ == "__main__":
    main()
