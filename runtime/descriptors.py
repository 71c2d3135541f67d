# SPDX-License-Identifier: Apache-2.0
"""Descriptors: (source address, destination address, length in bytes), as numpy arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from kvreshard.runtime.blocks import BlockMap, check_block_ids
from kvreshard.runtime.errors import HypothesisError

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from kvreshard.generated.planner import TransferPlan
    from kvreshard.runtime.regions import Region


class Descriptors(NamedTuple):
    """Three arrays of one length, dtype uint64 throughout, so that no address overflows."""

    source: npt.NDArray[np.uint64]
    destination: npt.NDArray[np.uint64]
    length: npt.NDArray[np.uint64]

    @property
    def rows(self) -> int:
        """How many descriptors."""
        return len(self.length)

    @property
    def total_bytes(self) -> int:
        """Bytes they move together."""
        return int(self.length.sum(dtype=np.uint64))


def build_descriptors(
    producer: Region, consumer: Region, plan: TransferPlan, blocks: BlockMap
) -> Descriptors:
    """One descriptor per block for one region of a pair; none when the plan does not send.

    Raises RequestError for a block id outside its region, HypothesisError when the plan reaches
    outside a block or the two regions differ in bytes per head.
    """
    check_block_ids("source", blocks.source, producer.num_blocks)
    check_block_ids("destination", blocks.destination, consumer.num_blocks)
    if not plan.sends:
        empty = np.empty(0, dtype=np.uint64)
        return Descriptors(empty, empty, empty)
    _check_plan_fits(producer, consumer, plan)
    per_head = producer.bytes_per_head
    source = _addresses(producer, blocks.source, plan.src_head_offset * per_head)
    destination = _addresses(consumer, blocks.destination, plan.dst_head_offset * per_head)
    length = np.full(len(source), plan.head_count * per_head, dtype=np.uint64)
    return Descriptors(source, destination, length)


def merge_adjacent(descriptors: Descriptors) -> Descriptors:
    """Join descriptors that continue each other at the source and at the destination.

    Moves the same bytes to the same places, in order of destination address.
    """
    if descriptors.rows < 2:
        return descriptors
    order = np.argsort(descriptors.destination, kind="stable")
    source, destination, length = (column[order] for column in descriptors)
    continues = (source[:-1] + length[:-1] == source[1:]) & (
        destination[:-1] + length[:-1] == destination[1:]
    )
    starts = np.flatnonzero(np.concatenate(([True], ~continues)))
    return Descriptors(source[starts], destination[starts], np.add.reduceat(length, starts))


def concatenate(parts: Sequence[Descriptors]) -> Descriptors:
    """All descriptors of several regions, in the order given. At least one part."""
    return Descriptors(
        np.concatenate([part.source for part in parts]),
        np.concatenate([part.destination for part in parts]),
        np.concatenate([part.length for part in parts]),
    )


def _addresses(
    region: Region, blocks: npt.NDArray[np.uint64], offset: int
) -> npt.NDArray[np.uint64]:
    # Every operand is uint64: mixed with a signed one, numpy would go through float64.
    addresses: npt.NDArray[np.uint64] = (
        np.uint64(region.base_address) + blocks * np.uint64(region.block_bytes) + np.uint64(offset)
    )
    return addresses


def _check_plan_fits(producer: Region, consumer: Region, plan: TransferPlan) -> None:
    if producer.bytes_per_head != consumer.bytes_per_head:
        raise HypothesisError(
            "block_length_is_heads_times_bytes_per_head",
            f"{producer.label}: bytes_per_head={producer.bytes_per_head} at the producer, "
            f"{consumer.bytes_per_head} at the consumer; legal is equal",
        )
    for side, region, offset in (
        ("producer", producer, plan.src_head_offset),
        ("consumer", consumer, plan.dst_head_offset),
    ):
        if offset < 0 or plan.head_count < 1 or offset + plan.head_count > region.heads:
            raise HypothesisError(
                "block_length_is_heads_times_bytes_per_head",
                f"{region.label}: plan of {plan.head_count} heads at head {offset} of the "
                f"{side}'s block; legal is within its {region.heads} heads",
            )
