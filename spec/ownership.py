# SPDX-License-Identifier: Apache-2.0
"""Who holds which heads in a tensor-parallel group.

`holds` says it without any rounding: cut the H heads into T equal shares; rank r's share is the
interval [r*H/T, (r+1)*H/T), and the rank holds head h when its share and [h, h+1) overlap. Where
H is a multiple of T the heads are split, where T is a multiple of H they are replicated.

The other formulas are the arithmetic that planners use. That they agree with `holds` is proved.
"""

from __future__ import annotations

import z3

from kvreshard.spec.formula import Integer, Truth, formula, maximum


@formula
def group_is_legal(total_num_kv_heads: Integer, tp_size: Integer) -> Truth:
    """Whether the heads can be divided evenly over the ranks, or the ranks over the heads."""
    return z3.Or(total_num_kv_heads % tp_size == 0, tp_size % total_num_kv_heads == 0)


@formula
def holds(total_num_kv_heads: Integer, tp_size: Integer, tp_rank: Integer, head: Integer) -> Truth:
    """Whether the rank holds the head: its equal share of the heads reaches into the head."""
    return z3.And(
        0 <= head,
        head < total_num_kv_heads,
        head * tp_size < (tp_rank + 1) * total_num_kv_heads,
        tp_rank * total_num_kv_heads < (head + 1) * tp_size,
    )


@formula
def head_count(total_num_kv_heads: Integer, tp_size: Integer) -> Integer:
    """Heads that each rank of the group holds; they are contiguous."""
    return maximum(total_num_kv_heads // tp_size, 1)


@formula
def replica_count(total_num_kv_heads: Integer, tp_size: Integer) -> Integer:
    """Ranks of the group that hold the same heads; they are consecutive."""
    return maximum(tp_size // total_num_kv_heads, 1)


@formula
def first_head(total_num_kv_heads: Integer, tp_size: Integer, tp_rank: Integer) -> Integer:
    """First head that the rank holds, counted over the whole model."""
    return tp_rank * total_num_kv_heads // tp_size


@formula
def replica_ordinal(total_num_kv_heads: Integer, tp_size: Integer, tp_rank: Integer) -> Integer:
    """Which of the ranks that hold the same heads this rank is, counted from 0."""
    return tp_rank % replica_count(total_num_kv_heads, tp_size)


@formula
def replica_set(total_num_kv_heads: Integer, tp_size: Integer, tp_rank: Integer) -> Integer:
    """Which set of ranks that hold the same heads this rank is in, counted from 0."""
    return tp_rank // replica_count(total_num_kv_heads, tp_size)


@formula
def owner(
    total_num_kv_heads: Integer, tp_size: Integer, head: Integer, ordinal: Integer
) -> Integer:
    """Rank that holds the head and has the ordinal among those that do."""
    return (head // head_count(total_num_kv_heads, tp_size)) * replica_count(
        total_num_kv_heads, tp_size
    ) + ordinal
