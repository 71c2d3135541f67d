# SPDX-License-Identifier: Apache-2.0
"""Planners whose offset or count is off by one, or forgotten."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kvreshard.proofs.broken.entry import ANY_SIZES, BrokenPlanner, any_sizes
from kvreshard.proofs.broken.names import CONTENT, COVERED, HOLDER, OVERLAP, READ, WRITE
from kvreshard.proofs.broken.right import planner_of, right_plan

if TYPE_CHECKING:
    from collections.abc import Callable

    from kvreshard.proofs.judge import Copy


def _entry(
    name: str, sentence: str, change: Callable[[Copy], Copy], *invariants: str
) -> BrokenPlanner:
    def plan(H: int, P: int, p: int, D: int, d: int) -> Copy:
        copy = right_plan(H, P, p, D, d)
        return change(copy) if copy.sends else copy

    return BrokenPlanner(name, sentence, (), planner_of(plan), invariants, ANY_SIZES, any_sizes)


PLANNERS = (
    _entry(
        "the_source_offset_is_one_too_far",
        "Every copy starts one head too late in the producer's block.",
        lambda copy: copy._replace(src_head_offset=copy.src_head_offset + 1),
        READ,
        CONTENT,
    ),
    _entry(
        "the_source_offset_is_one_too_near",
        "Every copy starts one head too early in the producer's block.",
        lambda copy: copy._replace(src_head_offset=copy.src_head_offset - 1),
        READ,
        CONTENT,
    ),
    _entry(
        "the_source_offset_is_forgotten",
        "Every copy starts at the beginning of the producer's block.",
        lambda copy: copy._replace(src_head_offset=0),
        CONTENT,
    ),
    _entry(
        "the_target_offset_is_one_too_far",
        "Every copy lands one head too late in the consumer's block.",
        lambda copy: copy._replace(dst_head_offset=copy.dst_head_offset + 1),
        WRITE,
        COVERED,
        CONTENT,
        HOLDER,
    ),
    _entry(
        "the_target_offset_is_forgotten",
        "Every copy lands at the beginning of the consumer's block.",
        lambda copy: copy._replace(dst_head_offset=0),
        OVERLAP,
        COVERED,
        CONTENT,
        HOLDER,
    ),
    _entry(
        "one_head_too_many_is_copied",
        "Every copy is one head longer than what the two ranks share.",
        lambda copy: copy._replace(head_count=copy.head_count + 1),
        WRITE,
        READ,
        OVERLAP,
        COVERED,
        CONTENT,
        HOLDER,
    ),
)
