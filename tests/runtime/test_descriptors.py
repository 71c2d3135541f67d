# SPDX-License-Identifier: Apache-2.0
"""Descriptors: the public faults with their right values, block ids, addresses, merging."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvreshard.generated.planner import TransferPlan, head_count, plan_transfer
from kvreshard.runtime.blocks import block_map
from kvreshard.runtime.descriptors import (
    Descriptors,
    build_descriptors,
    concatenate,
    merge_adjacent,
)
from kvreshard.runtime.errors import HypothesisError, RequestError
from kvreshard.runtime.regions import Region

SLICE = 65536


def region(heads: int, *, base: int = 1 << 20, blocks: int = 16, per_head: int = SLICE) -> Region:
    return Region(
        layer="layers.0",
        component="kv",
        total_num_kv_heads=heads,
        layout="LBHNC",
        dtype="uint8",
        base_address=base,
        length=blocks * heads * per_head,
        num_blocks=blocks,
        block_bytes=heads * per_head,
        heads=heads,
        bytes_per_head=per_head,
        block_size=1,
        bytes_per_token=per_head,
    )


def moves(heads: int, prefill: int, decode: int) -> dict[tuple[int, int], tuple[int, int, int]]:
    """Per (producer, consumer) that talk: source offset, destination offset, length, in bytes."""
    producer = region(head_count(heads, prefill), base=1 << 20)
    consumer = region(head_count(heads, decode), base=1 << 40)
    found = {}
    for p in range(prefill):
        for d in range(decode):
            plan = plan_transfer(
                total_num_kv_heads=heads,
                producer_tp_size=prefill,
                producer_tp_rank=p,
                consumer_tp_size=decode,
                consumer_tp_rank=d,
            )
            made = build_descriptors(producer, consumer, plan, block_map([3], [5]))
            if made.rows:
                found[p, d] = (
                    int(made.source[0]) - producer.base_address - 3 * producer.block_bytes,
                    int(made.destination[0]) - consumer.base_address - 5 * consumer.block_bytes,
                    int(made.length[0]),
                )
    return found


# The public faults


def test_f1_each_head_is_sent_by_one_replica() -> None:
    found = moves(4, 8, 1)
    assert found == {
        (0, 0): (0, 0, SLICE),
        (2, 0): (0, 65536, SLICE),
        (4, 0): (0, 131072, SLICE),
        (6, 0): (0, 196608, SLICE),
    }
    assert sum(length for _, _, length in found.values()) == 262144


def test_f18_two_consumers_of_replicated_heads() -> None:
    assert moves(4, 8, 2) == {
        (0, 0): (0, 0, SLICE),
        (2, 0): (0, 65536, SLICE),
        (4, 1): (0, 0, SLICE),
        (6, 1): (0, 65536, SLICE),
    }


@pytest.mark.parametrize(
    ("prefill", "offsets"),
    [
        (1, [0, 0, 65536, 65536, 131072, 131072, 196608, 196608]),
        (2, [0, 0, 65536, 65536, 0, 0, 65536, 65536]),
        (4, [0] * 8),
    ],
)
def test_f2_and_f19_every_consumer_of_more_ranks_than_heads_reads_its_head(
    prefill: int, offsets: list[int]
) -> None:
    found = moves(4, prefill, 8)
    by_consumer = {d: (p, source) for (p, d), (source, _, _) in found.items()}
    assert [by_consumer[d][1] for d in range(8)] == offsets
    assert [by_consumer[d][0] for d in range(8)] == [d // 2 * prefill // 4 for d in range(8)]
    assert {(destination, length) for _, destination, length in found.values()} == {(0, SLICE)}


def test_f11_two_heads_come_from_two_pairs_of_replicas() -> None:
    assert moves(2, 4, 1) == {(0, 0): (0, 0, SLICE), (2, 0): (0, SLICE, SLICE)}


def test_f12_and_f13_two_slices_are_each_used_twice() -> None:
    assert moves(2, 1, 4) == {
        (0, 0): (0, 0, SLICE),
        (0, 1): (0, 0, SLICE),
        (0, 2): (SLICE, 0, SLICE),
        (0, 3): (SLICE, 0, SLICE),
    }


def test_f15_neither_size_divides_the_other() -> None:
    assert moves(6, 3, 2) == {
        (0, 0): (0, 0, 2 * SLICE),
        (1, 0): (0, 2 * SLICE, SLICE),
        (1, 1): (SLICE, 0, SLICE),
        (2, 1): (0, SLICE, 2 * SLICE),
    }


def test_f25_addresses_above_two_to_the_63() -> None:
    low, high = region(4, base=2**63 - SLICE), region(2, base=2**64 - 32 * SLICE - 1)
    made = build_descriptors(low, high, TransferPlan(True, 2, 0, 2), block_map([0, 15], [15, 0]))
    assert [column.dtype for column in made] == [np.uint64] * 3
    assert made.source.tolist() == [2**63 + SLICE, 2**63 + 61 * SLICE]
    assert made.destination.tolist() == [2**64 - 2 * SLICE - 1, 2**64 - 32 * SLICE - 1]
    assert merge_adjacent(made).source.tolist() == made.source.tolist()[::-1]
    assert made.total_bytes == 4 * SLICE


# Block ids


def test_f21_no_producer_blocks_against_two_consumer_blocks() -> None:
    with pytest.raises(RequestError) as raised:
        block_map([], [0, 1])
    assert str(raised.value) == (
        "0 producer blocks against 2 consumer blocks; legal is the same number"
    )


@pytest.mark.parametrize(
    ("source", "destination", "message"),
    [
        ([], [], "0 blocks; legal is 1 or more"),
        ([0, 1], [3, 3], "destination block 3 appears twice; legal is once"),
        ([-1], [0], "source block -1; legal is 0 or more"),
        ([0], [2**64], "destination block 18446744073709551616; legal is 0 or more"),
    ],
)
def test_block_ids_that_cannot_be_paired(
    source: list[int], destination: list[int], message: str
) -> None:
    with pytest.raises(RequestError) as raised:
        block_map(source, destination)
    assert str(raised.value) == message


@pytest.mark.parametrize(
    ("source", "destination", "message"),
    [
        ([0, 16], [0, 1], "source block 16; legal is 0 to 15"),
        ([0, 1], [0, 2**62], "destination block 4611686018427387904; legal is 0 to 15"),
    ],
)
def test_block_ids_outside_the_region(
    source: list[int], destination: list[int], message: str
) -> None:
    plan = TransferPlan(True, 0, 0, 1)
    with pytest.raises(RequestError) as raised:
        build_descriptors(region(1), region(1), plan, block_map(source, destination))
    assert str(raised.value) == message


def test_a_source_block_may_be_read_twice() -> None:
    made = build_descriptors(
        region(1), region(1), TransferPlan(True, 0, 0, 1), block_map([7, 7], [0, 1])
    )
    assert made.source[0] == made.source[1]


# A plan that does not fit


@pytest.mark.parametrize(
    "plan",
    [
        TransferPlan(True, 1, 0, 2),
        TransferPlan(True, 0, 3, 2),
        TransferPlan(True, 0, 0, 0),
        TransferPlan(True, -1, 0, 1),
    ],
)
def test_a_plan_outside_the_block_is_refused(plan: TransferPlan) -> None:
    with pytest.raises(HypothesisError, match="legal is within its"):
        build_descriptors(region(2), region(4), plan, block_map([0], [0]))


def test_different_bytes_per_head_are_refused() -> None:
    with pytest.raises(HypothesisError, match="bytes_per_head=65536 at the producer, 512 at"):
        build_descriptors(
            region(1), region(1, per_head=512), TransferPlan(True, 0, 0, 1), block_map([0], [0])
        )


def test_a_plan_that_does_not_send_makes_no_descriptor() -> None:
    made = build_descriptors(
        region(1), region(1), TransferPlan(False, 0, 0, 0), block_map([0], [0])
    )
    assert made.rows == 0
    assert made.total_bytes == 0


# Merging


def test_whole_blocks_next_to_each_other_become_one_descriptor() -> None:
    plan = TransferPlan(True, 0, 0, 2)
    made = build_descriptors(region(2), region(2), plan, block_map([4, 5, 6, 9], [1, 2, 3, 4]))
    merged = merge_adjacent(made)
    assert merged.length.tolist() == [3 * 2 * SLICE, 2 * SLICE]
    assert merged.source.tolist() == [made.source[0], made.source[3]]


def test_head_slices_of_larger_blocks_stay_apart() -> None:
    plan = TransferPlan(True, 0, 1, 1)
    made = build_descriptors(region(1), region(2), plan, block_map([0, 1], [0, 1]))
    assert merge_adjacent(made).rows == 2


@given(
    st.lists(st.integers(0, 15), min_size=1, max_size=16),
    st.permutations(range(16)),
    st.sampled_from([(1, 1, 0, 0, 1), (2, 2, 0, 0, 2), (2, 4, 1, 2, 1), (4, 1, 3, 0, 1)]),
)
def test_merging_moves_the_same_bytes(
    source: list[int], destination: list[int], shape: tuple[int, int, int, int, int]
) -> None:
    ours, theirs, src, dst, count = shape
    made = build_descriptors(
        region(ours, base=100, per_head=4),
        region(theirs, base=9000, per_head=4),
        TransferPlan(True, src, dst, count),
        block_map(source, destination[: len(source)]),
    )
    merged = merge_adjacent(made)
    assert bytes_moved(merged) == bytes_moved(made)
    assert merged.total_bytes == made.total_bytes
    ends = list(zip(*(column.tolist() for column in merged), strict=True))
    for (s, d, n), (next_s, next_d, _) in itertools.pairwise(ends):
        assert (s + n, d + n) != (next_s, next_d)


def test_parts_are_joined_in_order() -> None:
    one = build_descriptors(region(1), region(1), TransferPlan(True, 0, 0, 1), block_map([1], [2]))
    both = concatenate([one, one])
    assert both.rows == 2
    assert both.total_bytes == 2 * SLICE


def bytes_moved(descriptors: Descriptors) -> set[tuple[int, int]]:
    return {
        (source + at, destination + at)
        for source, destination, length in zip(
            *(column.tolist() for column in descriptors), strict=True
        )
        for at in range(length)
    }
