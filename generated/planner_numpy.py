# SPDX-License-Identifier: Apache-2.0
# DO NOT EDIT. Written by `make generate` from the formulas in spec/.
#
# spec:   sha256 8eab0c61ae6d1e7a19f98818e4ee5e10bfd73aa1413890c86e286f60c40dfffb
# ledger: sha256 648b045eb481104e2b4fa42e433e7ac81659cf5d8fcc37ef8bebb7717904093c
# solver: z3 5.4.1
#
# A copy of this file can be checked with `kvreshard verify-vendored FILE`.
"""Plan many copies of a KV cache between tensor-parallel groups at once, with numpy.

The formulas are those of `planner.py`, over arrays of 64-bit integers. Arguments are
integers or arrays of them and are broadcast together; each element is planned as
`planner.py` plans it. Python's integers grow and those of an array wrap around, so the
arguments have bounds besides their legal ranges. Within them no integer that a formula
computes leaves the 64 bits, which is proved; beyond them the interface refuses:

total_num_kv_heads_is_at_most_2_to_the_20: total_num_kv_heads <= 1048576
tp_size_is_at_most_2_to_the_31: tp_size <= 2147483648
producer_tp_size_is_at_most_2_to_the_31: producer_tp_size <= 2147483648
consumer_tp_size_is_at_most_2_to_the_31: consumer_tp_size <= 2147483648
producer_region_bytes_is_within_2_to_the_42_of_zero: producer_region_bytes >=
    -4398046511104 and producer_region_bytes <= 4398046511104
consumer_region_bytes_is_within_2_to_the_42_of_zero: consumer_region_bytes >=
    -4398046511104 and consumer_region_bytes <= 4398046511104

numpy and the standard library only. First come the formulas: each is printed from one
formula of the specification, whose theorems hold under the hypotheses it assumes, and
checks nothing. Then comes the interface, written by hand: it checks its arguments, so
that the hypotheses hold, and uses the formulas.

What the formulas take, element by element:

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

What the formulas assume, besides the bounds:

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

# numpy has no type for what its ufuncs return.
# mypy: disable-error-code="no-any-return"

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = [
    "SenderRanges",
    "TransferPlans",
    "plan_transfer",
    "region_lengths_are_valid",
    "sender_ranges",
    "transfer_matrix",
]

# Formulas.


def group_is_legal(
    total_num_kv_heads: NDArray[np.int64], tp_size: NDArray[np.int64]
) -> NDArray[np.bool_]:
    """Whether the heads can be divided evenly over the ranks, or the ranks over the
    heads.

    Takes: total_num_kv_heads (heads), tp_size (ranks).
    Returns: a truth value.
    Assumes: total_num_kv_heads_is_positive, tp_size_is_positive,
        total_num_kv_heads_is_at_most_2_to_the_20, tp_size_is_at_most_2_to_the_31.
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
    return np.logical_or(
        total_num_kv_heads % tp_size == 0, tp_size % total_num_kv_heads == 0
    )


