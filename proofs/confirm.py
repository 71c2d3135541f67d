# SPDX-License-Identifier: Apache-2.0
"""A whole run of the second solver, as the command line makes it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from kvreshard.proofs import ledger as ledgers
from kvreshard.proofs import second_record
from kvreshard.proofs.cache import Cache, default_directory
from kvreshard.proofs.obligations import obligations
from kvreshard.proofs.second_opinion import ask_everything

if TYPE_CHECKING:
    from rich.console import Console


def confirm_all(console: Console, *, use_cache: bool, jobs: int) -> list[str]:
    """Put everything to the second solver, write its record and the ledger's column.

    Returns:
        What of it is a failure, in words.

    Raises:
        NoAnswerError: the second solver failed. Nothing is written then.
    """
    cache = Cache(default_directory() if use_cache else None)
    with Progress(
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.description}"),
        console=console,
        transient=True,
    ) as bar:
        task = bar.add_task("starting", total=None)

        def advance(stage: str, done: int, total: int) -> None:
            bar.update(task, description=stage, completed=done, total=total)

        record = ask_everything(obligations(), jobs=jobs, cache=cache, progress=advance)
    second_record.write(record)
    ledger = json.loads(ledgers.LEDGER_PATH.read_text(encoding="utf-8"))
    ledgers.write(ledgers.with_opinions(ledger, second_record.opinions(record)))
    _tell(console, record)
    return second_record.complaints(record)


def _tell(console: Console, record: second_record.Record) -> None:
    solver = record["solver"]
    console.print(f"distinct statements, by {solver['name']} {solver['version']}", style="bold")
    for group in second_record.UNDECIDED_AT_MOST:
        results = second_record.counts(record, group)
        told = ", ".join(f"{count} {result}" for result, count in sorted(results.items()))
        console.print(f"  {group.replace('_', ' '):<12}{told}")
        for name in second_record.undecided(record, group):
            console.print(f"    undecided: {name}")
    restated = sum(row["form"] == "quotients as witnesses" for row in record["statements"])
    console.print(f"  {restated} of the confirmed ones with quotients as witnesses")
    console.print("uncut statements settled alone", style="bold")
    for name in ("z3", "cvc5"):
        settled, total = second_record.settled_alone(record, name)
        console.print(f"  {name:<12}{settled} of {total}")
