# SPDX-License-Identifier: Apache-2.0
"""Bounded statements: their ranges, and the road by which the solver settles each.

The statement is the invariant as a reader would write it, in plain `//` and `%`, with no lemma
and no witness. Where the solver settles it with heads and TP sizes symbolic, it does. Where it
does not, some of them are fixed value by value over their whole range and the rest stays
symbolic; "some producer rank" is then written out as an alternative over all ranks.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from kvreshard.spec.formula import Hypothesis
from kvreshard.spec.parameters import L_D, L_P, B, C, D, H, N, P

if TYPE_CHECKING:
    import z3

DEFAULT_MAXIMUM = 256

_HEADS = ("total_num_kv_heads",)
_HEADS_AND_PRODUCERS = ("total_num_kv_heads", "producer_tp_size")
_CONSUMERS = "consumer_tp_size"


@dataclass(frozen=True)
class Road:
    """How a bounded statement is settled.

    Attributes:
        fixed: parameters that are fixed value by value, in this order.
        named: a parameter; the terms that depend on it get names in what is written out.
        cases: whether that parameter is also split into all its values within one query.
        maximum: each of these parameters takes the values from 1 to this.
    """

    fixed: tuple[str, ...] = ()
    named: str | None = None
    cases: bool = False
    maximum: int = DEFAULT_MAXIMUM

    def sentence(self) -> str:
        """Return the road in words."""
        if not self.fixed:
            return "heads and TP sizes symbolic"
        split = f", {self.named} split into its values in each query" if self.cases else ""
        return f"{' and '.join(self.fixed)} fixed value by value{split}, the rest symbolic"


def bounds(maximum: int) -> tuple[Hypothesis, ...]:
    """Return the ranges of a bounded statement: sizes to `maximum`, lengths to its square."""

    def at_most(constant: z3.ArithRef, limit: int) -> Hypothesis:
        return Hypothesis(f"{constant.decl().name()}_is_at_most_{limit}", constant <= limit)

    return (
        *(at_most(constant, maximum) for constant in (H, P, D, B, N, C)),
        *(at_most(constant, maximum**2) for constant in (L_P, L_D)),
    )


def road_for(invariant: str, part: str, regime: str, maximum: int) -> Road:
    """Return the road of one part of an invariant in a regime. The table was found by trying."""
    fixed: tuple[str, ...] = ()
    named, cases = None, False
    if part == "at_least_once":
        fixed, named = _HEADS_AND_PRODUCERS, _CONSUMERS
        cases = "_to_split_" in regime
    elif part in {"each_listed_rank_sends", "each_sender_is_listed"}:
        fixed = _HEADS_AND_PRODUCERS if regime.startswith("replicated") else ()
    elif part == "accepted_is_plannable" and "_to_split_" in regime:
        fixed, named = _HEADS_AND_PRODUCERS, _CONSUMERS
        cases = regime.startswith("split")
    elif part == "each_candidate_is_a_rank" or invariant == "no_two_writes_overlap":
        fixed = _HEADS if regime.startswith("replicated_to_replicated") else ()
    return Road(fixed, named, cases, maximum)
