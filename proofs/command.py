# SPDX-License-Identifier: Apache-2.0
"""A whole proof run, as the command line makes it: prove, write the ledger, tell the outcome."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from kvreshard.proofs import ledger as ledgers
from kvreshard.proofs import second_record
from kvreshard.proofs.cache import Cache, default_directory
from kvreshard.proofs.counterexample import smallest_counterexamples
from kvreshard.proofs.obligations import Obligation, obligations
from kvreshard.proofs.question import proof_text
from kvreshard.proofs.report import (
    print_counterexamples,
    print_failures,
    print_funnel,
    print_invariants,
    print_second_solver,
)
from kvreshard.proofs.run import Verdict
from kvreshard.proofs.run import prove as put_to_the_solver

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from rich.console import Console

HOLDS, FAILED, NOT_DECIDED = 0, 1, 3


@dataclass(frozen=True)
class Run:
    """What a run gave: the ledger, the verdicts it was made of, and the exit code."""

    ledger: dict[str, Any]
    verdicts: tuple[Verdict, ...]
    exit_code: int


def prove_all(console: Console, *, wanted: str, use_cache: bool, jobs: int) -> Run:
    """Prove the obligations whose name holds `wanted`, with all the lemmas they rest on.

    The ledger is written only where nothing was left out.
    """
    declared = obligations()
    chosen = _with_lemmas(declared, wanted)
    cache = Cache(default_directory() if use_cache else None)
    verdicts = _prove_with_progress(console, chosen, cache, jobs)
    ledger = ledgers.build(verdicts, second_record.opinions(second_record.load()))
    lonely = [] if wanted else ledgers.orphans(declared, ledger)
    if not wanted:
        ledgers.write(ledger)
    print_invariants(console, verdicts)
    print_funnel(console, len(declared), verdicts)
    console.print(f"  {'orphans':<20}{len(lonely):>5}")
    print_second_solver(console, ledger)
    if chosen and not lonely and ledgers.all_hold(ledger):
        scope = "every obligation" if not wanted else f"each of {len(verdicts)} chosen obligations"
        console.print(f"{scope} holds", style="bold green")
        return Run(ledger, tuple(verdicts), HOLDS)
    _tell_failure(console, verdicts, lonely, wanted)
    contradicted = ledgers.contradicted(ledger)
    for name in contradicted:
        console.print(f"contradicted by the second solver: {name}", style="bold red")
    refuted = any(verdict.result in {"refuted", "vacuous"} for verdict in verdicts)
    wrong = refuted or lonely or contradicted or not chosen
    return Run(ledger, tuple(verdicts), FAILED if wrong else NOT_DECIDED)


def export(directory: Path, wanted: str) -> int:
    """Write each obligation as an SMT-LIB file, and return how many there are.

    A file is unsatisfiable where the obligation holds; one of a scenario is satisfiable.
    """
    directory.mkdir(parents=True, exist_ok=True)
    chosen = _with_lemmas(obligations(), wanted)
    for item in chosen:
        path = directory / f"{item.name.replace('/', '.')}.smt2"
        path.write_text(f"; {item.sentence}\n{proof_text(item)}", encoding="utf-8")
    return len(chosen)


def _with_lemmas(declared: Sequence[Obligation], wanted: str) -> list[Obligation]:
    by_name = {item.name: item for item in declared}
    chosen = {item.name for item in declared if wanted in item.name}
    pending = list(chosen)
    while pending:
        rested_on = {f"lemma/{name}" for name in by_name[pending.pop()].lemmas()}
        pending += rested_on - chosen
        chosen |= rested_on
    return [item for item in declared if item.name in chosen]


def _prove_with_progress(
    console: Console, chosen: Sequence[Obligation], cache: Cache, jobs: int
) -> list[Verdict]:
    columns = (
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.description}"),
    )
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("starting", total=None)

        def advance(name: str, done: int, total: int) -> None:
            bar.update(task, description=name, completed=done, total=total)

        return put_to_the_solver(chosen, jobs=jobs, cache=cache, progress=advance)


def _tell_failure(
    console: Console, verdicts: Sequence[Verdict], lonely: Sequence[str], wanted: str
) -> None:
    if not verdicts:
        console.print(f"no obligation has {wanted!r} in its name", style="bold red")
        return
    print_failures(console, verdicts)
    for orphan in lonely:
        console.print(f"orphan: {orphan}", style="bold red")
    if any(not verdict.holds for verdict in verdicts):
        print_counterexamples(console, smallest_counterexamples())
