# SPDX-License-Identifier: Apache-2.0
"""What the solver is asked: an obligation as SMT-LIB text.

The text is all that the solver gets, so it can be exported, hashed, cached and handed to another
solver as it is.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

import z3

from kvreshard.proofs.cache import key_of
from kvreshard.spec.formula import Truth, unfold

if TYPE_CHECKING:
    from collections.abc import Iterable

    from kvreshard.proofs.obligations import Obligation
    from kvreshard.proofs.roads import Road

# Resource units of z3 per query, not seconds: the same on every machine. The largest that a proof
# needed when this was written is in `make bench`.
RLIMIT = 20_000_000
ROAD_RLIMIT = 40_000_000
SEEDS = (0, 1, 2)
# First parameter values that one question of a road takes together.
VALUES_PER_QUESTION = 8


@dataclass(frozen=True)
class Question:
    """One task for a solver process.

    Attributes:
        text: SMT-LIB; its assertions taken together are to be decided.
        seeds: each is tried; a refutation has to succeed with all of them.
        rlimit: resource limit of each query.
        road: parameters to fix value by value, or None.
        values: the values of the road's first parameter that this question covers.
    """

    text: str
    seeds: tuple[int, ...]
    rlimit: int
    road: Road | None = None
    values: tuple[int, ...] = ()

    def key(self, answered_by: str) -> str:
        """Return the cache key: everything that the answer depends on."""
        return key_of(answered_by, self)


def smt2(conditions: Iterable[Truth]) -> str:
    """Return the conditions as SMT-LIB text, the same whatever was built before.

    z3 names and orders shared terms by when they were made, so they are made in a new context.
    """
    context = z3.Context()
    solver = z3.Solver(ctx=context)
    solver.add(*[condition.translate(context) for condition in conditions])
    return str(solver.to_smt2())


def satisfiability(obligation: Obligation) -> Question:
    """Ask whether the hypotheses, in a scenario with the goal, can hold at all."""
    conditions = [unfold(hypothesis.condition) for hypothesis in obligation.hypotheses]
    if obligation.kind == "scenario":
        conditions.append(unfold(obligation.goal))
    return Question(smt2(conditions), SEEDS[:1], RLIMIT)


def refutation(obligation: Obligation, seeds: tuple[int, ...] = SEEDS) -> list[Question]:
    """Ask whether the goal can fail. More than one question where the road fixes parameters."""
    text = smt2(negated(obligation))
    road = obligation.road
    if road is None or not road.fixed:
        return [Question(text, seeds, RLIMIT)]
    values = range(1, road.maximum + 1)
    return [
        Question(
            text, seeds[:1], ROAD_RLIMIT, road, tuple(values[start : start + VALUES_PER_QUESTION])
        )
        for start in range(0, road.maximum, VALUES_PER_QUESTION)
    ]


def text_hash(obligation: Obligation) -> str:
    """Return the SHA-256 of the SMT-LIB text that the proof rests on."""
    return hashlib.sha256(proof_text(obligation).encode("utf-8")).hexdigest()


def proof_text(obligation: Obligation) -> str:
    """Return the SMT-LIB text of the obligation: unsatisfiable where it holds.

    A scenario has to be satisfiable instead.
    """
    if obligation.kind == "scenario":
        return satisfiability(obligation).text
    return smt2(negated(obligation))


def negated(obligation: Obligation) -> list[Truth]:
    """Return what cannot hold together where the obligation does: the goal is denied."""
    closed = obligation.proof.closed
    assumed = [hypothesis.condition for hypothesis in obligation.given()]
    facts = [use.fact() for use in obligation.proof.uses]
    statement = [*assumed, *facts, z3.Not(obligation.goal)]
    return [unfold(condition, closed) for condition in statement]
