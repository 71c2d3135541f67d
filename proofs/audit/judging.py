# SPDX-License-Identifier: Apache-2.0
"""Judge lists of copies between all ranks of two groups, byte by byte, with plain numbers.

Which heads a rank holds is read from `judge.held_heads`, which knows no formula. A block is
head-major: slot s of a rank's block has the bytes from s * bytes_per_head on.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations, pairwise
from typing import TYPE_CHECKING

from kvreshard.proofs.broken.names import CONTENT, COVERED, HOLDER, OVERLAP, READ, WRITE
from kvreshard.proofs.judge import Violation, held_heads

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from kvreshard.proofs.audit.model import Sizes

# Source offset, target offset, length, in bytes.
ByteCopy = tuple[int, int, int]

# What can be said of copies alone, in the order in which a report names it.
IN_SCOPE = (COVERED, OVERLAP, READ, WRITE, CONTENT, HOLDER)


@dataclass(frozen=True)
class Plans:
    """Every copy of a plan, by producer and consumer rank, and the pairs that raised.

    Attributes:
        sizes: H, P and D.
        bytes_per_head: bytes of one head in one block.
        copies: for (p, d) the copies that p makes into d's block; pairs that copy nothing are left
            out.
        raised: for (p, d) what the planner raised, in words.
    """

    sizes: Sizes
    bytes_per_head: int
    copies: Mapping[tuple[int, int], tuple[ByteCopy, ...]]
    raised: Mapping[tuple[int, int], str]


@dataclass(frozen=True)
class _Written:
    """One copy into a consumer's block: who, from where, to where, how many bytes."""

    p: int
    src: int
    dst: int
    count: int

    @property
    def end(self) -> int:
        return self.dst + self.count


def judge_plans(plans: Plans) -> Iterator[Violation]:
    """Yield what is wrong with a plan."""
    H, P, D = plans.sizes
    for d in range(D):
        written = [_Written(p, *copy) for p in range(P) for copy in plans.copies.get((p, d), ())]
        raised = [(p, plans.raised[p, d]) for p in range(P) if (p, d) in plans.raised]
        for invariant, seen in _faults(plans, d, written, raised):
            yield Violation(invariant, H, P, D, d, seen)


def _faults(
    plans: Plans, d: int, written: Sequence[_Written], raised: Sequence[tuple[int, str]]
) -> Iterator[tuple[str, str]]:
    H, P, D = plans.sizes
    size = plans.bytes_per_head
    own = held_heads(H, D, d)
    for p, what in raised:
        yield COVERED, f"the planner raises {what} for producer rank {p} and consumer rank {d}"
    for one in written:
        yield from _of_one(one, held_heads(H, P, one.p), own, size, d)
    inside = [one for one in written if one.count >= 1]
    for one, other in combinations(inside, 2):
        if one.dst < other.end and other.dst < one.end:
            at = max(one.dst, other.dst)
            yield (
                OVERLAP,
                (
                    f"byte {at} of the block of consumer rank {d} is written by producer ranks "
                    f"{one.p} and {other.p}"
                ),
            )
    yield from _coverage(inside, len(own) * size, d)


def _of_one(
    one: _Written, source: Sequence[int], target: Sequence[int], size: int, d: int
) -> Iterator[tuple[str, str]]:
    who = f"producer rank {one.p}"
    if one.count < 1:
        yield HOLDER, f"{who} sends consumer rank {d} a copy of {one.count} bytes"
        return
    if one.src < 0 or one.src + one.count > len(source) * size:
        yield (
            READ,
            f"{who} reads bytes {one.src} to {one.src + one.count} of its {len(source) * size}",
        )
    if one.dst < 0 or one.end > len(target) * size:
        yield (
            WRITE,
            f"{who} writes bytes {one.dst} to {one.end} of a block of {len(target) * size}",
        )
    for slot in range(max(one.dst // size, 0), min(-(-one.end // size), len(target))):
        if target[slot] not in source:
            yield HOLDER, f"{who} writes to the slot of head {target[slot]}, which it does not hold"
            break
    at = _first_wrong_byte(one, source, target, size)
    if at is not None:
        yield (
            CONTENT,
            (
                f"{who} writes byte {one.src + at - one.dst} of its block, which starts with head "
                f"{source[0]}, to byte {at} of consumer rank {d}'s block, which starts with head "
                f"{target[0]}"
            ),
        )


def _first_wrong_byte(
    one: _Written, source: Sequence[int], target: Sequence[int], size: int
) -> int | None:
    """Return the first byte of the target's block to which a copy writes another than its own."""
    low, high = max(one.dst, 0), min(one.end, len(target) * size)
    if low >= high:
        return None
    # Both sides hold consecutive heads, so that a byte's place among all heads' bytes is its
    # offset and that of the first head.
    same_place = source[0] * size + one.src == target[0] * size + one.dst
    if not same_place or one.src + low - one.dst < 0:
        return low
    past_the_source = one.dst - one.src + len(source) * size
    return max(low, past_the_source) if past_the_source < high else None


def _coverage(written: Sequence[_Written], length: int, d: int) -> Iterator[tuple[str, str]]:
    marks = sorted({0, length, *(min(max(x, 0), length) for w in written for x in (w.dst, w.end))})
    for low, high in pairwise(marks):
        writers = [one.p for one in written if one.dst <= low and high <= one.end]
        if len(writers) != 1:
            by = f"by producer ranks {writers}" if writers else "by no producer rank"
            yield COVERED, f"bytes {low} to {high} of consumer rank {d} are written {by}"
