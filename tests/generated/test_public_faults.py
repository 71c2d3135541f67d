# SPDX-License-Identifier: Apache-2.0
"""Faults that were reported against real systems, with the right answer for their input."""

from __future__ import annotations

from collections import Counter

import pytest
from brute_force import Groups, heads_of

from kvreshard.generated.planner import (
    TransferPlan,
    compute_sender_transfer_plan,
    expected_receivers,
    expected_senders,
    plan_transfer,
    validate_region_lengths,
)


def heads_received(
    heads: int, producers: int, consumers: int, consumer: int, election: str = "lowest"
) -> list[tuple[int, int]]:
    """Return (producer rank, head) for each slot of a consumer's block, in order.

    The head is read off the producer's block by listing what that rank holds.
    """
    slots: dict[int, tuple[int, int]] = {}
    for producer in range(producers):
        plan = plan_transfer(
            total_num_kv_heads=heads,
            producer_tp_size=producers,
            producer_tp_rank=producer,
            consumer_tp_size=consumers,
            consumer_tp_rank=consumer,
            election=election,
        )
        held = heads_of(heads, producers, producer)
        for step in range(plan.head_count):
            slot = plan.dst_head_offset + step
            assert slot not in slots, "two ranks write the same slot"
            slots[slot] = (producer, held[plan.src_head_offset + step])
    return [slots[slot] for slot in sorted(slots)]


def test_one_replica_of_each_head_sends_not_only_rank_0() -> None:
    """Seen in vLLM PR #52516: of 262,144 bytes only rank 0's 65,536 were written."""
    head = 65_536
    plans = [
        compute_sender_transfer_plan(producer, 8, 0, 1, head, 4 * head, True, 4)
        for producer in range(8)
    ]
    writes = [plan[2] for plan in plans if plan[0]]
    assert writes == [0, 65_536, 131_072, 196_608]
    assert sum(plan[3] for plan in plans) == 262_144


@pytest.mark.parametrize("producers", [1, 2, 4])
def test_a_consumer_past_the_replication_boundary_reads_its_own_head(producers: int) -> None:
    """Seen in vLLM PR #52516, the reverse of the last: offsets went by the TP ratio."""
    for consumer in range(8):
        received = heads_received(4, producers, 8, consumer)
        assert [head for _, head in received] == [consumer // 2]


@pytest.mark.parametrize(
    ("heads", "producers", "consumers", "lengths"),
    [(8, 8, 16, (4096, 4096)), (4, 2, 8, (8192, 4096))],
)
def test_lengths_compare_by_heads_held_not_by_tp_size(
    heads: int, producers: int, consumers: int, lengths: tuple[int, int]
) -> None:
    """Seen in vLLM issue #45330, PRs #45860 and #45879: valid pairs were refused."""
    validate_region_lengths(
        total_num_kv_heads=heads,
        producer_tp_size=producers,
        consumer_tp_size=consumers,
        producer_region_bytes=lengths[0],
        consumer_region_bytes=lengths[1],
    )


def test_the_head_count_is_the_models_not_local_heads_times_tp_size() -> None:
    """SGLang #19086: with 2 heads on 4 ranks, 1 local head x 4 made 4 heads of them."""
    received = heads_received(2, 4, 1, 0)
    assert [head for _, head in received] == [0, 1]
    assert received[0][0] in (0, 1)
    assert received[1][0] in (2, 3)


def test_replicas_are_consecutive_ranks_not_a_modulo_of_the_rank() -> None:
    """SGLang #23746, #30997: the map was 0, 1, 0, 1."""
    received = [heads_received(2, 1, 4, consumer) for consumer in range(4)]
    assert received == [[(0, 0)], [(0, 0)], [(0, 1)], [(0, 1)]]


def test_two_source_slices_are_each_used_twice() -> None:
    """SGLang #31295, PR #31968: the source list was twice the registered region."""
    half, whole = 4096, 8192
    plans = [
        compute_sender_transfer_plan(0, 1, consumer, 4, whole, half, False, 2)
        for consumer in range(4)
    ]
    assert Counter(plans) == {(True, 0, 0, half): 2, (True, half, 0, half): 2}
    assert all(source + length <= whole for _, source, _, length in plans)


def test_sizes_that_do_not_divide_each_other_gather_the_right_heads() -> None:
    """An SGLang fork: overlap, out of bounds, and one rank was never contacted."""
    assert heads_received(6, 3, 2, 0) == [(0, 0), (0, 1), (1, 2)]
    assert heads_received(6, 3, 2, 1) == [(1, 3), (2, 4), (2, 5)]
    contacted = [
        expected_receivers(
            total_num_kv_heads=6, producer_tp_size=3, producer_tp_rank=p, consumer_tp_size=2
        )
        for p in range(3)
    ]
    assert contacted == [(0,), (0, 1), (1,)]


@pytest.mark.parametrize("election", ["lowest", "spread", "paired"])
def test_replicas_do_not_send_the_same_head_twice(election: str) -> None:
    """vllm-ascend #3366: duplicates broke the transfer where P > H."""
    for heads, producers, consumers in [(4, 8, 1), (4, 8, 2), (2, 8, 4), (1, 8, 2)]:
        for consumer in range(consumers):
            received = heads_received(heads, producers, consumers, consumer, election)
            assert tuple(head for _, head in received) == heads_of(heads, consumers, consumer)


@pytest.mark.parametrize("election", ["lowest", "spread", "paired"])
def test_every_consumer_rank_gets_its_heads_where_it_has_replicas(election: str) -> None:
    """vllm-ascend #5846: some consumer ranks got nothing where D > H."""
    for heads, producers, consumers in [(4, 2, 8), (4, 8, 16), (2, 1, 8), (1, 4, 8)]:
        for consumer in range(consumers):
            received = heads_received(heads, producers, consumers, consumer, election)
            assert tuple(head for _, head in received) == heads_of(heads, consumers, consumer)


def test_offsets_do_not_wrap() -> None:
    """SGLang #24648: an address overflowed."""
    head = 2**63
    plan = compute_sender_transfer_plan(0, 1, 1, 2, 8 * head, 4 * head, False, 8)
    assert plan == (True, 4 * head, 0, 4 * head)
    heads = 10**12
    assert plan_transfer(
        total_num_kv_heads=heads,
        producer_tp_size=1,
        producer_tp_rank=0,
        consumer_tp_size=heads * 10**6,
        consumer_tp_rank=heads * 10**6 - 1,
    ) == TransferPlan(True, heads - 1, 0, 1)


def test_paired_election_stays_within_the_pairs() -> None:
    """As in vLLM: with one head on two ranks each side, rank 1 sends to rank 1."""
    senders = [
        expected_senders(
            total_num_kv_heads=1,
            producer_tp_size=2,
            consumer_tp_size=2,
            consumer_tp_rank=consumer,
            election="paired",
        )
        for consumer in range(2)
    ]
    assert senders == [(0,), (1,)]
    groups = Groups(1, 2, 2)
    assert senders == [groups.senders("paired", consumer) for consumer in range(2)]


def test_a_cache_without_heads_to_split_is_one_head() -> None:
    """MLA: every producer rank holds the whole cache, and the paired one sends all of it."""
    plans = [
        compute_sender_transfer_plan(producer, 8, producer // 4, 2, 1152, 1152, True)
        for producer in range(8)
    ]
    assert plans == [
        (True, 0, 0, 1152) if producer % 4 == 0 else (False, 0, 0, 0) for producer in range(8)
    ]
