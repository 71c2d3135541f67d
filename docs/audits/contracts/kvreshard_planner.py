# SPDX-License-Identifier: Apache-2.0
"""kvreshard's own plan_transfer, with the election that it has by default."""

UNIT = "heads"
DOMAIN = "legal groups"
OUTSIDE = ('The elections "spread" and "paired".',)


def plan(
    planner,
    total_num_kv_heads,
    producer_tp_size,
    producer_tp_rank,
    consumer_tp_size,
    consumer_tp_rank,
):
    """The one copy of a plan, or none."""
    made = planner(
        total_num_kv_heads=total_num_kv_heads,
        producer_tp_size=producer_tp_size,
        producer_tp_rank=producer_tp_rank,
        consumer_tp_size=consumer_tp_size,
        consumer_tp_rank=consumer_tp_rank,
    )
    if not made.sends:
        return []
    return [(made.src_head_offset, made.dst_head_offset, made.head_count)]
