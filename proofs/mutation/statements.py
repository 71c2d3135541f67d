# SPDX-License-Identifier: Apache-2.0
"""What a mutant is judged by: uncut statements over bounded ranges.

The claims of the invariants come first. The other obligations are asked where no claim is refuted:
elections, regimes, definedness and, for a formula that only lemmas use, the lemmas.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import z3

from kvreshard.proofs.obligations import Obligation, obligations
from kvreshard.spec.invariants import INVARIANTS, PLANNER

if TYPE_CHECKING:
    from collections.abc import Iterable

    from kvreshard.spec.formula import Truth

# Largest number of heads and largest TP size. 6 is the least with a pair that does not divide
# where a producer serves two consumers: H=6, P=3, D=2.
MAXIMUM = 6

_SIZES = (1, MAXIMUM)
_SMALL = (1, 2)
# Ranges by constant, each end included. The capitals are sizes in the lemmas. What is not here is
# limited by the statement's own hypotheses.
RANGES: dict[str, tuple[int, int]] = {
    "total_num_kv_heads": _SIZES,
    "tp_size": _SIZES,
    "producer_tp_size": _SIZES,
    "consumer_tp_size": _SIZES,
    "H": _SIZES,
    "T": _SIZES,
    "bytes_per_head": _SMALL,
    "block_size": _SMALL,
    "token_bytes": _SMALL,
    "producer_region_bytes": (-2, 18),
    "consumer_region_bytes": (-2, 18),
}
# Fixed value by value, smallest first; the third size is symbolic until there is a model.
FIXED = ("total_num_kv_heads", "H", "producer_tp_size", "tp_size", "T", "consumer_tp_size")

INVARIANT_KIND = "invariant"
# In the order in which they are asked.
OTHER_KINDS = ("election", "exhaustive", "definedness", "lemma")


@dataclass(frozen=True)
class Statement:
    """A goal that has to follow from hypotheses.

    Attributes:
        name: unique; that of the claim or of the obligation.
        kind: that of the obligation.
        column: the invariant; for another obligation, its name.
        hypotheses: what may be assumed.
        goal: what has to follow.
    """

    name: str
    kind: str
    column: str
    hypotheses: tuple[Truth, ...]
    goal: Truth

    def constants(self) -> set[str]:
        """Return the names of the constants that it speaks of."""
        found: set[str] = set()
        pending = [*self.hypotheses, self.goal]
        while pending:
            node = pending.pop()
            if z3.is_quantifier(node):
                pending.append(node.body())
                continue
            pending += node.children()
            if z3.is_const(node) and node.decl().kind() == z3.Z3_OP_UNINTERPRETED:
                found.add(str(node))
        return found


def claims() -> tuple[Obligation, ...]:
    """Return the claims of the invariants, each for all regimes at once."""
    return tuple(
        Obligation(
            name=f"{invariant.name}/{claim.part}",
            kind=INVARIANT_KIND,
            sentence=invariant.sentence,
            hypotheses=claim.hypotheses,
            goal=claim.goal,
            invariant=invariant.name,
            part=claim.part,
        )
        for invariant in INVARIANTS.values()
        for claim in invariant.claims(PLANNER)
    )


def claims_about(formula: str) -> list[Statement]:
    """Return the claims that speak of a formula."""
    return [_statement(item, item.goal) for item in claims() if formula in item.formulas()]


def other_statements_about(formula: str) -> list[Statement]:
    """Return what the other obligations say of a formula, as the formulas stand now.

    Lemmas are among them only where nothing but lemmas and its own definedness speaks of it.
    """
    speaking = [
        item for item in obligations() if item.kind in OTHER_KINDS and formula in item.formulas()
    ]
    judged_elsewhere = bool(claims_about(formula)) or any(
        item.kind in {"election", "exhaustive"} for item in speaking
    )
    chosen = [item for item in speaking if item.kind != "lemma" or not judged_elsewhere]
    chosen.sort(key=lambda item: OTHER_KINDS.index(item.kind))
    return [_statement(item, goal) for item in chosen for goal in _parts(item)]


def _parts(item: Obligation) -> Iterable[Truth]:
    """Return the goals to ask one by one: a division stands in the next condition's way."""
    if item.kind == "definedness" and z3.is_and(item.goal):
        return list(item.goal.children())
    return [item.goal]


def _statement(item: Obligation, goal: Truth) -> Statement:
    hypotheses = tuple(hypothesis.condition for hypothesis in item.hypotheses)
    return Statement(item.name, item.kind, item.invariant or item.name, hypotheses, goal)
