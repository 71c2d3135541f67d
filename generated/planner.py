# SPDX-License-Identifier: Apache-2.0
# DO NOT EDIT. Written by `make generate` from the formulas in spec/.
#
# spec:   sha256 8eab0c61ae6d1e7a19f98818e4ee5e10bfd73aa1413890c86e286f60c40dfffb
# ledger: sha256 648b045eb481104e2b4fa42e433e7ac81659cf5d8fcc37ef8bebb7717904093c
# solver: z3 5.4.1
#
# A copy of this file can be checked with `kvreshard verify-vendored FILE`.
"""Plan the copies that move a KV cache between tensor-parallel groups.

A group of T ranks holds H KV heads: split where T divides H, replicated where H
divides T. A plan says which heads a producer rank copies into a consumer rank's
block. Any two legal groups can be planned, neither size has to divide the other.

Standard library only. First come the formulas: each is printed from one formula of
the specification, whose theorems hold under the hypotheses it assumes, and checks
nothing. Then comes the interface, written by hand: it checks its arguments, so that
the hypotheses hold, and uses the formulas.

What the formulas take:

total_num_kv_heads [heads]: H, the KV heads of one layer of the model, before any
    sharding. Legal: at least 1.
tp_size [ranks]: T, the size of a tensor-parallel group. Legal: H % tp_size == 0 (heads
    are split) or tp_size % H == 0 (heads are replicated).
tp_rank [rank]: r, a rank of the group. Legal: 0 <= tp_rank < tp_size.
producer_tp_size [ranks]: P, the size of the group that holds the cache (prefill).
    Legal: H % producer_tp_size == 0 (heads are split) or producer_tp_size % H == 0
    (heads are replicated).
producer_tp_rank [rank]: p, a rank of the producer group. Legal: 0 <= producer_tp_rank <
    producer_tp_size.
consumer_tp_size [ranks]: D, the size of the group that receives the cache (decode).
    Legal: H % consumer_tp_size == 0 (heads are split) or consumer_tp_size % H == 0
    (heads are replicated).
consumer_tp_rank [rank]: d, a rank of the consumer group. Legal: 0 <= consumer_tp_rank <
    consumer_tp_size.
elected_ordinal [ordinal]: e, which of the producer ranks that hold a head sends it to
    this consumer. Legal: 0 <= elected_ordinal < replica_count(total_num_kv_heads,
    producer_tp_size).
head [head]: h, a head of the model. Legal: 0 <= head < total_num_kv_heads.
ordinal [ordinal]: one of the ranks that hold the same heads. Legal: 0 <= ordinal <
    replica_count(total_num_kv_heads, tp_size).
producer_region_bytes [bytes]: length of the producer's region, per block, without
    padding. Legal: any integer; the length check decides.
consumer_region_bytes [bytes]: length of the consumer's region, per block, without
    padding. Legal: any integer; the length check decides.

What the formulas assume:

total_num_kv_heads_is_positive: total_num_kv_heads >= 1
tp_size_is_positive: tp_size >= 1
group_is_legal: group_is_legal(total_num_kv_heads, tp_size)
rank_is_in_range: tp_rank >= 0 and tp_rank < tp_size
producer_tp_size_is_positive: producer_tp_size >= 1
producer_group_is_legal: group_is_legal(total_num_kv_heads, producer_tp_size)
producer_rank_is_in_range: producer_tp_rank >= 0 and producer_tp_rank < producer_tp_size
consumer_tp_size_is_positive: consumer_tp_size >= 1
consumer_group_is_legal: group_is_legal(total_num_kv_heads, consumer_tp_size)
consumer_rank_is_in_range: consumer_tp_rank >= 0 and consumer_tp_rank < consumer_tp_size
elected_ordinal_is_in_range: elected_ordinal >= 0 and elected_ordinal <
    replica_count(total_num_kv_heads, producer_tp_size)
head_is_in_range: head >= 0 and head < total_num_kv_heads
ordinal_is_in_range: ordinal >= 0 and ordinal < replica_count(total_num_kv_heads,
    tp_size)
"""

from __future__ import annotations

from operator import index
from typing import NamedTuple

__all__ = [
    "TransferPlan",
    "compute_sender_transfer_plan",
    "expected_receivers",
    "expected_senders",
    "plan_transfer",
    "validate_region_lengths",
]

# Formulas.


def group_is_legal(total_num_kv_heads: int, tp_size: int) -> bool:
    """Whether the heads can be divided evenly over the ranks, or the ranks over the
    heads.

    Takes: total_num_kv_heads (heads), tp_size (ranks).
    Returns: a truth value.
    Assumes: total_num_kv_heads_is_positive, tp_size_is_positive.
    Invariants proved: every_consumer_head_is_covered_exactly_once,
        no_two_writes_overlap, every_read_is_inside_the_producer_block,
        every_write_is_inside_the_consumer_block,
        every_written_byte_holds_the_same_head_token_and_position,
        only_a_holder_of_the_head_sends_it,
        producers_and_consumers_agree_on_their_peers,
        the_length_check_accepts_exactly_the_plannable_regions.
    """
    # spec: (or (= (mod total_num_kv_heads tp_size) 0) (= (mod tp_size
    #     total_num_kv_heads) 0))
    return total_num_kv_heads % tp_size == 0 or tp_size % total_num_kv_heads == 0