def replica_count(
    total_num_kv_heads: NDArray[np.int64], tp_size: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Ranks of the group that hold the same heads; they are consecutive.

    Takes: total_num_kv_heads (heads), tp_size (ranks).
    Returns: ranks.
    Assumes: total_num_kv_heads_is_positive, tp_size_is_positive, group_is_legal,
        total_num_kv_heads_is_at_most_2_to_the_20, tp_size_is_at_most_2_to_the_31.
    Invariants proved: every_consumer_head_is_covered_exactly_once,
        no_two_writes_overlap, every_read_is_inside_the_producer_block,
        every_write_is_inside_the_consumer_block,
        every_written_byte_holds_the_same_head_token_and_position,
        only_a_holder_of_the_head_sends_it,
        producers_and_consumers_agree_on_their_peers.
    """
    # spec: (max (div tp_size total_num_kv_heads) 1)
    return np.maximum(tp_size // total_num_kv_heads, 1)


def pair_is_divisible(
    producer_tp_size: NDArray[np.int64], consumer_tp_size: NDArray[np.int64]
) -> NDArray[np.bool_]:
    """Whether one group size divides the other, without which there are no pairs.

    Takes: producer_tp_size (ranks), consumer_tp_size (ranks).
    Returns: a truth value.
    Assumes: producer_tp_size_is_positive, producer_group_is_legal,
        consumer_tp_size_is_positive, consumer_group_is_legal,
        producer_tp_size_is_at_most_2_to_the_31,
        consumer_tp_size_is_at_most_2_to_the_31.
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
    return np.logical_or(
        producer_tp_size % consumer_tp_size == 0,
        consumer_tp_size % producer_tp_size == 0,
    )


def replica_ordinal(
    total_num_kv_heads: NDArray[np.int64],
    tp_size: NDArray[np.int64],
    tp_rank: NDArray[np.int64],
) -> NDArray[np.int64]:
    """Which of the ranks that hold the same heads this rank is, counted from 0.

    Takes: total_num_kv_heads (heads), tp_size (ranks), tp_rank (rank).
    Returns: an ordinal.
    Assumes: total_num_kv_heads_is_positive, tp_size_is_positive, group_is_legal,
        rank_is_in_range, total_num_kv_heads_is_at_most_2_to_the_20,
        tp_size_is_at_most_2_to_the_31.
    Invariants proved: every_consumer_head_is_covered_exactly_once,
        no_two_writes_overlap, every_read_is_inside_the_producer_block,
        every_write_is_inside_the_consumer_block,
        every_written_byte_holds_the_same_head_token_and_position,
        only_a_holder_of_the_head_sends_it,
        producers_and_consumers_agree_on_their_peers.
    """
    # spec: (mod tp_rank (replica_count total_num_kv_heads tp_size))
    return tp_rank % replica_count(total_num_kv_heads, tp_size)


def first_head(
    total_num_kv_heads: NDArray[np.int64],
    tp_size: NDArray[np.int64],
    tp_rank: NDArray[np.int64],
) -> NDArray[np.int64]:
    """First head that the rank holds, counted over the whole model.

    Takes: total_num_kv_heads (heads), tp_size (ranks), tp_rank (rank).
    Returns: a head.
    Assumes: total_num_kv_heads_is_positive, tp_size_is_positive, group_is_legal,
        rank_is_in_range, total_num_kv_heads_is_at_most_2_to_the_20,
        tp_size_is_at_most_2_to_the_31.
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
    total_num_kv_heads: NDArray[np.int64],
    producer_tp_size: NDArray[np.int64],
    producer_tp_rank: NDArray[np.int64],
    consumer_tp_size: NDArray[np.int64],
    consumer_tp_rank: NDArray[np.int64],
) -> NDArray[np.int64]:
    """First head that both ranks may hold, counted over the whole model.

    Takes: total_num_kv_heads (heads), producer_tp_size (ranks), producer_tp_rank
        (rank), consumer_tp_size (ranks), consumer_tp_rank (rank).
    Returns: a head.
    Assumes: total_num_kv_heads_is_positive, producer_tp_size_is_positive,
        producer_group_is_legal, producer_rank_is_in_range,
        consumer_tp_size_is_positive, consumer_group_is_legal,
        consumer_rank_is_in_range, total_num_kv_heads_is_at_most_2_to_the_20,
        producer_tp_size_is_at_most_2_to_the_31,
        consumer_tp_size_is_at_most_2_to_the_31.
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
    return np.maximum(producer_first_head, consumer_first_head)


def head_count(
    total_num_kv_heads: NDArray[np.int64], tp_size: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Heads that each rank of the group holds; they are contiguous.

    Takes: total_num_kv_heads (heads), tp_size (ranks).
    Returns: heads.
    Assumes: total_num_kv_heads_is_positive, tp_size_is_positive, group_is_legal,
        total_num_kv_heads_is_at_most_2_to_the_20, tp_size_is_at_most_2_to_the_31.
    Invariants proved: every_consumer_head_is_covered_exactly_once,
        no_two_writes_overlap, every_read_is_inside_the_producer_block,
        every_write_is_inside_the_consumer_block,
        every_written_byte_holds_the_same_head_token_and_position,
        only_a_holder_of_the_head_sends_it,
        producers_and_consumers_agree_on_their_peers,
        the_length_check_accepts_exactly_the_plannable_regions.
    """
    # spec: (max (div total_num_kv_heads tp_size) 1)
    return np.maximum(total_num_kv_heads // tp_size, 1)


def overlap_end(
    total_num_kv_heads: NDArray[np.int64],
    producer_tp_size: NDArray[np.int64],
    producer_tp_rank: NDArray[np.int64],
    consumer_tp_size: NDArray[np.int64],
    consumer_tp_rank: NDArray[np.int64],
) -> NDArray[np.int64]:
    """First head after `overlap_start` that not both ranks hold, or a smaller one.

    Takes: total_num_kv_heads (heads), producer_tp_size (ranks), producer_tp_rank
        (rank), consumer_tp_size (ranks), consumer_tp_rank (rank).
    Returns: a head.
    Assumes: total_num_kv_heads_is_positive, producer_tp_size_is_positive,
        producer_group_is_legal, producer_rank_is_in_range,
        consumer_tp_size_is_positive, consumer_group_is_legal,
        consumer_rank_is_in_range, total_num_kv_heads_is_at_most_2_to_the_20,
        producer_tp_size_is_at_most_2_to_the_31,
        consumer_tp_size_is_at_most_2_to_the_31.
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
    return np.minimum(
        producer_first_head + producer_head_count,
        consumer_first_head + consumer_head_count,
    )


def sends(
    total_num_kv_heads: NDArray[np.int64],
    producer_tp_size: NDArray[np.int64],
    producer_tp_rank: NDArray[np.int64],
    consumer_tp_size: NDArray[np.int64],
    consumer_tp_rank: NDArray[np.int64],
    elected_ordinal: NDArray[np.int64],
) -> NDArray[np.bool_]:
    """Whether the producer rank sends to the consumer rank: elected, and their heads
    overlap.

    Takes: total_num_kv_heads (heads), producer_tp_size (ranks), producer_tp_rank
        (rank), consumer_tp_size (ranks), consumer_tp_rank (rank), elected_ordinal
        (ordinal).
    Returns: a truth value.
    Assumes: total_num_kv_heads_is_positive, producer_tp_size_is_positive,
        producer_group_is_legal, producer_rank_is_in_range,
        consumer_tp_size_is_positive, consumer_group_is_legal,
        consumer_rank_is_in_range, elected_ordinal_is_in_range,
        total_num_kv_heads_is_at_most_2_to_the_20,
        producer_tp_size_is_at_most_2_to_the_31,
        consumer_tp_size_is_at_most_2_to_the_31.
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
    return np.logical_and(
        producer_replica_ordinal == elected_ordinal,
        overlap_start_value < overlap_end_value,
    )


def src_head_offset(
    total_num_kv_heads: NDArray[np.int64],
    producer_tp_size: NDArray[np.int64],
    producer_tp_rank: NDArray[np.int64],
    consumer_tp_size: NDArray[np.int64],
    consumer_tp_rank: NDArray[np.int64],
) -> NDArray[np.int64]:
    """Heads to skip in the producer's block before the copy starts.

    Takes: total_num_kv_heads (heads), producer_tp_size (ranks), producer_tp_rank
        (rank), consumer_tp_size (ranks), consumer_tp_rank (rank).
    Returns: heads.
    Assumes: total_num_kv_heads_is_positive, producer_tp_size_is_positive,
        producer_group_is_legal, producer_rank_is_in_range,
        consumer_tp_size_is_positive, consumer_group_is_legal,
        consumer_rank_is_in_range, total_num_kv_heads_is_at_most_2_to_the_20,
        producer_tp_size_is_at_most_2_to_the_31,
        consumer_tp_size_is_at_most_2_to_the_31.
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
    total_num_kv_heads: NDArray[np.int64],
    producer_tp_size: NDArray[np.int64],
    producer_tp_rank: NDArray[np.int64],
    consumer_tp_size: NDArray[np.int64],
    consumer_tp_rank: NDArray[np.int64],
) -> NDArray[np.int64]:
    """Heads to skip in the consumer's block before the copy starts.

    Takes: total_num_kv_heads (heads), producer_tp_size (ranks), producer_tp_rank
        (rank), consumer_tp_size (ranks), consumer_tp_rank (rank).
    Returns: heads.
    Assumes: total_num_kv_heads_is_positive, producer_tp_size_is_positive,
        producer_group_is_legal, producer_rank_is_in_range,
        consumer_tp_size_is_positive, consumer_group_is_legal,
        consumer_rank_is_in_range, total_num_kv_heads_is_at_most_2_to_the_20,
        producer_tp_size_is_at_most_2_to_the_31,
        consumer_tp_size_is_at_most_2_to_the_31.
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
    total_num_kv_heads: NDArray[np.int64],
    producer_tp_size: NDArray[np.int64],
    producer_tp_rank: NDArray[np.int64],
    consumer_tp_size: NDArray[np.int64],
    consumer_tp_rank: NDArray[np.int64],
) -> NDArray[np.int64]:
    """Heads that the copy moves, where the producer rank sends.

    Takes: total_num_kv_heads (heads), producer_tp_size (ranks), producer_tp_rank
        (rank), consumer_tp_size (ranks), consumer_tp_rank (rank).
    Returns: heads.
    Assumes: total_num_kv_heads_is_positive, producer_tp_size_is_positive,
        producer_group_is_legal, producer_rank_is_in_range,
        consumer_tp_size_is_positive, consumer_group_is_legal,
        consumer_rank_is_in_range, total_num_kv_heads_is_at_most_2_to_the_20,
        producer_tp_size_is_at_most_2_to_the_31,
        consumer_tp_size_is_at_most_2_to_the_31.
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


def owner(
    total_num_kv_heads: NDArray[np.int64],
    tp_size: NDArray[np.int64],
    head: NDArray[np.int64],
    ordinal: NDArray[np.int64],
) -> NDArray[np.int64]:
    """Rank that holds the head and has the ordinal among those that do.

    Takes: total_num_kv_heads (heads), tp_size (ranks), head (head), ordinal (ordinal).
    Returns: a rank.
    Assumes: total_num_kv_heads_is_positive, tp_size_is_positive, group_is_legal,
        head_is_in_range, ordinal_is_in_range,
        total_num_kv_heads_is_at_most_2_to_the_20, tp_size_is_at_most_2_to_the_31.
    Invariants proved: every_consumer_head_is_covered_exactly_once,
        producers_and_consumers_agree_on_their_peers.
    """
    # spec: (+ (* (div head (head_count total_num_kv_heads tp_size)) (replica_count
    #     total_num_kv_heads tp_size)) ordinal)
    head_count_value = head_count(total_num_kv_heads, tp_size)
    replica_count_value = replica_count(total_num_kv_heads, tp_size)
    return head // head_count_value * replica_count_value + ordinal


def first_sender(
    total_num_kv_heads: NDArray[np.int64],
    producer_tp_size: NDArray[np.int64],
    consumer_tp_size: NDArray[np.int64],
    consumer_tp_rank: NDArray[np.int64],
    elected_ordinal: NDArray[np.int64],
) -> NDArray[np.int64]:
    """Lowest producer rank that sends to the consumer rank.

    The others follow at a distance of `replica_count` ranks, up to `last_sender`.

    Takes: total_num_kv_heads (heads), producer_tp_size (ranks), consumer_tp_size
        (ranks), consumer_tp_rank (rank), elected_ordinal (ordinal).
    Returns: a rank.
    Assumes: total_num_kv_heads_is_positive, producer_tp_size_is_positive,
        producer_group_is_legal, consumer_tp_size_is_positive, consumer_group_is_legal,
        consumer_rank_is_in_range, elected_ordinal_is_in_range,
        total_num_kv_heads_is_at_most_2_to_the_20,
        producer_tp_size_is_at_most_2_to_the_31,
        consumer_tp_size_is_at_most_2_to_the_31.
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
    total_num_kv_heads: NDArray[np.int64],
    producer_tp_size: NDArray[np.int64],
    consumer_tp_size: NDArray[np.int64],
    consumer_tp_rank: NDArray[np.int64],
    elected_ordinal: NDArray[np.int64],
) -> NDArray[np.int64]:
    """Highest producer rank that sends to the consumer rank.

    Takes: total_num_kv_heads (heads), producer_tp_size (ranks), consumer_tp_size
        (ranks), consumer_tp_rank (rank), elected_ordinal (ordinal).
    Returns: a rank.
    Assumes: total_num_kv_heads_is_positive, producer_tp_size_is_positive,
        producer_group_is_legal, consumer_tp_size_is_positive, consumer_group_is_legal,
        consumer_rank_is_in_range, elected_ordinal_is_in_range,
        total_num_kv_heads_is_at_most_2_to_the_20,
        producer_tp_size_is_at_most_2_to_the_31,
        consumer_tp_size_is_at_most_2_to_the_31.
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


def region_lengths_match(
    total_num_kv_heads: NDArray[np.int64],
    producer_tp_size: NDArray[np.int64],
    consumer_tp_size: NDArray[np.int64],
    producer_region_bytes: NDArray[np.int64],
    consumer_region_bytes: NDArray[np.int64],
) -> NDArray[np.bool_]:
    """Whether both lengths are a whole number of the same bytes per head.

    The product alone would accept lengths that no number of bytes per head explains: 2
    and 4 heads, 3 and 6 bytes.

    Takes: total_num_kv_heads (heads), producer_tp_size (ranks), consumer_tp_size
        (ranks), producer_region_bytes (bytes), consumer_region_bytes (bytes).
    Returns: a truth value.
    Assumes: total_num_kv_heads_is_positive, producer_tp_size_is_positive,
        producer_group_is_legal, consumer_tp_size_is_positive, consumer_group_is_legal,
        total_num_kv_heads_is_at_most_2_to_the_20,
        producer_tp_size_is_at_most_2_to_the_31,
        consumer_tp_size_is_at_most_2_to_the_31,
        producer_region_bytes_is_within_2_to_the_42_of_zero,
        consumer_region_bytes_is_within_2_to_the_42_of_zero.
    Invariants proved: the_length_check_accepts_exactly_the_plannable_regions.
    """
    # spec: (and (>= producer_region_bytes 1) (>= consumer_region_bytes 1) (= (mod
    #     producer_region_bytes (head_count total_num_kv_heads producer_tp_size)) 0) (=
    #     (* producer_region_bytes (head_count total_num_kv_heads consumer_tp_size)) (*
    #     consumer_region_bytes (head_count total_num_kv_heads producer_tp_size))))
    producer_head_count = head_count(total_num_kv_heads, producer_tp_size)
    consumer_head_count = head_count(total_num_kv_heads, consumer_tp_size)
    return np.logical_and(
        np.logical_and(
            np.logical_and(producer_region_bytes >= 1, consumer_region_bytes >= 1),
            producer_region_bytes % producer_head_count == 0,
        ),
        producer_region_bytes * consumer_head_count
        == consumer_region_bytes * producer_head_count,
    )


def elect_lowest(
    total_num_kv_heads: NDArray[np.int64],
    producer_tp_size: NDArray[np.int64],
    consumer_tp_size: NDArray[np.int64],
    consumer_tp_rank: NDArray[np.int64],
) -> NDArray[np.int64]:
    """The lowest rank that holds the heads sends them.

    Takes: total_num_kv_heads (heads), producer_tp_size (ranks), consumer_tp_size
        (ranks), consumer_tp_rank (rank).
    Returns: an ordinal.
    Assumes: total_num_kv_heads_is_positive, producer_tp_size_is_positive,
        producer_group_is_legal, consumer_tp_size_is_positive, consumer_group_is_legal,
        consumer_rank_is_in_range, total_num_kv_heads_is_at_most_2_to_the_20,
        producer_tp_size_is_at_most_2_to_the_31,
        consumer_tp_size_is_at_most_2_to_the_31.
    """
    # spec: 0
    return np.array(0, np.int64)


def elect_spread(
    total_num_kv_heads: NDArray[np.int64],
    producer_tp_size: NDArray[np.int64],
    consumer_tp_size: NDArray[np.int64],
    consumer_tp_rank: NDArray[np.int64],
) -> NDArray[np.int64]:
    """Consumers take turns, so that those of one head pull from different replicas.

    Takes: total_num_kv_heads (heads), producer_tp_size (ranks), consumer_tp_size
        (ranks), consumer_tp_rank (rank).
    Returns: an ordinal.
    Assumes: total_num_kv_heads_is_positive, producer_tp_size_is_positive,
        producer_group_is_legal, consumer_tp_size_is_positive, consumer_group_is_legal,
        consumer_rank_is_in_range, total_num_kv_heads_is_at_most_2_to_the_20,
        producer_tp_size_is_at_most_2_to_the_31,
        consumer_tp_size_is_at_most_2_to_the_31.
    """
    # spec: (mod consumer_tp_rank (replica_count total_num_kv_heads producer_tp_size))
    return consumer_tp_rank % replica_count(total_num_kv_heads, producer_tp_size)


def elect_paired(
    total_num_kv_heads: NDArray[np.int64],
    producer_tp_size: NDArray[np.int64],
    consumer_tp_size: NDArray[np.int64],
    consumer_tp_rank: NDArray[np.int64],
) -> NDArray[np.int64]:
    """The first rank of the consumer's pairs sends, as in vLLM's Mooncake connector.

    Takes: total_num_kv_heads (heads), producer_tp_size (ranks), consumer_tp_size
        (ranks), consumer_tp_rank (rank).
    Returns: an ordinal.
    Assumes: total_num_kv_heads_is_positive, producer_tp_size_is_positive,
        producer_group_is_legal, consumer_tp_size_is_positive, consumer_group_is_legal,
        consumer_rank_is_in_range, total_num_kv_heads_is_at_most_2_to_the_20,
        producer_tp_size_is_at_most_2_to_the_31,
        consumer_tp_size_is_at_most_2_to_the_31.
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
_MOST_HEADS = 1048576
_LARGEST_TP_SIZE = 2147483648
_LARGEST_REGION_BYTES = 4398046511104
# 2**26 pairs of ranks, which take about 3 GiB while they are planned.
_MOST_PAIRS_OF_A_MATRIX = 67_108_864


class TransferPlans(NamedTuple):
    """What producer ranks copy into consumer ranks' blocks, in heads.

    The arrays have one shape. Offsets count from the start of each rank's own block.
    All are zero where the producer rank does not send.
    """

    sends: NDArray[np.bool_]
    src_head_offset: NDArray[np.int64]
    dst_head_offset: NDArray[np.int64]
    head_count: NDArray[np.int64]


class SenderRanges(NamedTuple):
    """The producer ranks first, first + step, ..., last; arrays of one shape."""

    first: NDArray[np.int64]
    last: NDArray[np.int64]
    step: NDArray[np.int64]


def plan_transfer(
    *,
    total_num_kv_heads: ArrayLike,
    producer_tp_size: ArrayLike,
    producer_tp_rank: ArrayLike,
    consumer_tp_size: ArrayLike,
    consumer_tp_rank: ArrayLike,
    election: str = "lowest",
) -> TransferPlans:
    """Return what producer ranks copy into consumer ranks, in heads.

    Args:
        total_num_kv_heads: KV heads of the models, before any sharding.
        producer_tp_size: ranks of the groups that hold the cache.
        producer_tp_rank: ranks that may send.
        consumer_tp_size: ranks of the groups that receive the cache.
        consumer_tp_rank: ranks that may receive.
        election: which of the producer ranks with the same heads sends: "lowest",
            "spread" (consumers take turns) or "paired" (as in vLLM, where one size
            divides the other). Producers and consumers have to use the same.

    Returns:
        Arrays of the shape to which the arguments broadcast.

    Raises:
        ValueError: an element is out of its range or bound; the message names one such
            element and says what is legal. Or two arguments do not broadcast; it names
            them and their shapes.
        TypeError: an argument is not made of integers. Truth values are none; an empty
            list is taken.
    """
    heads = _at_least_one("total_num_kv_heads", total_num_kv_heads, _MOST_HEADS)
    producers = _group_size("producer_tp_size", producer_tp_size, heads)
    producer = _rank(
        "producer_tp_rank", producer_tp_rank, "producer_tp_size", producers
    )
    consumers = _group_size("consumer_tp_size", consumer_tp_size, heads)
    consumer = _rank(
        "consumer_tp_rank", consumer_tp_rank, "consumer_tp_size", consumers
    )
    _check_shapes(
        ("total_num_kv_heads", heads),
        ("producer_tp_size", producers),
        ("producer_tp_rank", producer),
        ("consumer_tp_size", consumers),
        ("consumer_tp_rank", consumer),
    )
    _check_election(election, producers, consumers)
    return _plan(heads, producers, producer, consumers, consumer, election)


def transfer_matrix(
    *,
    total_num_kv_heads: int,
    producer_tp_size: int,
    consumer_tp_size: int,
    election: str = "lowest",
) -> TransferPlans:
    """Return what every producer rank copies into every consumer rank, in heads.

    The arguments are those of `plan_transfer`, one integer each, and so are the errors.
    The sizes multiply to at most 2**26, or memory might run out: a ValueError says so.
    `plan_transfer` plans a larger matrix part by part.

    Returns:
        Arrays of shape (producer_tp_size, consumer_tp_size). `sends` is the mask of who
        sends to whom: a row has the receivers of a producer rank, a column the senders
        of a consumer rank.
    """
    heads = _at_least_one("total_num_kv_heads", total_num_kv_heads, _MOST_HEADS)
    producers = _group_size("producer_tp_size", producer_tp_size, heads)
    consumers = _group_size("consumer_tp_size", consumer_tp_size, heads)
    _single("total_num_kv_heads", heads)
    producer_size = _single("producer_tp_size", producers)
    consumer_size = _single("consumer_tp_size", consumers)
    _check_election(election, producers, consumers)
    if producer_size * consumer_size > _MOST_PAIRS_OF_A_MATRIX:
        raise ValueError(
            f"producer_tp_size={producer_size} and consumer_tp_size={consumer_size} "
            f"are not legal in one matrix, of {producer_size * consumer_size} pairs of "
            f"ranks; legal: up to {_MOST_PAIRS_OF_A_MATRIX} pairs"
        )
    producer = np.expand_dims(np.arange(0, producer_size, 1, np.int64), 1)
    consumer = np.arange(0, consumer_size, 1, np.int64)
    return _plan(heads, producers, producer, consumers, consumer, election)


def sender_ranges(
    *,
    total_num_kv_heads: ArrayLike,
    producer_tp_size: ArrayLike,
    consumer_tp_size: ArrayLike,
    consumer_tp_rank: ArrayLike,
    election: str = "lowest",
) -> SenderRanges:
    """Return the producer ranks that send to consumer ranks, as ranges.

    The arguments are those of `plan_transfer`, and so are the errors.
    """
    heads = _at_least_one("total_num_kv_heads", total_num_kv_heads, _MOST_HEADS)
    producers = _group_size("producer_tp_size", producer_tp_size, heads)
    consumers = _group_size("consumer_tp_size", consumer_tp_size, heads)
    consumer = _rank(
        "consumer_tp_rank", consumer_tp_rank, "consumer_tp_size", consumers
    )
    _check_shapes(
        ("total_num_kv_heads", heads),
        ("producer_tp_size", producers),
        ("consumer_tp_size", consumers),
        ("consumer_tp_rank", consumer),
    )
    _check_election(election, producers, consumers)
    ordinal = _ELECTIONS[election](heads, producers, consumers, consumer)
    first, last, step = np.broadcast_arrays(
        first_sender(heads, producers, consumers, consumer, ordinal),
        last_sender(heads, producers, consumers, consumer, ordinal),
        replica_count(heads, producers),
    )
    # Copies, since what was broadcast must not be written to.
    return SenderRanges(np.array(first), np.array(last), np.array(step))


def region_lengths_are_valid(
    *,
    total_num_kv_heads: ArrayLike,
    producer_tp_size: ArrayLike,
    consumer_tp_size: ArrayLike,
    producer_region_bytes: ArrayLike,
    consumer_region_bytes: ArrayLike,
) -> NDArray[np.bool_]:
    """Return whether pairs of regions hold the same number of bytes for each head.

    What `validate_region_lengths` of `planner.py` checks, as an array of truth values.
    Hypothesis `a_region_is_one_layer`: the lengths are those of one layer's block.

    Args:
        total_num_kv_heads: KV heads of the models, before any sharding.
        producer_tp_size: ranks of the groups that hold the cache.
        consumer_tp_size: ranks of the groups that receive the cache.
        producer_region_bytes: bytes of one block of the producers, without padding.
        consumer_region_bytes: bytes of one block of the consumers, without padding.

    Raises:
        ValueError: an element is out of its range or bound; the message names one such
            element and says what is legal. Or two arguments do not broadcast; it names
            them and their shapes.
        TypeError: an argument is not made of integers. Truth values are none; an empty
            list is taken.
    """
    heads = _at_least_one("total_num_kv_heads", total_num_kv_heads, _MOST_HEADS)
    producers = _group_size("producer_tp_size", producer_tp_size, heads)
    consumers = _group_size("consumer_tp_size", consumer_tp_size, heads)
    producer_bytes = _region_bytes("producer_region_bytes", producer_region_bytes)
    consumer_bytes = _region_bytes("consumer_region_bytes", consumer_region_bytes)
    _check_shapes(
        ("total_num_kv_heads", heads),
        ("producer_tp_size", producers),
        ("consumer_tp_size", consumers),
        ("producer_region_bytes", producer_bytes),
        ("consumer_region_bytes", consumer_bytes),
    )
    return np.asarray(
        region_lengths_match(
            heads, producers, consumers, producer_bytes, consumer_bytes
        )
    )


def _plan(
    heads: NDArray[np.int64],
    producers: NDArray[np.int64],
    producer: NDArray[np.int64],
    consumers: NDArray[np.int64],
    consumer: NDArray[np.int64],
    election: str,
) -> TransferPlans:
    ordinal = _ELECTIONS[election](heads, producers, consumers, consumer)
    sending = sends(heads, producers, producer, consumers, consumer, ordinal)
    source = src_head_offset(heads, producers, producer, consumers, consumer)
    target = dst_head_offset(heads, producers, producer, consumers, consumer)
    count = copied_head_count(heads, producers, producer, consumers, consumer)
    return TransferPlans(
        np.asarray(sending),
        np.where(sending, source, 0),
        np.where(sending, target, 0),
        np.where(sending, count, 0),
    )


def _integers(field: str, values: ArrayLike) -> NDArray[Any]:
    """Return the values as an array of integers, of any type or Python's own."""
    given = np.asarray(values)
    found = given.dtype
    if found.kind == "f" and 0 in given.shape:
        # To numpy an empty list is one of floats.
        return given.astype(np.int64)
    # Python's integers that fit no type of numpy come as objects.
    is_large = found.kind == "O" and all(isinstance(one, int) for one in given.flat)
    if found.kind not in ("i", "u") and not is_large:
        raise TypeError(f"{field} must be made of integers, got {found}")
    # An array of a type of integers has no truth values; what becomes one may have had.
    may_have_some = is_large or not isinstance(values, np.ndarray)
    if may_have_some and _has_truth_values(values):
        raise TypeError(f"{field} must be made of integers, got bool")
    return given


def _has_truth_values(values: ArrayLike) -> bool:
    truths = (bool, np.bool_)
    return any(isinstance(one, truths) for one in np.asarray(values, "O").flat)


def _in_64_bits(
    field: str, given: NDArray[Any], least: int, most: int
) -> NDArray[np.int64]:
    """Return the integers in 64 bits; they are compared with the bounds before."""
    beyond = np.logical_or(given < least, given > most)
    if np.any(beyond):
        raise ValueError(
            f"{field}={given[beyond][0]} is not legal in 64-bit arrays; "
            f"legal: {least} to {most}"
        )
    return given.astype(np.int64)


def _at_least_one(field: str, values: ArrayLike, most: int) -> NDArray[np.int64]:
    given = _integers(field, values)
    wrong = given < 1
    if np.any(wrong):
        raise ValueError(f"{field}={given[wrong][0]} is not legal; legal: 1 or more")
    return _in_64_bits(field, given, 1, most)


def _region_bytes(field: str, values: ArrayLike) -> NDArray[np.int64]:
    most = _LARGEST_REGION_BYTES
    return _in_64_bits(field, _integers(field, values), -most, most)


def _group_size(
    field: str, values: ArrayLike, heads: NDArray[np.int64]
) -> NDArray[np.int64]:
    sizes = _at_least_one(field, values, _LARGEST_TP_SIZE)
    size, total = _broadcast(field, sizes, "total_num_kv_heads", heads)
    wrong = np.logical_not(group_is_legal(total, size))
    if np.any(wrong):
        total_of_first = total[wrong][0]
        raise ValueError(
            f"{field}={size[wrong][0]} is not legal for "
            f"total_num_kv_heads={total_of_first}; "
            f"legal: divisors or multiples of {total_of_first}"
        )
    return sizes


def _rank(
    field: str, values: ArrayLike, size_field: str, sizes: NDArray[np.int64]
) -> NDArray[np.int64]:
    given = _integers(field, values)
    rank, size = _broadcast(field, given, size_field, sizes)
    wrong = np.logical_or(rank < 0, rank >= size)
    if np.any(wrong):
        size_of_first = size[wrong][0]
        raise ValueError(
            f"{field}={rank[wrong][0]} is not legal in a group of {size_of_first}; "
            f"legal: 0 <= {field} < {size_of_first}"
        )
    # A rank below a size fits, but there may be no size to compare it with.
    return _in_64_bits(field, given, 0, _LARGEST_TP_SIZE - 1)


def _check_shapes(*named: tuple[str, NDArray[np.int64]]) -> None:
    # All of them broadcast together where each two do.
    tuple(
        _broadcast(field, array, other_field, other)
        for other_field, other in named
        for field, array in named
        if array.shape != other.shape
    )


def _broadcast(
    field: str, array: NDArray[Any], other_field: str, other: NDArray[np.int64]
) -> tuple[NDArray[Any], NDArray[np.int64]]:
    try:
        first, second = np.broadcast_arrays(array, other)
    except ValueError:
        raise ValueError(
            f"{field} of shape {array.shape} does not broadcast with {other_field} "
            f"of shape {other.shape}"
        ) from None
    return first, second


def _single(field: str, array: NDArray[np.int64]) -> int:
    if array.shape != ():
        raise ValueError(
            f"{field} of shape {array.shape} is not legal here; legal: one integer"
        )
    return int(array)


def _check_election(
    election: str, producers: NDArray[np.int64], consumers: NDArray[np.int64]
) -> None:
    if not isinstance(election, str) or election not in _ELECTIONS:
        legal = ", ".join(repr(name) for name in _ELECTIONS)
        raise ValueError(f"election={election!r} is not legal; legal: {legal}")
    if election not in _NEEDS_DIVISIBLE_PAIR:
        return
    producer_size, consumer_size = _broadcast(
        "producer_tp_size", producers, "consumer_tp_size", consumers
    )
    wrong = np.logical_not(pair_is_divisible(producer_size, consumer_size))
    if np.any(wrong):
        raise ValueError(
            f"election={election!r} is not legal for "
            f"producer_tp_size={producer_size[wrong][0]} and "
            f"consumer_tp_size={consumer_size[wrong][0]}; "
            "legal: sizes of which one divides the other"
        )
