# SPDX-License-Identifier: Apache-2.0
"""Planners that know the heads, and let the wrong number of replicas send or receive."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kvreshard.proofs.broken.entry import ANY_SIZES, BrokenPlanner, any_sizes
from kvreshard.proofs.broken.names import CONTENT, COVERED, HOLDER, OVERLAP
from kvreshard.proofs.broken.right import NOTHING, overlap, planner_of, replicas, right_plan
from kvreshard.proofs.judge import Copy

if TYPE_CHECKING:
    from kvreshard.proofs.broken.right import Plan


def to_the_first_replica_only(H: int, P: int, p: int, D: int, d: int) -> Copy:
    """Send each head to the lowest of the consumer ranks that hold it."""
    return NOTHING if d % replicas(H, D) else right_plan(H, P, p, D, d)


def from_the_rank_before(H: int, P: int, p: int, D: int, d: int) -> Copy:
    """Let the rank before the right one send."""
    return right_plan(H, P, (p + 1) % P, D, d)


def with_copies_of_nothing(H: int, P: int, p: int, D: int, d: int) -> Copy:
    """Let a rank with nothing to give send no heads, where it should stay silent."""
    copy = right_plan(H, P, p, D, d)
    return copy if copy.sends else Copy(True, 0, 0, 0)


def _entry(name: str, sentence: str, plan: Plan, *invariants: str) -> BrokenPlanner:
    return BrokenPlanner(name, sentence, (), planner_of(plan), invariants, ANY_SIZES, any_sizes)


PLANNERS = (
    BrokenPlanner(
        name="every_replica_sends",
        sentence=(
            "Every producer rank that holds a head sends it; the copies are equal, so that "
            "comparing what arrived cannot see it."
        ),
        seen_in=("SGLang", "vllm-ascend #3366"),
        subject=planner_of(overlap),
        invariants=(COVERED, OVERLAP),
        domain=ANY_SIZES,
        in_domain=any_sizes,
        reported=(2, 4, 1),
    ),
    BrokenPlanner(
        name="only_one_consumer_of_a_head_is_served",
        sentence="Of the consumer ranks that hold the same head, the lowest alone gets it.",
        seen_in=("vllm-ascend #5846",),
        subject=planner_of(to_the_first_replica_only),
        invariants=(COVERED,),
        domain=ANY_SIZES,
        in_domain=any_sizes,
    ),
    _entry(
        "the_rank_before_the_right_one_sends",
        "The producer rank before the one that holds the head sends in its place.",
        from_the_rank_before,
        HOLDER,
        CONTENT,
    ),
    _entry(
        "ranks_with_nothing_to_give_send_no_heads",
        "A producer rank that has nothing for a consumer sends it a copy of zero heads.",
        with_copies_of_nothing,
        HOLDER,
    ),
)
