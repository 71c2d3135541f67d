# SPDX-License-Identifier: Apache-2.0
"""Planners that reason by the ratio of the group sizes and forget the number of heads."""

from __future__ import annotations

from kvreshard.proofs.broken.entry import BrokenPlanner
from kvreshard.proofs.broken.names import CONTENT, COVERED, HOLDER, OVERLAP, READ, WRITE
from kvreshard.proofs.broken.right import NOTHING, heads_of, planner_of
from kvreshard.proofs.judge import Copy


def by_ratio(H: int, P: int, p: int, D: int, d: int) -> Copy:
    """Pair rank r of the larger group with r // ratio, and cut by the place in the pair.

    One of several producers that hold replicas sends, for all of them. That is enough where the
    consumer has no more than their heads, and not where it gathers several.
    """
    mine, theirs = len(heads_of(H, P, 0)), len(heads_of(H, D, 0))
    if P >= D:
        ratio = P // D
        place = p % ratio
        if p // ratio != d or (P > H and place):
            return NOTHING
        return Copy(True, 0, place * mine, mine)
    ratio = D // P
    if d // ratio != p:
        return NOTHING
    return Copy(True, 0 if P > H else (d % ratio) * theirs, 0, theirs)


def by_ratio_rounded_down(H: int, P: int, p: int, D: int, d: int) -> Copy:
    """Give each consumer P // D producers, whose blocks it puts one after the other."""
    ratio = P // D
    mine = len(heads_of(H, P, 0))
    return Copy(True, 0, (p % ratio) * mine, mine) if p // ratio == d else NOTHING


def by_ratio_rounded_up(H: int, P: int, p: int, D: int, d: int) -> Copy:
    """Give each consumer P / D producers, rounded up, spread evenly over its block."""
    ratio = -(-P // D)
    mine, theirs = len(heads_of(H, P, 0)), len(heads_of(H, D, 0))
    at = (p % ratio) * theirs // ratio
    return Copy(True, 0, at, mine) if p // ratio == d else NOTHING


PLANNERS = (
    BrokenPlanner(
        name="the_lowest_rank_alone_sends",
        sentence=(
            "Of the P // D producer ranks in front of a consumer, the lowest alone sends as soon "
            "as heads are replicated, as if they all held the same heads."
        ),
        seen_in=("vLLM PR #52516",),
        subject=planner_of(by_ratio),
        invariants=(COVERED,),
        domain="D divides P",
        in_domain=lambda H, P, D: P % D == 0,  # noqa: ARG005 - has the parameters of in_domain
        reported=(4, 8, 1),
    ),
    BrokenPlanner(
        name="the_source_offset_follows_the_tp_ratio",
        sentence=(
            "Consumer rank d reads its producer's block at d % (D // P), one head on for each "
            "rank, although consumer ranks share heads once D > H."
        ),
        seen_in=("vLLM PR #52516",),
        subject=planner_of(by_ratio),
        invariants=(CONTENT, READ),
        domain="P divides D",
        in_domain=lambda H, P, D: D % P == 0,  # noqa: ARG005 - as above
        reported=(4, 1, 8),
    ),
    BrokenPlanner(
        name="an_indivisible_ratio_is_rounded_down",
        sentence=(
            "Each consumer asks P // D producers, so that the last producers are never asked "
            "where D does not divide P."
        ),
        seen_in=("a fork of SGLang",),
        subject=planner_of(by_ratio_rounded_down),
        invariants=(COVERED, CONTENT, HOLDER),
        domain="P > D, both at most H, and D does not divide P",
        in_domain=lambda H, P, D: H >= P > D and P % D != 0,
        reported=(6, 3, 2),
    ),
    BrokenPlanner(
        name="an_indivisible_ratio_is_rounded_up",
        sentence=(
            "Each consumer asks P / D producers, rounded up, and spreads their blocks evenly over "
            "its own, where they overlap or run over its end."
        ),
        seen_in=("a fork of SGLang",),
        subject=planner_of(by_ratio_rounded_up),
        invariants=(OVERLAP, COVERED, WRITE, CONTENT, HOLDER),
        domain="P > D, both at most H, and D does not divide P",
        in_domain=lambda H, P, D: H >= P > D and P % D != 0,
        reported=(6, 3, 2),
    ),
)
