# SPDX-License-Identifier: Apache-2.0
"""Planners that are wrong about which rank holds which head."""

from __future__ import annotations

from kvreshard.proofs.broken.entry import BrokenPlanner
from kvreshard.proofs.broken.names import CONTENT, HOLDER, READ
from kvreshard.proofs.broken.right import NOTHING, heads_of, planner_of, right_plan
from kvreshard.proofs.judge import Copy


def by_consumer_modulo(H: int, P: int, p: int, D: int, d: int) -> Copy:
    """Take consumer rank d's head to be d % H where D > H."""
    head = d % H
    source = heads_of(H, P, p)
    return Copy(True, head - source[0], 0, 1) if D > H and head in source else NOTHING


def by_producer_modulo(H: int, P: int, p: int, D: int, d: int) -> Copy:
    """Take producer rank p's head to be p % H where P > H, and the first H ranks to send."""
    target = heads_of(H, D, d)
    return Copy(True, 0, p - target[0], 1) if P > H > p and p in target else NOTHING


def by_slices_in_a_row(H: int, P: int, p: int, D: int, d: int) -> Copy:
    """Cut a slice of the source for each consumer, one after the other, shared heads or not."""
    taken = [rank for rank in range(D) if right_plan(H, P, p, D, rank).sends]
    if d not in taken:
        return NOTHING
    return right_plan(H, P, p, D, d)._replace(src_head_offset=taken.index(d))


PLANNERS = (
    BrokenPlanner(
        name="consumer_heads_are_taken_modulo",
        sentence=(
            "Consumer rank d is given head d % H, although consecutive ranks hold the same head."
        ),
        seen_in=("SGLang #23746", "SGLang #30997"),
        subject=planner_of(by_consumer_modulo),
        invariants=(CONTENT, HOLDER),
        domain="P <= H < D",
        in_domain=lambda H, P, D: P <= H < D,
        reported=(2, 1, 4),
    ),
    BrokenPlanner(
        name="producer_heads_are_taken_modulo",
        sentence=(
            "Producer rank p is taken to hold head p % H, although consecutive ranks hold the "
            "same head."
        ),
        seen_in=(),
        subject=planner_of(by_producer_modulo),
        invariants=(CONTENT, HOLDER),
        domain="P > H",
        in_domain=lambda H, P, D: P > H,  # noqa: ARG005 - has the parameters of in_domain
    ),
    BrokenPlanner(
        name="each_consumer_has_a_source_slice_of_its_own",
        sentence=(
            "A producer lists one slice of its block for each consumer, one after the other, so "
            "that consumers of the same head make the list longer than the block."
        ),
        seen_in=("SGLang #31295", "SGLang PR #31968"),
        subject=planner_of(by_slices_in_a_row),
        invariants=(READ, CONTENT),
        domain="D > H",
        in_domain=lambda H, P, D: D > H,  # noqa: ARG005 - as above
        reported=(2, 1, 4),
    ),
)
