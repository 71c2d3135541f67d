# SPDX-License-Identifier: Apache-2.0
"""The planner: what producer rank p copies into consumer rank d, in heads.

Both ranks hold an interval of heads. What p can give d is the overlap of the two intervals, and
of the ranks that hold the same interval as p only the elected one sends. Nothing here asks
whether one group size divides the other.
"""

from __future__ import annotations

import z3

from kvreshard.spec.formula import Integer, Truth, formula, maximum, minimum
from kvreshard.spec.ownership import (
    first_head,
    head_count,
    owner,
    replica_count,
    replica_ordinal,
)


@formula
def overlap_start(
    total_num_kv_heads: Integer,
    producer_tp_size: Integer,
    producer_tp_rank: Integer,
    consumer_tp_size: Integer,
    consumer_tp_rank: Integer,
) -> Integer:
    """First head that both ranks may hold, counted over the whole model."""
    return maximum(
        first_head(total_num_kv_heads, producer_tp_size, producer_tp_rank),
        first_head(total_num_kv_heads, consumer_tp_size, consumer_tp_rank),
    )


@formula
def overlap_end(
    total_num_kv_heads: Integer,
    producer_tp_size: Integer,
    producer_tp_rank: Integer,
    consumer_tp_size: Integer,
    consumer_tp_rank: Integer,
) -> Integer:
    """First head after `overlap_start` that not both ranks hold, or a smaller one."""
    return minimum(
        first_head(total_num_kv_heads, producer_tp_size, producer_tp_rank)
        + head_count(total_num_kv_heads, producer_tp_size),
        first_head(total_num_kv_heads, consumer_tp_size, consumer_tp_rank)
        + head_count(total_num_kv_heads, consumer_tp_size),
    )


@formula
def sends(
    total_num_kv_heads: Integer,
    producer_tp_size: Integer,
    producer_tp_rank: Integer,
    consumer_tp_size: Integer,
    consumer_tp_rank: Integer,
    elected_ordinal: Integer,
) -> Truth:
    """Whether the producer rank sends to the consumer rank: elected, and their heads overlap."""
    pair = (
        total_num_kv_heads,
        producer_tp_size,
        producer_tp_rank,
        consumer_tp_size,
        consumer_tp_rank,
    )
    ordinal = replica_ordinal(total_num_kv_heads, producer_tp_size, producer_tp_rank)
    return z3.And(ordinal == elected_ordinal, overlap_start(*pair) < overlap_end(*pair))


@formula
def src_head_offset(
    total_num_kv_heads: Integer,
    producer_tp_size: Integer,
    producer_tp_rank: Integer,
    consumer_tp_size: Integer,
    consumer_tp_rank: Integer,
) -> Integer:
    """Heads to skip in the producer's block before the copy starts."""
    return overlap_start(
        total_num_kv_heads,
        producer_tp_size,
        producer_tp_rank,
        consumer_tp_size,
        consumer_tp_rank,
    ) - first_head(total_num_kv_heads, producer_tp_size, producer_tp_rank)


@formula
def dst_head_offset(
    total_num_kv_heads: Integer,
    producer_tp_size: Integer,
    producer_tp_rank: Integer,
    consumer_tp_size: Integer,
    consumer_tp_rank: Integer,
) -> Integer:
    """Heads to skip in the consumer's block before the copy starts."""
    return overlap_start(
        total_num_kv_heads,
        producer_tp_size,
        producer_tp_rank,
        consumer_tp_size,
        consumer_tp_rank,
    ) - first_head(total_num_kv_heads, consumer_tp_size, consumer_tp_rank)


@formula
def copied_head_count(
    total_num_kv_heads: Integer,
    producer_tp_size: Integer,
    producer_tp_rank: Integer,
    consumer_tp_size: Integer,
    consumer_tp_rank: Integer,
) -> Integer:
    """Heads that the copy moves, where the producer rank sends."""
    pair = (
        total_num_kv_heads,
        producer_tp_size,
        producer_tp_rank,
        consumer_tp_size,
        consumer_tp_rank,
    )
    return overlap_end(*pair) - overlap_start(*pair)


# Peers. The ranks of a group fall into sets of `replica_count` consecutive ranks that hold the
# same `head_count` heads; head h is in set h // head_count.


@formula
def first_sender(
    total_num_kv_heads: Integer,
    producer_tp_size: Integer,
    consumer_tp_size: Integer,
    consumer_tp_rank: Integer,
    elected_ordinal: Integer,
) -> Integer:
    """Lowest producer rank that sends to the consumer rank.

    The others follow at a distance of `replica_count` ranks, up to `last_sender`.
    """
    first = first_head(total_num_kv_heads, consumer_tp_size, consumer_tp_rank)
    return owner(total_num_kv_heads, producer_tp_size, first, elected_ordinal)


@formula
def last_sender(
    total_num_kv_heads: Integer,
    producer_tp_size: Integer,
    consumer_tp_size: Integer,
    consumer_tp_rank: Integer,
    elected_ordinal: Integer,
) -> Integer:
    """Highest producer rank that sends to the consumer rank."""
    first = first_head(total_num_kv_heads, consumer_tp_size, consumer_tp_rank)
    last = first + head_count(total_num_kv_heads, consumer_tp_size) - 1
    return owner(total_num_kv_heads, producer_tp_size, last, elected_ordinal)


@formula
def first_receiver_candidate(
    total_num_kv_heads: Integer,
    producer_tp_size: Integer,
    producer_tp_rank: Integer,
    consumer_tp_size: Integer,
) -> Integer:
    """Lowest consumer rank whose heads overlap those of the producer rank."""
    first = first_head(total_num_kv_heads, producer_tp_size, producer_tp_rank)
    return owner(total_num_kv_heads, consumer_tp_size, first, z3.IntVal(0))


@formula
def last_receiver_candidate(
    total_num_kv_heads: Integer,
    producer_tp_size: Integer,
    producer_tp_rank: Integer,
    consumer_tp_size: Integer,
) -> Integer:
    """Highest consumer rank whose heads overlap those of the producer rank."""
    first = first_head(total_num_kv_heads, producer_tp_size, producer_tp_rank)
    last = first + head_count(total_num_kv_heads, producer_tp_size) - 1
    highest = replica_count(total_num_kv_heads, consumer_tp_size) - 1
    return owner(total_num_kv_heads, consumer_tp_size, last, highest)


# The length check.


@formula
def region_lengths_match(
    total_num_kv_heads: Integer,
    producer_tp_size: Integer,
    consumer_tp_size: Integer,
    producer_region_bytes: Integer,
    consumer_region_bytes: Integer,
) -> Truth:
    """Whether both lengths are a whole number of the same bytes per head.

    The product alone would accept lengths that no number of bytes per head explains:
    2 and 4 heads, 3 and 6 bytes.
    """
    producer_heads = head_count(total_num_kv_heads, producer_tp_size)
    consumer_heads = head_count(total_num_kv_heads, consumer_tp_size)
    return z3.And(
        producer_region_bytes >= 1,
        consumer_region_bytes >= 1,
        producer_region_bytes % producer_heads == 0,
        producer_region_bytes * consumer_heads == consumer_region_bytes * producer_heads,
    )
