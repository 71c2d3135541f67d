# SPDX-License-Identifier: Apache-2.0
"""Lists of copies are judged byte by byte as one copy of heads is judged head by head."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from kvreshard.proofs.audit.judging import IN_SCOPE, Plans, judge_plans
from kvreshard.proofs.audit.sweep import sizes_up_to
from kvreshard.proofs.broken import BROKEN, RIGHT
from kvreshard.proofs.broken.names import CONTENT, COVERED, HOLDER, OVERLAP, READ, WRITE
from kvreshard.proofs.judge import judge

if TYPE_CHECKING:
    from kvreshard.proofs.audit.judging import ByteCopy
    from kvreshard.proofs.audit.model import Sizes
    from kvreshard.proofs.judge import Subject

SIZE = 6
SUBJECTS = {
    "right": (RIGHT, lambda *_: True),
    **{name: (broken.subject, broken.in_domain) for name, broken in BROKEN.items()},
}


def plans_of(subject: Subject, sizes: Sizes) -> Plans:
    """Return a planner's copies of heads as copies of bytes."""
    H, P, D = sizes
    made = {(p, d): subject.plan(H, P, p, D, d) for p in range(P) for d in range(D)}
    copies = {
        pair: (
            (
                SIZE * copy.src_head_offset,
                SIZE * copy.dst_head_offset,
                SIZE * copy.head_count,
            ),
        )
        for pair, copy in made.items()
        if copy.sends
    }
    return Plans(sizes, SIZE, copies, {})


@pytest.mark.parametrize("name", SUBJECTS)
def test_both_judges_charge_a_planner_with_the_same(name: str) -> None:
    subject, in_domain = SUBJECTS[name]
    seen: set[str] = set()
    for sizes in sizes_up_to(8):
        if not in_domain(*sizes):
            continue
        by_heads = {one.invariant for one in judge(subject, *sizes)} & set(IN_SCOPE)
        by_bytes = {one.invariant for one in judge_plans(plans_of(subject, sizes))}
        assert by_bytes == by_heads, sizes
        seen |= by_bytes
    charged = set() if name == "right" else set(BROKEN[name].invariants) & set(IN_SCOPE)
    # Some faults take larger sizes to show in every way.
    assert seen <= charged
    assert bool(seen) == bool(charged)


def violated(copies: dict[tuple[int, int], tuple[ByteCopy, ...]], sizes: Sizes) -> set[str]:
    """Return what a plan breaks."""
    return {one.invariant for one in judge_plans(Plans(sizes, SIZE, copies, {}))}


# Two producers of one head each, one consumer of both: right as (0, 0, 6) and (0, 6, 6).
GATHER = (2, 2, 1)


@pytest.mark.parametrize(
    ("first", "second", "invariants"),
    [
        (((0, 0, 6),), ((0, 6, 6),), set()),
        # In pieces of any length, in any order.
        (((0, 0, 1), (1, 1, 5)), ((3, 9, 3), (0, 6, 3)), set()),
        (((0, 0, 6),), (), {COVERED}),
        (((0, 0, 6),), ((0, 6, 5),), {COVERED}),
        (((0, 0, 5),), ((0, 6, 6),), {COVERED}),
        # Within one producer too, and for one byte.
        (((0, 0, 6), (5, 5, 1)), ((0, 6, 6),), {COVERED, OVERLAP}),
        (((0, 0, 6),), ((0, 6, 6), (0, 6, 6)), {COVERED, OVERLAP}),
        # One byte to the left, to the right, and of another head.
        (((0, 1, 6),), ((0, 6, 6),), {CONTENT, COVERED, HOLDER, OVERLAP}),
        (((0, 0, 6),), ((0, 7, 6),), {CONTENT, COVERED, WRITE}),
        (((1, 0, 6),), ((0, 6, 6),), {CONTENT, READ}),
        (((1, 0, 5),), ((0, 6, 6),), {CONTENT, COVERED}),
        (((-1, 0, 6),), ((0, 6, 6),), {CONTENT, READ}),
        (((0, -1, 6),), ((0, 6, 6),), {CONTENT, COVERED, WRITE}),
        (((0, 6, 6),), ((0, 0, 6),), {CONTENT, HOLDER}),
        # Outside altogether: nothing that belongs to the block is wrong, it is not there.
        (((0, 0, 6), (0, 12, 6)), ((0, 6, 6),), {WRITE}),
        (((0, 0, 6), (0, -6, 6)), ((0, 6, 6),), {WRITE}),
        # What is read too far is written outside as well: no byte of the block is wrong.
        (((0, 0, 6),), ((0, 6, 7),), {READ, WRITE}),
        # Of no bytes, or of fewer.
        (((0, 0, 6), (0, 0, 0)), ((0, 6, 6),), {HOLDER}),
        (((0, 0, 6),), ((0, 6, 6), (99, -99, -3)), {HOLDER}),
        (((0, 0, -6),), ((0, 6, 6),), {COVERED, HOLDER}),
    ],
)
def test_each_fault_of_a_byte_is_charged(
    first: tuple[ByteCopy, ...], second: tuple[ByteCopy, ...], invariants: set[str]
) -> None:
    assert violated({(0, 0): first, (1, 0): second}, GATHER) == invariants


def test_a_long_list_and_a_huge_copy_are_judged() -> None:
    bytewise = tuple((at, at, 1) for at in range(SIZE))
    assert not violated({(0, 0): bytewise}, (1, 1, 1))
    far = {COVERED, OVERLAP, READ, WRITE}
    assert violated({(0, 0): (*bytewise, (0, 0, 10**30))}, (1, 1, 1)) == far


@pytest.mark.parametrize(
    ("copy", "seen"),
    [
        ((1, 0, 5), "byte 1 of its block, which starts with head 0, to byte 0"),
        ((-2, 3, 3), "byte -2 of its block, which starts with head 0, to byte 3"),
        ((-3, -3, 6), None),
        ((0, -3, 9), "byte 3 of its block, which starts with head 0, to byte 0"),
        # The right place, until the producer's block ends.
        ((0, 0, 12), "byte 6 of its block, which starts with head 0, to byte 6"),
    ],
)
def test_the_first_wrong_byte_is_told(copy: ByteCopy, seen: str | None) -> None:
    told = [v.seen for v in judge_plans(Plans(GATHER, SIZE, {(0, 0): (copy,)}, {}))]
    wrong = [one for one in told if "which starts with head" in one]
    assert [one.partition("writes ")[2].partition(" of consumer")[0] for one in wrong] == (
        [seen] if seen else []
    )


def test_what_raises_covers_nothing() -> None:
    raised = {(0, 0): "ValueError at line 3"}
    found = list(judge_plans(Plans(GATHER, SIZE, {(1, 0): ((0, 6, 6),)}, raised)))
    # The other producer's copy is judged as it is.
    assert {one.invariant for one in found} == {COVERED}
    assert "the planner raises ValueError at line 3 for producer rank 0" in found[0].seen