def head_count(total_num_kv_heads: int, tp_size: int) -> int:
    """Heads that each rank of the group holds; they are contiguous.

    Takes: total_num_kv_heads (heads), tp_size (ranks).
    Returns: heads.
    Assumes: total_num_kv_heads_is_positive, tp_size_is_positive, group_is_legal.
    Invariants proved: every_consumer_head_is_covered_exactly_once,
        no_two_writes_overlap, every_read_is_inside_the_producer_block,
        every_write_is_inside_the_consumer_block,
        every_written_byte_holds_the_same_head_token_and_position,
        only_a_holder_of_the_head_sends_it,
        producers_and_consumers_agree_on_their_peers,
        the_length_check_accepts_exactly_the_plannable_regions.
    """
    # spec: (max (div total_num_kv_heads tp_size) 1)
    return max(total_num_kv_heads // tp_size, 1)


def replica_count(total_num_kv_heads: int, tp_size: int) -> int:
    """Ranks of the group that hold the same heads; they are consecutive.

    Takes: total_num_kv_heads (heads), tp_size (ranks).
    Returns: ranks.
    Assumes: total_num_kv_heads_is_positive, tp_size_is_positive, group_is_legal.
    Invariants proved: every_consumer_head_is_covered_exactly_once,
        no_two_writes_overlap, every_read_is_inside_the_producer_block,
        every_write_is_inside_the_consumer_block,
        every_written_byte_holds_the_same_head_token_and_position,
        only_a_holder_of_the_head_sends_it,
        producers_and_consumers_agree_on_their_peers.
    """
    # spec: (max (div tp_size total_num_kv_heads) 1)
    return max(tp_size // total_num_kv_heads, 1)


def pair_is_divisible(producer_tp_size: int, consumer_tp_size: int) -> bool:
    """Whether one group size divides the other, without which there are no pairs.

    Takes: producer_tp_size (ranks), consumer_tp_size (ranks).
    Returns: a truth value.
    Assumes: producer_tp_size_is_positive, producer_group_is_legal,
        consumer_tp_size_is_positive, consumer_group_is_legal.
    Invariants proved: every_consumer_head_is_covered_exactly_once,
        no_two_writes_overlap, every_read_is_inside_the_producer_block,
        every_write_is_inside_the_consumer_block,
        every_written_byte_holds_the_same_head_token_and_position,
        only_a_holder_of_the_head_sends_it,
        producers_and_consumers_agree_on_their_peers,
        the_length_check_accepts_exactly_the_plannable_regions.
    """
    # spec: (or (= (mod producer_tp_size consumer_tp_size) 0) (= (mod consumer_tp_size
    #     producer_tp_size) 0))
    return (
        producer_tp_size % consumer_tp_size == 0
        or consumer_tp_size % producer_tp_size == 0
    )


def replica_ordinal(total_num_kv_heads: int, tp_size: int, tp_rank: int) -> int:
    """Which of the ranks that hold the same heads this rank is, counted from 0.

    Takes: total_num_kv_heads (heads), tp_size (ranks), tp_rank (rank).
    Returns: an ordinal.
    Assumes: total_num_kv_heads_is_positive, tp_size_is_positive, group_is_legal,
        rank_is_in_range.
    Invariants proved: every_consumer_head_is_covered_exactly_once,
        no_two_writes_overlap, every_read_is_inside_the_producer_block,
        every_write_is_inside_the_consumer_block,
        every_written_byte_holds_the_same_head_token_and_position,
        only_a_holder_of_the_head_sends_it,
        producers_and_consumers_agree_on_their_peers.
    """
    # spec: (mod tp_rank (replica_count total_num_kv_heads tp_size))
    return tp_rank % replica_count(total_num_kv_heads, tp_size)


def first_head(total_num_kv_heads: int, tp_size: int, tp_rank: int) -> int:
    """First head that the rank holds, counted over the whole model.

    Takes: total_num_kv_heads (heads), tp_size (ranks), tp_rank (rank).
    Returns: a head.
    Assumes: total_num_kv_heads_is_positive, tp_size_is_positive, group_is_legal,
        rank_is_in_range.
    Invariants proved: every_consumer_head_is_covered_exactly_once,
        no_two_writes_overlap, every_read_is_inside_the_producer_block,
        every_write_is_inside_the_consumer_block,
        every_written_byte_holds_the_same_head_token_and_position,
        only_a_holder_of_the_head_sends_it,
        producers_and_consumers_agree_on_their_peers.
    """
    # spec: (div (* tp_rank total_num_kv_heads) tp_size)
    return tp_rank * total_num_kv_heads // tp_size


def overlap_start(
    total_num_kv_heads: int,
    producer_tp_size: int,
    producer_tp_rank: int,
    consumer_tp_size: int,
    consumer_tp_rank: int,
) -> int:
    """First head that both ranks may hold, counted over the whole model.

    Takes: total_num_kv_heads (heads), producer_tp_size (ranks), producer_tp_rank
        (rank), consumer_tp_size (ranks), consumer_tp_rank (rank).
    Returns: a head.
    Assumes: total_num_kv_heads_is_positive, producer_tp_size_is_positive,
        producer_group_is_legal, producer_rank_is_in_range,
        consumer_tp_size_is_positive, consumer_group_is_legal,
        consumer_rank_is_in_range.
    Invariants proved: every_consumer_head_is_covered_exactly_once,
        no_two_writes_overlap, every_read_is_inside_the_producer_block,
        every_write_is_inside_the_consumer_block,
        every_written_byte_holds_the_same_head_token_and_position,
        only_a_holder_of_the_head_sends_it,
        producers_and_consumers_agree_on_their_peers.
    """
    # spec: (max (first_head total_num_kv_heads producer_tp_size producer_tp_rank)
    #     (first_head total_num_kv_heads consumer_tp_size consumer_tp_rank))
    producer_first_head = first_head(
        total_num_kv_heads, producer_tp_size, producer_tp_rank
    )
    consumer_first_head = first_head(
        total_num_kv_heads, consumer_tp_size, consumer_tp_rank
    )
    return max(producer_first_head, consumer_first_head)


def overlap_end(
    total_num_kv_heads: int,
    producer_tp_size: int,
    producer_tp_rank: int,
    consumer_tp_size: int,
    consumer_tp_rank: int,
) -> int:
    """First head after `overlap_start` that not both ranks hold, or a smaller one.

    Takes: total_num_kv_heads (heads), producer_tp_size (ranks), producer_tp_rank
        (rank), consumer_tp_size (ranks), consumer_tp_rank (rank).
    Returns: a head.
    Assumes: total_num_kv_heads_is_positive, producer_tp_size_is_positive,
        producer_group_is_legal, producer_rank_is_in_range,
        consumer_tp_size_is_positive, consumer_group_is_legal,
        consumer_rank_is_in_range.
    Invariants proved: every_consumer_head_is_covered_exactly_once,
        no_two_writes_overlap, every_read_is_inside_the_producer_block,
        every_write_is_inside_the_consumer_block,
        every_written_byte_holds_the_same_head_token_and_position,
        only_a_holder_of_the_head_sends_it,
        producers_and_consumers_agree_on_their_peers.
    """
    # spec: (min (+ (first_head total_num_kv_heads producer_tp_size producer_tp_rank)
    #     (head_count total_num_kv_heads producer_tp_size)) (+ (first_head
    #     total_num_kv_heads consumer_tp_size consumer_tp_rank) (head_count
    #     total_num_kv_heads consumer_tp_size)))
    producer_first_head = first_head(
        total_num_kv_heads, producer_tp_size, producer_tp_rank
    )
    producer_head_count = head_count(total_num_kv_heads, producer_tp_size)
    consumer_first_head = first_head(
        total_num_kv_heads, consumer_tp_size, consumer_tp_rank
    )
    consumer_head_count = head_count(total_num_kv_heads, consumer_tp_size)
    return min(
        producer_first_head + producer_head_count,
        consumer_first_head + consumer_head_count,
    )


def sends(
    total_num_kv_heads: int,
    producer_tp_size: int,
    producer_tp_rank: int,
    consumer_tp_size: int,
    consumer_tp_rank: int,
    elected_ordinal: int,
) -> bool:
    """Whether the producer rank sends to the consumer rank: elected, and their heads
    overlap.

    Takes: total_num_kv_heads (heads), producer_tp_size (ranks), producer_tp_rank
        (rank), consumer_tp_size (ranks), consumer_tp_rank (rank), elected_ordinal
        (ordinal).
    Returns: a truth value.
    Assumes: total_num_kv_heads_is_positive, producer_tp_size_is_positive,
        producer_group_is_legal, producer_rank_is_in_range,
        consumer_tp_size_is_positive, consumer_group_is_legal,
        consumer_rank_is_in_range, elected_ordinal_is_in_range.
    Invariants proved: every_consumer_head_is_covered_exactly_once,
        no_two_writes_overlap, every_read_is_inside_the_producer_block,
        every_write_is_inside_the_consumer_block,
        every_written_byte_holds_the_same_head_token_and_position,
        only_a_holder_of_the_head_sends_it,
        producers_and_consumers_agree_on_their_peers.
    """
    # spec: (and (= (replica_ordinal total_num_kv_heads producer_tp_size
    #     producer_tp_rank) elected_ordinal) (< (overlap_start total_num_kv_heads
    #     producer_tp_size producer_tp_rank consumer_tp_size consumer_tp_rank)
    #     (overlap_end total_num_kv_heads producer_tp_size producer_tp_rank
    #     consumer_tp_size consumer_tp_rank)))
    producer_replica_ordinal = replica_ordinal(
        total_num_kv_heads, producer_tp_size, producer_tp_rank
    )
    overlap_start_value = overlap_start(
        total_num_kv_heads,
        producer_tp_size,
        producer_tp_rank,
        consumer_tp_size,
        consumer_tp_rank,
    )
    overlap_end_value = overlap_end(
        total_num_kv_heads,
        producer_tp_size,
        producer_tp_rank,
        consumer_tp_size,
        consumer_tp_rank,
    )
    return (
        producer_replica_ordinal == elected_ordinal
        and overlap_start_value < overlap_end_value
    )


def src_head_offset(
    total_num_kv_heads: int,
    producer_tp_size: int,
    producer_tp_rank: int,
    consumer_tp_size: int,
    consumer_tp_rank: int,
) -> int:
    """Heads to skip in the producer's block before the copy starts.

    Takes: total_num_kv_heads (heads), producer_tp_size (ranks), producer_tp_rank
        (rank), consumer_tp_size (ranks), consumer_tp_rank (rank).
    Returns: heads.
    Assumes: total_num_kv_heads_is_positive, producer_tp_size_is_positive,
        producer_group_is_legal, producer_rank_is_in_range,
        consumer_tp_size_is_positive, consumer_group_is_legal,
        consumer_rank_is_in_range.
    Invariants proved: every_read_is_inside_the_producer_block,
        every_written_byte_holds_the_same_head_token_and_position.
    """
    # spec: (- (overlap_start total_num_kv_heads producer_tp_size producer_tp_rank
    #     consumer_tp_size consumer_tp_rank) (first_head total_num_kv_heads
    #     producer_tp_size producer_tp_rank))
    overlap_start_value = overlap_start(
        total_num_kv_heads,
        producer_tp_size,
        producer_tp_rank,
        consumer_tp_size,
        consumer_tp_rank,
    )
    producer_first_head = first_head(
        total_num_kv_heads, producer_tp_size, producer_tp_rank
    )
    return overlap_start_value - producer_first_head


def dst_head_offset(
    total_num_kv_heads: int,
    producer_tp_size: int,
    producer_tp_rank: int,
    consumer_tp_size: int,
    consumer_tp_rank: int,
) -> int:
    """Heads to skip in the consumer's block before the copy starts.

    Takes: total_num_kv_heads (heads), producer_tp_size (ranks), producer_tp_rank
        (rank), consumer_tp_size (ranks), consumer_tp_rank (rank).
    Returns: heads.
    Assumes: total_num_kv_heads_is_positive, producer_tp_size_is_positive,
        producer_group_is_legal, producer_rank_is_in_range,
        consumer_tp_size_is_positive, consumer_group_is_legal,
        consumer_rank_is_in_range.
    Invariants proved: every_consumer_head_is_covered_exactly_once,
        no_two_writes_overlap, every_write_is_inside_the_consumer_block,
        every_written_byte_holds_the_same_head_token_and_position,
        only_a_holder_of_the_head_sends_it.
    """
    # spec: (- (overlap_start total_num_kv_heads producer_tp_size producer_tp_rank
    #     consumer_tp_size consumer_tp_rank) (first_head total_num_kv_heads
    #     consumer_tp_size consumer_tp_rank))
    overlap_start_value = overlap_start(
        total_num_kv_heads,
        producer_tp_size,
        producer_tp_rank,
        consumer_tp_size,
        consumer_tp_rank,
    )
    consumer_first_head = first_head(
        total_num_kv_heads, consumer_tp_size, consumer_tp_rank
    )
    return overlap_start_value - consumer_first_head


def copied_head_count(
    total_num_kv_heads: int,
    producer_tp_size: int,
    producer_tp_rank: int,
    consumer_tp_size: int,
    consumer_tp_rank: int,
) -> int:
    """Heads that the copy moves, where the producer rank sends.

    Takes: total_num_kv_heads (heads), producer_tp_size (ranks), producer_tp_rank
        (rank), consumer_tp_size (ranks), consumer_tp_rank (rank).
    Returns: heads.
    Assumes: total_num_kv_heads_is_positive, producer_tp_size_is_positive,
        producer_group_is_legal, producer_rank_is_in_range,
        consumer_tp_size_is_positive, consumer_group_is_legal,
        consumer_rank_is_in_range.
    Invariants proved: every_consumer_head_is_covered_exactly_once,
        no_two_writes_overlap, every_read_is_inside_the_producer_block,
        every_write_is_inside_the_consumer_block,
        every_written_byte_holds_the_same_head_token_and_position,
        only_a_holder_of_the_head_sends_it.
    """
    # spec: (- (overlap_end total_num_kv_heads producer_tp_size producer_tp_rank
    #     consumer_tp_size consumer_tp_rank) (overlap_start total_num_kv_heads
    #     producer_tp_size producer_tp_rank consumer_tp_size consumer_tp_rank))
    overlap_end_value = overlap_end(
        total_num_kv_heads,
        producer_tp_size,
        producer_tp_rank,
        consumer_tp_size,
        consumer_tp_rank,
    )
    overlap_start_value = overlap_start(
        total_num_kv_heads,
        producer_tp_size,
        producer_tp_rank,
        consumer_tp_size,
        consumer_tp_rank,
    )
    return overlap_end_value - overlap_start_value


def owner(total_num_kv_heads: int, tp_size: int, head: int, ordinal: int) -> int:
    """Rank that holds the head and has the ordinal among those that do.

    Takes: total_num_kv_heads (heads), tp_size (ranks), head (head), ordinal (ordinal).
    Returns: a rank.
    Assumes: total_num_kv_heads_is_positive, tp_size_is_positive, group_is_legal,
        head_is_in_range, ordinal_is_in_range.
    Invariants proved: every_consumer_head_is_covered_exactly_once,
        producers_and_consumers_agree_on_their_peers.
    """
    # spec: (+ (* (div head (head_count total_num_kv_heads tp_size)) (replica_count
    #     total_num_kv_heads tp_size)) ordinal)
    head_count_value = head_count(total_num_kv_heads, tp_size)
    replica_count_value = replica_count(total_num_kv_heads, tp_size)
    return head // head_count_value * replica_count_value + ordinal


def first_sender(
    total_num_kv_heads: int,
    producer_tp_size: int,
    consumer_tp_size: int,
    consumer_tp_rank: int,
    elected_ordinal: int,
) -> int:
    """Lowest producer rank that sends to the consumer rank.

    The others follow at a distance of `replica_count` ranks, up to `last_sender`.

    Takes: total_num_kv_heads (heads), producer_tp_size (ranks), consumer_tp_size
        (ranks), consumer_tp_rank (rank), elected_ordinal (ordinal).
    Returns: a rank.
    Assumes: total_num_kv_heads_is_positive, producer_tp_size_is_positive,
        producer_group_is_legal, consumer_tp_size_is_positive, consumer_group_is_legal,
        consumer_rank_is_in_range, elected_ordinal_is_in_range.
    Invariants proved: producers_and_consumers_agree_on_their_peers.
    """
    # spec: (owner total_num_kv_heads producer_tp_size (first_head total_num_kv_heads
    #     consumer_tp_size consumer_tp_rank) elected_ordinal)
    consumer_first_head = first_head(
        total_num_kv_heads, consumer_tp_size, consumer_tp_rank
    )
    return owner(
        total_num_kv_heads, producer_tp_size, consumer_first_head, elected_ordinal
    )


def last_sender(
    total_num_kv_heads: int,
    producer_tp_size: int,
    consumer_tp_size: int,
    consumer_tp_rank: int,
    elected_ordinal: int,
) -> int:
    """Highest producer rank that sends to the consumer rank.

    Takes: total_num_kv_heads (heads), producer_tp_size (ranks), consumer_tp_size
        (ranks), consumer_tp_rank (rank), elected_ordinal (ordinal).
    Returns: a rank.
    Assumes: total_num_kv_heads_is_positive, producer_tp_size_is_positive,
        producer_group_is_legal, consumer_tp_size_is_positive, consumer_group_is_legal,
        consumer_rank_is_in_range, elected_ordinal_is_in_range.
    Invariants proved: producers_and_consumers_agree_on_their_peers.
    """
    # spec: (owner total_num_kv_heads producer_tp_size (- (+ (first_head
    #     total_num_kv_heads consumer_tp_size consumer_tp_rank) (head_count
    #     total_num_kv_heads consumer_tp_size)) 1) elected_ordinal)
    consumer_first_head = first_head(
        total_num_kv_heads, consumer_tp_size, consumer_tp_rank
    )
    consumer_head_count = head_count(total_num_kv_heads, consumer_tp_size)
    return owner(
        total_num_kv_heads,
        producer_tp_size,
        consumer_first_head + consumer_head_count - 1,
        elected_ordinal,
    )


def first_receiver_candidate(
    total_num_kv_heads: int,
    producer_tp_size: int,
    producer_tp_rank: int,
    consumer_tp_size: int,
) -> int:
    """Lowest consumer rank whose heads overlap those of the producer rank.

    Takes: total_num_kv_heads (heads), producer_tp_size (ranks), producer_tp_rank
        (rank), consumer_tp_size (ranks).
    Returns: a rank.
    Assumes: total_num_kv_heads_is_positive, producer_tp_size_is_positive,
        producer_group_is_legal, producer_rank_is_in_range,
        consumer_tp_size_is_positive, consumer_group_is_legal.
    Invariants proved: producers_and_consumers_agree_on_their_peers.
    """
    # spec: (owner total_num_kv_heads consumer_tp_size (first_head total_num_kv_heads
    #     producer_tp_size producer_tp_rank) 0)
    producer_first_head = first_head(
        total_num_kv_heads, producer_tp_size, producer_tp_rank
    )
    return owner(total_num_kv_heads, consumer_tp_size, producer_first_head, 0)


def last_receiver_candidate(
    total_num_kv_heads: int,
    producer_tp_size: int,
    producer_tp_rank: int,
    consumer_tp_size: int,
) -> int:
    """Highest consumer rank whose heads overlap those of the producer rank.

    Takes: total_num_kv_heads (heads), producer_tp_size (ranks), producer_tp_rank
        (rank), consumer_tp_size (ranks).
    Returns: a rank.
    Assumes: total_num_kv_heads_is_positive, producer_tp_size_is_positive,
        producer_group_is_legal, producer_rank_is_in_range,
        consumer_tp_size_is_positive, consumer_group_is_legal.
    Invariants proved: producers_and_consumers_agree_on_their_peers.
    """
    # spec: (owner total_num_kv_heads consumer_tp_size (- (+ (first_head
    #     total_num_kv_heads producer_tp_size producer_tp_rank) (head_count
    #     total_num_kv_heads producer_tp_size)) 1) (- (replica_count total_num_kv_heads
    #     consumer_tp_size) 1))
    producer_first_head = first_head(
        total_num_kv_heads, producer_tp_size, producer_tp_rank
    )
    producer_head_count = head_count(total_num_kv_heads, producer_tp_size)
    consumer_replica_count = replica_count(total_num_kv_heads, consumer_tp_size)
    return owner(
        total_num_kv_heads,
        consumer_tp_size,
        producer_first_head + producer_head_count - 1,
        consumer_replica_count - 1,
    )


def region_lengths_match(
    total_num_kv_heads: int,
    producer_tp_size: int,
    consumer_tp_size: int,
    producer_region_bytes: int,
    consumer_region_bytes: int,
) -> bool:
    """Whether both lengths are a whole number of the same bytes per head.

    The product alone would accept lengths that no number of bytes per head explains: 2
    and 4 heads, 3 and 6 bytes.

    Takes: total_num_kv_heads (heads), producer_tp_size (ranks), consumer_tp_size
        (ranks), producer_region_bytes (bytes), consumer_region_bytes (bytes).
    Returns: a truth value.
    Assumes: total_num_kv_heads_is_positive, producer_tp_size_is_positive,
        producer_group_is_legal, consumer_tp_size_is_positive, consumer_group_is_legal.
    Invariants proved: the_length_check_accepts_exactly_the_plannable_regions.
    """
    # spec: (and (>= producer_region_bytes 1) (>= consumer_region_bytes 1) (= (mod
    #     producer_region_bytes (head_count total_num_kv_heads producer_tp_size)) 0) (=
    #     (* producer_region_bytes (head_count total_num_kv_heads consumer_tp_size)) (*
    #     consumer_region_bytes (head_count total_num_kv_heads producer_tp_size))))
    producer_head_count = head_count(total_num_kv_heads, producer_tp_size)
    consumer_head_count = head_count(total_num_kv_heads, consumer_tp_size)
    return (
        producer_region_bytes >= 1
        and consumer_region_bytes >= 1
        and producer_region_bytes % producer_head_count == 0
        and producer_region_bytes * consumer_head_count
        == consumer_region_bytes * producer_head_count
    )


def elect_lowest(
    total_num_kv_heads: int,
    producer_tp_size: int,
    consumer_tp_size: int,
    consumer_tp_rank: int,
) -> int:
    """The lowest rank that holds the heads sends them.

    Takes: total_num_kv_heads (heads), producer_tp_size (ranks), consumer_tp_size
        (ranks), consumer_tp_rank (rank).
    Returns: an ordinal.
    Assumes: total_num_kv_heads_is_positive, producer_tp_size_is_positive,
        producer_group_is_legal, consumer_tp_size_is_positive, consumer_group_is_legal,
        consumer_rank_is_in_range.
    """
    # spec: 0
    return 0


def elect_spread(
    total_num_kv_heads: int,
    producer_tp_size: int,
    consumer_tp_size: int,
    consumer_tp_rank: int,
) -> int:
    """Consumers take turns, so that those of one head pull from different replicas.

    Takes: total_num_kv_heads (heads), producer_tp_size (ranks), consumer_tp_size
        (ranks), consumer_tp_rank (rank).
    Returns: an ordinal.
    Assumes: total_num_kv_heads_is_positive, producer_tp_size_is_positive,
        producer_group_is_legal, consumer_tp_size_is_positive, consumer_group_is_legal,
        consumer_rank_is_in_range.
    """
    # spec: (mod consumer_tp_rank (replica_count total_num_kv_heads producer_tp_size))
    return consumer_tp_rank % replica_count(total_num_kv_heads, producer_tp_size)


def elect_paired(
    total_num_kv_heads: int,
    producer_tp_size: int,
    consumer_tp_size: int,
    consumer_tp_rank: int,
) -> int:
    """The first rank of the consumer's pairs sends, as in vLLM's Mooncake connector.

    Takes: total_num_kv_heads (heads), producer_tp_size (ranks), consumer_tp_size
        (ranks), consumer_tp_rank (rank).
    Returns: an ordinal.
    Assumes: total_num_kv_heads_is_positive, producer_tp_size_is_positive,
        producer_group_is_legal, consumer_tp_size_is_positive, consumer_group_is_legal,
        consumer_rank_is_in_range.
    """
    # spec: (mod (div (* consumer_tp_rank producer_tp_size) consumer_tp_size)
    #     (replica_count total_num_kv_heads producer_tp_size))
    producer_replica_count = replica_count(total_num_kv_heads, producer_tp_size)
    return (
        consumer_tp_rank * producer_tp_size // consumer_tp_size % producer_replica_count
    )


# Interface.

_ELECTIONS = {
    "lowest": elect_lowest,
    "spread": elect_spread,
    "paired": elect_paired,
}
_NEEDS_DIVISIBLE_PAIR = ("paired",)


class TransferPlan(NamedTuple):
    """What a producer rank copies into a consumer rank's block, in heads.

    Offsets count from the start of each rank's own block. All are zero where the
    producer rank does not send.
    """

    sends: bool
    src_head_offset: int
    dst_head_offset: int
    head_count: int


_NOTHING = TransferPlan(False, 0, 0, 0)


def plan_transfer(
    *,
    total_num_kv_heads: int,
    producer_tp_size: int,
    producer_tp_rank: int,
    consumer_tp_size: int,
    consumer_tp_rank: int,
    election: str = "lowest",
) -> TransferPlan:
    """Return what one producer rank copies into one consumer rank, in heads.

    Args:
        total_num_kv_heads: KV heads of the model, before any sharding.
        producer_tp_size: ranks of the group that holds the cache.
        producer_tp_rank: rank that may send.
        consumer_tp_size: ranks of the group that receives the cache.
        consumer_tp_rank: rank that may receive.
        election: which of the producer ranks with the same heads sends: "lowest",
            "spread" (consumers take turns) or "paired" (as in vLLM, where one size
            divides the other). Producers and consumers have to use the same.

    Raises:
        ValueError: an argument is out of its range; the message says what is legal.
        TypeError: a number is not an integer.
    """
    heads = _at_least_one("total_num_kv_heads", total_num_kv_heads)
    producers = _group_size("producer_tp_size", producer_tp_size, heads)
    producer = _rank("producer_tp_rank", producer_tp_rank, producers)
    consumers = _group_size("consumer_tp_size", consumer_tp_size, heads)
    consumer = _rank("consumer_tp_rank", consumer_tp_rank, consumers)
    _check_election(
        election, "producer_tp_size", producers, "consumer_tp_size", consumers
    )
    ordinal = _ELECTIONS[election](heads, producers, consumers, consumer)
    return _plan(heads, producers, producer, consumers, consumer, ordinal)


def expected_senders(
    *,
    total_num_kv_heads: int,
    producer_tp_size: int,
    consumer_tp_size: int,
    consumer_tp_rank: int,
    election: str = "lowest",
) -> tuple[int, ...]:
    """Return the producer ranks that send to a consumer rank, sorted.

    The arguments are those of `plan_transfer`, and so are the errors.
    """
    heads = _at_least_one("total_num_kv_heads", total_num_kv_heads)
    producers = _group_size("producer_tp_size", producer_tp_size, heads)
    consumers = _group_size("consumer_tp_size", consumer_tp_size, heads)
    consumer = _rank("consumer_tp_rank", consumer_tp_rank, consumers)
    _check_election(
        election, "producer_tp_size", producers, "consumer_tp_size", consumers
    )
    ordinal = _ELECTIONS[election](heads, producers, consumers, consumer)
    first = first_sender(heads, producers, consumers, consumer, ordinal)
    last = last_sender(heads, producers, consumers, consumer, ordinal)
    return tuple(range(first, last + 1, replica_count(heads, producers)))


def expected_receivers(
    *,
    total_num_kv_heads: int,
    producer_tp_size: int,
    producer_tp_rank: int,
    consumer_tp_size: int,
    election: str = "lowest",
) -> tuple[int, ...]:
    """Return the consumer ranks that a producer rank sends to, sorted.

    The arguments are those of `plan_transfer`, and so are the errors.
    """
    heads = _at_least_one("total_num_kv_heads", total_num_kv_heads)
    producers = _group_size("producer_tp_size", producer_tp_size, heads)
    producer = _rank("producer_tp_rank", producer_tp_rank, producers)
    consumers = _group_size("consumer_tp_size", consumer_tp_size, heads)
    _check_election(
        election, "producer_tp_size", producers, "consumer_tp_size", consumers
    )
    elect = _ELECTIONS[election]
    first = first_receiver_candidate(heads, producers, producer, consumers)
    last = last_receiver_candidate(heads, producers, producer, consumers)
    return tuple(
        consumer
        for consumer in range(first, last + 1)
        if sends(
            heads,
            producers,
            producer,
            consumers,
            consumer,
            elect(heads, producers, consumers, consumer),
        )
    )


def validate_region_lengths(
    *,
    total_num_kv_heads: int,
    producer_tp_size: int,
    consumer_tp_size: int,
    producer_region_bytes: int,
    consumer_region_bytes: int,
) -> None:
    """Check that two regions hold the same number of bytes for each head.

    Lengths are compared by the heads that each side holds, not by the TP sizes: past
    the number of heads a larger group has more replicas, not shorter regions.
    Hypothesis `a_region_is_one_layer`: the lengths are those of one layer's block.
    Over a span of several layers they may match, and say nothing about its layers.

    Args:
        total_num_kv_heads: KV heads of the model, before any sharding.
        producer_tp_size: ranks of the group that holds the cache.
        consumer_tp_size: ranks of the group that receives the cache.
        producer_region_bytes: bytes of one block of the producer, without padding.
        consumer_region_bytes: bytes of one block of the consumer, without padding.

    Raises:
        ValueError: the lengths do not match, or an argument is out of its range; the
            message says what is legal.
        TypeError: a number is not an integer.
    """
    heads = _at_least_one("total_num_kv_heads", total_num_kv_heads)
    _check_region_lengths(
        heads,
        _group_size("producer_tp_size", producer_tp_size, heads),
        _group_size("consumer_tp_size", consumer_tp_size, heads),
        "producer_region_bytes",
        _integer("producer_region_bytes", producer_region_bytes),
        "consumer_region_bytes",
        _integer("consumer_region_bytes", consumer_region_bytes),
    )


def compute_sender_transfer_plan(
    local_tp_rank: int,
    local_tp_size: int,
    remote_tp_rank: int,
    remote_tp_size: int,
    local_kv_block_len: int,
    remote_kv_block_len: int,
    producer_cache_replicated: bool,
    total_num_kv_heads: int | None = None,
) -> tuple[bool, int, int, int]:
    """Return whether a producer rank sends, from and to which offset, and how much.

    For connectors that plan one pair of ranks at a time, in bytes: local is the
    producer, remote the consumer, and the ranks are paired (election "paired").
    Hypothesis `a_region_is_one_layer`: the lengths are those of one layer's block.
    Over a span of several layers the offsets would be right for none but the first.

    Args:
        local_tp_rank: the producer's rank.
        local_tp_size: the producer's group size.
        remote_tp_rank: the consumer's rank.
        remote_tp_size: the consumer's group size; one size has to divide the other.
        local_kv_block_len: bytes of the producer's block, without padding.
        remote_kv_block_len: bytes of the consumer's block, without padding.
        producer_cache_replicated: whether several producer ranks hold the same heads.
        total_num_kv_heads: KV heads of the model, before any sharding. None is legal
            only where nothing has to be split: a replicated cache and equal lengths.

    Returns:
        (sends, source offset, destination offset, length); zeros where it does not.

    Raises:
        ValueError: the lengths do not match, or an argument is out of its range or
            contradicts another; the message says what is legal.
        TypeError: a number is not an integer, or the flag is not a bool.
    """
    local_len = _integer("local_kv_block_len", local_kv_block_len)
    remote_len = _integer("remote_kv_block_len", remote_kv_block_len)
    if not isinstance(producer_cache_replicated, bool):
        raise TypeError(
            "producer_cache_replicated must be True or False, "
            f"got {producer_cache_replicated!r}"
        )
    if total_num_kv_heads is None:
        heads = 1
        if not producer_cache_replicated or local_len != remote_len:
            raise ValueError(
                "total_num_kv_heads=None is legal only where nothing has to be split: "
                "producer_cache_replicated=True and equal block lengths; got "
                f"producer_cache_replicated={producer_cache_replicated}, "
                f"local_kv_block_len={local_len}, remote_kv_block_len={remote_len}"
            )
    else:
        heads = _at_least_one("total_num_kv_heads", total_num_kv_heads)
    producers = _group_size("local_tp_size", local_tp_size, heads)
    producer = _rank("local_tp_rank", local_tp_rank, producers)
    consumers = _group_size("remote_tp_size", remote_tp_size, heads)
    consumer = _rank("remote_tp_rank", remote_tp_rank, consumers)
    replicated = producers > heads
    if total_num_kv_heads is not None and producer_cache_replicated != replicated:
        mla = (
            "; MLA, which has no heads to split, passes total_num_kv_heads=None and "
            "producer_cache_replicated=True"
        )
        raise ValueError(
            f"producer_cache_replicated={producer_cache_replicated} contradicts "
            f"local_tp_size={producers} and total_num_kv_heads={heads}; "
            f"legal: {replicated}{mla if heads == 1 else ''}"
        )
    _check_election("paired", "local_tp_size", producers, "remote_tp_size", consumers)
    _check_region_lengths(
        heads,
        producers,
        consumers,
        "local_kv_block_len",
        local_len,
        "remote_kv_block_len",
        remote_len,
    )
    ordinal = _ELECTIONS["paired"](heads, producers, consumers, consumer)
    plan = _plan(heads, producers, producer, consumers, consumer, ordinal)
    bytes_per_head = local_len // head_count(heads, producers)
    return (
        plan.sends,
        plan.src_head_offset * bytes_per_head,
        plan.dst_head_offset * bytes_per_head,
        plan.head_count * bytes_per_head,
    )


def _plan(
    heads: int,
    producers: int,
    producer: int,
    consumers: int,
    consumer: int,
    ordinal: int,
) -> TransferPlan:
    if not sends(heads, producers, producer, consumers, consumer, ordinal):
        return _NOTHING
    return TransferPlan(
        True,
        src_head_offset(heads, producers, producer, consumers, consumer),
        dst_head_offset(heads, producers, producer, consumers, consumer),
        copied_head_count(heads, producers, producer, consumers, consumer),
    )


def _integer(field: str, value: int) -> int:
    if isinstance(value, bool):
        raise TypeError(f"{field} must be an integer, got {value!r}")
    try:
        # The sign refuses numpy's bool, which its older releases take for an index.
        return index(+value)
    except TypeError:
        raise TypeError(f"{field} must be an integer, got {value!r}") from None


def _at_least_one(field: str, value: int) -> int:
    number = _integer(field, value)
    if number < 1:
        raise ValueError(f"{field}={number} is not legal; legal: 1 or more")
    return number


def _group_size(field: str, value: int, heads: int) -> int:
    size = _at_least_one(field, value)
    if not group_is_legal(heads, size):
        nearest = " and ".join(str(legal) for legal in _legal_sizes_around(size, heads))
        example = f", the nearest are {nearest}" if nearest else ""
        raise ValueError(
            f"{field}={size} is not legal for total_num_kv_heads={heads}; "
            f"legal: divisors or multiples of {heads}{example}"
        )
    return size


def _legal_sizes_around(size: int, heads: int) -> tuple[int, ...]:
    if size > heads:
        below = size // heads * heads
        return below, below + heads
    if heads > 10_000:
        return ()  # a search for divisors might take long
    return (
        next(legal for legal in range(size, 0, -1) if heads % legal == 0),
        next(legal for legal in range(size, heads + 1) if heads % legal == 0),
    )


def _rank(field: str, value: int, size: int) -> int:
    rank = _integer(field, value)
    if not 0 <= rank < size:
        raise ValueError(
            f"{field}={rank} is not legal in a group of {size}; "
            f"legal: 0 <= {field} < {size}"
        )
    return rank


def _check_election(
    election: str,
    producer_field: str,
    producers: int,
    consumer_field: str,
    consumers: int,
) -> None:
    if not isinstance(election, str) or election not in _ELECTIONS:
        legal = ", ".join(repr(name) for name in _ELECTIONS)
        raise ValueError(f"election={election!r} is not legal; legal: {legal}")
    if election in _NEEDS_DIVISIBLE_PAIR and not pair_is_divisible(
        producers, consumers
    ):
        raise ValueError(
            f"election={election!r} is not legal for {producer_field}={producers} "
            f"and {consumer_field}={consumers}; "
            "legal: sizes of which one divides the other"
        )


def _check_region_lengths(
    heads: int,
    producers: int,
    consumers: int,
    producer_field: str,
    producer_bytes: int,
    consumer_field: str,
    consumer_bytes: int,
) -> None:
    if region_lengths_match(
        heads, producers, consumers, producer_bytes, consumer_bytes
    ):
        return
    producer_heads = head_count(heads, producers)
    consumer_heads = head_count(heads, consumers)
    bytes_per_head, rest = divmod(producer_bytes, producer_heads)
    if bytes_per_head < 1 or rest:
        legal = f"a {producer_field} that is a positive multiple of {producer_heads}"
    else:
        legal = f"{consumer_field}={bytes_per_head * consumer_heads}"
    raise ValueError(
        f"{producer_field}={producer_bytes} and {consumer_field}={consumer_bytes} do "
        f"not match: of {heads} heads a producer rank (TP {producers}) holds "
        f"{producer_heads} and a consumer rank (TP {consumers}) holds "
        f"{consumer_heads}; legal: {legal}"
    )
