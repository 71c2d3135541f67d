# SPDX-License-Identifier: Apache-2.0
"""Ask z3 about the obligations that have no bounds, one query each, until one does not hold."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING

from kvreshard.proofs.obligations import Obligation, obligations
from kvreshard.proofs.question import Question, refutation, satisfiability
from kvreshard.proofs.solve import answer

if TYPE_CHECKING:
    from collections.abc import Iterable

# Resource units of z3 per query, but for scenarios: a tenth of what a proof run allows. The right
# specification is proved within it, as the clean pass shows.
RLIMIT = 2_000_000
SEED = 0

_KINDS = frozenset({"lemma", "exhaustive", "definedness", "scenario", "election", "invariant"})


@dataclass(frozen=True)
class Failure:
    """The first obligation that does not hold.

    Attributes:
        obligation: its name.
        result: "refuted", with a model, or "unknown"; either fails a proof run.
        asked: how many were put to the solver, this one included.
    """

    obligation: str
    result: str
    asked: int


@cache
def unbounded(formula: str | None = None) -> tuple[Obligation, ...]:
    """Return the obligations without bounds, all or those about a formula, scenarios last.

    They are stated with the formulas' symbols, so that a mutant is in them once it is applied; but
    for definedness, which is read off the formula: see `restated`.
    """
    chosen = [
        item
        for item in obligations()
        if item.scope != "bounded"
        and item.kind in _KINDS
        and (formula is None or formula in item.formulas())
    ]
    return tuple(sorted(chosen, key=lambda item: item.kind == "scenario"))


def restated(formula: str) -> tuple[Obligation, ...]:
    """Return the obligation that a formula is defined, as the formula stands."""
    return tuple(
        item
        for item in obligations()
        if item.kind == "definedness" and item.about is not None and item.about.name == formula
    )


def first_failure(items: Iterable[Obligation]) -> Failure | None:
    """Return the first obligation that does not hold, with the formulas as they stand.

    A scenario has to be possible; the negation of anything else must not be.
    """
    for asked, item in enumerate(items, start=1):
        is_scenario = item.kind == "scenario"
        wanted, opposite = ("sat", "unsat") if is_scenario else ("unsat", "sat")
        for question in _questions(item):
            found = answer(question).result
            if found != wanted:
                result = "refuted" if found == opposite else "unknown"
                return Failure(item.name, result, asked)
    return None


def _questions(item: Obligation) -> list[Question]:
    if item.kind == "scenario":
        return [satisfiability(item)]
    return [replace(question, rlimit=RLIMIT) for question in refutation(item, (SEED,))]
