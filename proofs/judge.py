# SPDX-License-Identifier: Apache-2.0
"""Judge a planner on one input in plain Python: sets of heads, no formula, no solver.

This is a second reading of the invariants. It knows nothing of how a plan was found, and reads
ownership from equal shares of the heads: rank r of T holds head h where [r*H/T, (r+1)*H/T) and
[h, h+1) overlap.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence


class Copy(NamedTuple):
    """What one producer rank copies into one consumer rank, in heads."""

    sends: bool
    src_head_offset: int
    dst_head_offset: int
    head_count: int


@dataclass(frozen=True)
class Subject:
    """A planner under judgement, with its election already chosen.

    Attributes:
        plan: (H, P, p, D, d) to the copy that p makes into d.
        senders: (H, P, D, d) to the ranks that d waits for.
        receivers: (H, P, p, D) to the ranks that p sends to.
        accepts: (H, P, D, producer bytes, consumer bytes) to whether the lengths match.
    """

    plan: Callable[[int, int, int, int, int], Copy]
    senders: Callable[[int, int, int, int], Sequence[int]]
    receivers: Callable[[int, int, int, int], Sequence[int]]
    accepts: Callable[[int, int, int, int, int], bool]


@dataclass(frozen=True)
class Violation:
    """An invariant that does not hold for an input, and what was seen.

    `heads[slot]` lists, for each head of the consumer's block, the producer ranks that wrote it
    and the head each of them wrote there.
    """

    invariant: str
    total_num_kv_heads: int
    producer_tp_size: int
    consumer_tp_size: int
    consumer_tp_rank: int | None
    seen: str
    heads: tuple[tuple[int, tuple[tuple[int, int], ...]], ...] = ()


# Block of the byte-level checks: 2 tokens of 3 bytes, small and of different primes.
BLOCK_SIZE, TOKEN_BYTES = 2, 3
BYTES_PER_HEAD = BLOCK_SIZE * TOKEN_BYTES


@lru_cache(maxsize=4096)
def held_heads(total_num_kv_heads: int, tp_size: int, tp_rank: int) -> tuple[int, ...]:
    """Return the heads that a rank holds, in the order of its block."""
    H, T, r = total_num_kv_heads, tp_size, tp_rank
    return tuple(h for h in range(H) if h * T < (r + 1) * H and r * H < (h + 1) * T)


def is_legal(total_num_kv_heads: int, tp_size: int) -> bool:
    """Whether the heads divide evenly over the ranks or the ranks over the heads."""
    return total_num_kv_heads % tp_size == 0 or tp_size % total_num_kv_heads == 0


def judge(subject: Subject, H: int, P: int, D: int) -> Iterator[Violation]:
    """Yield what is wrong with the subject's plans for one triple of sizes."""
    copies = {(p, d): subject.plan(H, P, p, D, d) for p in range(P) for d in range(D)}
    for d in range(D):
        yield from _judge_consumer(copies, H, P, D, d)
    yield from _judge_peers(subject, copies, H, P, D)
    yield from _judge_lengths(subject, H, P, D)


@dataclass(frozen=True)
class BlockLayout:
    """Where the bytes of a block lie, as formulas say it; the last two arguments are tokens per
    block and bytes per head and token.
    """

    address: Callable[[int, int, int, int, int], int]
    head_slot: Callable[[int, int, int], int]
    token: Callable[[int, int, int], int]
    position: Callable[[int, int], int]


def judge_layout(layout: BlockLayout) -> Iterator[Violation]:
    """Yield each byte of a block of two heads that a layout places wrongly.

    Right is head-major without gaps: the bytes are counted one by one.
    """
    size = (BLOCK_SIZE, TOKEN_BYTES)
    places = itertools.product(range(2), range(BLOCK_SIZE), range(TOKEN_BYTES))
    for offset, place in enumerate(places):
        address = layout.address(*place, *size)
        found = (
            layout.head_slot(offset, *size),
            layout.token(offset, *size),
            layout.position(offset, TOKEN_BYTES),
        )
        if address != offset or found != place:
            yield Violation(
                "every_written_byte_holds_the_same_head_token_and_position",
                2,
                1,
                1,
                0,
                f"byte {offset} of a block of 2 heads, {BLOCK_SIZE} tokens and {TOKEN_BYTES} bytes "
                f"is head slot, token and position {place}; the formulas place it at {found}, and "
                f"{place} at byte {address}",
            )


