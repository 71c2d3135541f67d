# SPDX-License-Identifier: Apache-2.0
"""The whole plan between two groups, asked of the generated planner, and checked by its copies."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from kvreshard.generated.planner import (
    expected_receivers,
    expected_senders,
    first_head,
    head_count,
    plan_transfer,
)
from kvreshard.proofs.story.model import ConsumerBlock, PeerView, Slot, Writer

if TYPE_CHECKING:
    from collections.abc import Iterator

ELECTIONS = ("lowest", "spread", "paired")


@dataclass(frozen=True)
class HeadCopy:
    """Heads in a row that one producer rank sends to one consumer rank.

    Attributes:
        producer_tp_rank, consumer_tp_rank: from whom, to whom.
        first_head: the first of the heads, counted over the whole model.
        head_count: how many heads.
        src_head_offset, dst_head_offset: heads from the start of either rank's block.
    """

    producer_tp_rank: int
    consumer_tp_rank: int
    first_head: int
    head_count: int
    src_head_offset: int
    dst_head_offset: int


@dataclass(frozen=True)
class HeadPlan:
    """What every producer rank sends to every consumer rank, for one region.

    Attributes:
        total_num_kv_heads, producer_tp_size, consumer_tp_size, election: the input.
        producer_heads, consumer_heads: for each rank the heads it holds, in the order of its block.
        copies: by consumer rank, then by producer rank.
        peers: of each consumer rank and then of each producer rank, whom it reckons with and who
            is there by the copies.
        blocks: what the copies do to each consumer rank's block.
    """

    total_num_kv_heads: int
    producer_tp_size: int
    consumer_tp_size: int
    election: str
    producer_heads: tuple[tuple[int, ...], ...]
    consumer_heads: tuple[tuple[int, ...], ...]
    copies: tuple[HeadCopy, ...]
    peers: tuple[PeerView, ...]
    blocks: tuple[ConsumerBlock, ...]

    @property
    def faults(self) -> tuple[str, ...]:
        """What is wrong with the plan, counted in its copies; nothing, by the theorems."""
        bad = [f"d{one.consumer_tp_rank}: its block" for one in self.blocks if not one.is_right]
        bad += [f"{one.side} {one.tp_rank}: its peers" for one in self.peers if not one.is_right]
        return tuple(bad)


def plan_heads(
    *, total_num_kv_heads: int, producer_tp_size: int, consumer_tp_size: int, election: str
) -> HeadPlan:
    """Return the plan for all pairs of ranks.

    Raises:
        ValueError: a group or the election is not legal; the message says what is.
    """
    groups = _Groups(total_num_kv_heads, producer_tp_size, consumer_tp_size)
    copies = tuple(_copies(groups, election))
    producer_heads = _held(total_num_kv_heads, producer_tp_size)
    consumer_heads = _held(total_num_kv_heads, consumer_tp_size)
    return HeadPlan(
        *groups,
        election,
        producer_heads,
        consumer_heads,
        copies,
        tuple(_peers(groups, election, copies)),
        tuple(_blocks(producer_heads, consumer_heads, copies)),
    )


class _Groups(NamedTuple):
    total_num_kv_heads: int
    producer_tp_size: int
    consumer_tp_size: int


def _held(heads: int, tp_size: int) -> tuple[tuple[int, ...], ...]:
    count = head_count(heads, tp_size)
    firsts = (first_head(heads, tp_size, rank) for rank in range(tp_size))
    return tuple(tuple(range(first, first + count)) for first in firsts)


def _copies(groups: _Groups, election: str) -> Iterator[HeadCopy]:
    """Yield the copies. All pairs are asked, so that whom the ranks expect is checked by them."""
    heads, producers, consumers = groups
    for consumer in range(consumers):
        for producer in range(producers):
            plan = plan_transfer(
                **groups._asdict(),
                producer_tp_rank=producer,
                consumer_tp_rank=consumer,
                election=election,
            )
            if plan.sends:
                source, count = plan.src_head_offset, plan.head_count
                first = first_head(heads, producers, producer) + source
                yield HeadCopy(producer, consumer, first, count, source, plan.dst_head_offset)


def _peers(groups: _Groups, election: str, copies: tuple[HeadCopy, ...]) -> Iterator[PeerView]:
    pairs = sorted((copy.producer_tp_rank, copy.consumer_tp_rank) for copy in copies)
    for rank in range(groups.consumer_tp_size):
        waits_for = expected_senders(**groups._asdict(), consumer_tp_rank=rank, election=election)
        yield PeerView("consumer", rank, waits_for, tuple(p for p, d in pairs if d == rank))
    for rank in range(groups.producer_tp_size):
        counts_on = expected_receivers(**groups._asdict(), producer_tp_rank=rank, election=election)
        yield PeerView("producer", rank, counts_on, tuple(d for p, d in pairs if p == rank))


def _blocks(
    producer_heads: tuple[tuple[int, ...], ...],
    consumer_heads: tuple[tuple[int, ...], ...],
    copies: tuple[HeadCopy, ...],
) -> Iterator[ConsumerBlock]:
    writers: dict[tuple[int, int], list[Writer]] = {}
    for copy in copies:
        held = producer_heads[copy.producer_tp_rank]
        for k in range(copy.head_count):
            source = copy.src_head_offset + k
            head = held[source] if source < len(held) else None
            place = copy.consumer_tp_rank, copy.dst_head_offset + k
            writers.setdefault(place, []).append(Writer(copy.producer_tp_rank, head))
    for rank, held in enumerate(consumer_heads):
        written = {slot for consumer, slot in writers if consumer == rank}
        slots = (
            Slot(
                slot,
                held[slot] if slot < len(held) else None,
                tuple(writers.get((rank, slot), ())),
            )
            for slot in sorted(written | set(range(len(held))))
        )
        yield ConsumerBlock(rank, tuple(slots), 1)
