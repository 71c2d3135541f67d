# SPDX-License-Identifier: Apache-2.0
"""Prove with many seeds, and say how much the solver's effort varies.

A proof that needs luck shows here: a seed that does not settle it, or a count of resource units
that comes near the limit.
"""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rich.progress import Progress

from kvreshard.proofs.cache import Cache, default_directory
from kvreshard.proofs.obligations import obligations
from kvreshard.proofs.question import RLIMIT, Question, refutation, text_hash
from kvreshard.proofs.run import ask_z3

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console

    from kvreshard.proofs.obligations import Obligation
    from kvreshard.proofs.solve import Answer

SHOWN = 12


@dataclass(frozen=True)
class Spread:
    """What the seeds took for one statement.

    Attributes:
        name: the first obligation with this statement.
        rlimits: resource units, one for each seed.
        flakes: seeds that did not prove it, each with what the solver said.
    """

    name: str
    rlimits: tuple[int, ...]
    flakes: tuple[str, ...]

    @property
    def ratio(self) -> float:
        """The dearest seed over the cheapest."""
        return max(self.rlimits) / max(min(self.rlimits), 1)


def prove_with_seeds(
    console: Console, *, seeds: int, use_cache: bool, jobs: int
) -> tuple[Spread, ...]:
    """Prove each distinct statement that is put in one query, once for each seed, and tell.

    Statements whose road fixes values are thousands of queries of one seed each; they are not
    asked here.
    """
    distinct = in_one_query(obligations())
    asked = {
        item.name: [refutation(item, (seed,))[0] for seed in range(seeds)] for item in distinct
    }
    cache = Cache(default_directory() if use_cache else None)
    with Progress(console=console, transient=True) as bar:
        task = bar.add_task("seeds", total=None)

        def advance(_question: Question, done: int, total: int) -> None:
            bar.update(task, completed=done, total=total)

        every = [question for questions in asked.values() for question in questions]
        answers = ask_z3(every, jobs=jobs, cache=cache, progress=advance)
    spreads = tuple(_spread(name, questions, answers) for name, questions in asked.items())
    _tell(console, spreads, seeds)
    return spreads


def in_one_query(listed: Sequence[Obligation]) -> list[Obligation]:
    """Return the distinct statements that a proof puts in one query."""
    distinct: dict[str, Obligation] = {}
    for item in listed:
        if item.kind != "scenario" and not (item.road and item.road.fixed):
            distinct.setdefault(text_hash(item), item)
    return list(distinct.values())


def _spread(name: str, questions: list[Question], answers: dict[Question, Answer]) -> Spread:
    given = [answers[question] for question in questions]
    flakes = tuple(
        f"seed {question.seeds[0]}: {answer.result} {answer.reason}".rstrip()
        for question, answer in zip(questions, given, strict=True)
        if answer.result != "unsat"
    )
    return Spread(name, tuple(answer.largest_rlimit for answer in given), flakes)


def _tell(console: Console, spreads: Sequence[Spread], seeds: int) -> None:
    console.print(f"the {SHOWN} dearest, in resource units", style="bold")
    console.print(f"{'least':>12}{'median':>12}{'most':>12}{'most/least':>12}  statement")
    for spread in sorted(spreads, key=lambda one: -max(one.rlimits))[:SHOWN]:
        least, most = min(spread.rlimits), max(spread.rlimits)
        middle = int(statistics.median(spread.rlimits))
        console.print(f"{least:12,}{middle:12,}{most:12,}{spread.ratio:12.1f}  {spread.name}")
    most = max((max(spread.rlimits) for spread in spreads), default=0)
    flakes = [spread for spread in spreads if spread.flakes]
    console.print(
        f"{len(spreads)} statements, {seeds} seeds each: {len(flakes)} flake; the dearest proof "
        f"takes {most:,} of {RLIMIT:,} units"
    )
    for spread in flakes:
        console.print(f"  {spread.name}: {'; '.join(spread.flakes)}", style="bold red")