def _judge_consumer(
    copies: dict[tuple[int, int], Copy], H: int, P: int, D: int, d: int
) -> Iterator[Violation]:
    own = held_heads(H, D, d)
    written: dict[int, list[tuple[int, int | None]]] = {}
    found: list[tuple[str, str]] = []
    for p in range(P):
        copy = copies[p, d]
        if copy.sends:
            found += _judge_copy(copy, held_heads(H, P, p), own, p)
            for k in range(max(copy.head_count, 0)):
                source = held_heads(H, P, p)
                at = copy.src_head_offset + k
                head = source[at] if 0 <= at < len(source) else None
                written.setdefault(copy.dst_head_offset + k, []).append((p, head))
    for slot, head in enumerate(own):
        writers = written.get(slot, [])
        if len(writers) != 1:
            ranks = [p for p, _ in writers]
            found.append(
                (
                    "every_consumer_head_is_covered_exactly_once",
                    f"head {head} of consumer rank {d} is written by "
                    + (f"producer ranks {ranks}" if ranks else "no producer rank"),
                )
            )
        if len({p for p, _ in writers}) > 1:
            found.append(
                (
                    "no_two_writes_overlap",
                    f"head slot {slot} of consumer rank {d} is written by producer ranks "
                    + str([p for p, _ in writers]),
                )
            )
    heads = tuple(
        (head, tuple((p, -1 if source is None else source) for p, source in written.get(slot, [])))
        for slot, head in enumerate(own)
    )
    for invariant, seen in found:
        yield Violation(invariant, H, P, D, d, seen, heads)


def _judge_copy(
    copy: Copy, source: Sequence[int], target: Sequence[int], p: int
) -> Iterator[tuple[str, str]]:
    src, dst, count = copy.src_head_offset, copy.dst_head_offset, copy.head_count
    if src < 0 or src + count > len(source):
        yield (
            "every_read_is_inside_the_producer_block",
            f"producer rank {p} reads heads {src} to {src + count} of the {len(source)} it holds",
        )
    if dst < 0 or dst + count > len(target):
        yield (
            "every_write_is_inside_the_consumer_block",
            f"producer rank {p} writes heads {dst} to {dst + count} of a block of {len(target)}",
        )
    if count < 1:
        yield (
            "only_a_holder_of_the_head_sends_it",
            f"producer rank {p} sends, but copies {count} heads",
        )
    for k in range(max(count, 0)):
        if not 0 <= dst + k < len(target):
            continue
        wanted = target[dst + k]
        if wanted not in source:
            yield (
                "only_a_holder_of_the_head_sends_it",
                f"producer rank {p} writes to the slot of head {wanted}, but holds {list(source)}",
            )
        if not 0 <= src + k < len(source) or source[src + k] != wanted:
            sent = source[src + k] if 0 <= src + k < len(source) else "none"
            yield (
                "every_written_byte_holds_the_same_head_token_and_position",
                f"producer rank {p} writes head {sent} to the slot of head {wanted}",
            )


def _judge_peers(
    subject: Subject, copies: dict[tuple[int, int], Copy], H: int, P: int, D: int
) -> Iterator[Violation]:
    name = "producers_and_consumers_agree_on_their_peers"
    for d in range(D):
        waits_for = list(subject.senders(H, P, D, d))
        sending = [p for p in range(P) if copies[p, d].sends]
        if waits_for != sending:
            seen = f"consumer rank {d} waits for {waits_for}, but {sending} send to it"
            yield Violation(name, H, P, D, d, seen)
    for p in range(P):
        counts = list(subject.receivers(H, P, p, D))
        receiving = [d for d in range(D) if copies[p, d].sends]
        if counts != receiving:
            seen = f"producer rank {p} counts on {counts}, but sends to {receiving}"
            yield Violation(name, H, P, D, None, seen)


def _judge_lengths(subject: Subject, H: int, P: int, D: int) -> Iterator[Violation]:
    heads_p, heads_d = len(held_heads(H, P, 0)), len(held_heads(H, D, 0))
    for a in _lengths_around(heads_p):
        # The last one has the ratio of the heads, whether or not it is a whole number for each.
        for b in sorted({*_lengths_around(heads_d), a * heads_d // heads_p}):
            plannable = a >= 1 and a % heads_p == b % heads_d == 0 and a // heads_p == b // heads_d
            if subject.accepts(H, P, D, a, b) != plannable:
                yield Violation(
                    "the_length_check_accepts_exactly_the_plannable_regions",
                    H,
                    P,
                    D,
                    None,
                    f"lengths of {a} and {b} bytes are {'refused' if plannable else 'accepted'}; "
                    f"the ranks hold {heads_p} and {heads_d} heads",
                )


def _lengths_around(heads: int) -> list[int]:
    """Return the lengths of no, one, two and three bytes per head, and those next to them."""
    return sorted(
        {heads * bytes_per_head + off for bytes_per_head in range(4) for off in (-1, 0, 1)}
    )
