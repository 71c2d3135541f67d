# SPDX-License-Identifier: Apache-2.0
"""The formulas of kvreshard's plan_transfer, behind its checks, with the lowest replica sending."""

UNIT = "heads"
DOMAIN = "legal groups of which one size divides the other"
OUTSIDE = (
    "The checks of the arguments, which come before: what is asked here has passed them.",
    'The elections "spread" and "paired".',
    "Pairs of which neither size divides the other.",
)


def in_domain(producer_tp_size, consumer_tp_size):
    """Whether one size divides the other."""
    return producer_tp_size % consumer_tp_size == 0 or consumer_tp_size % producer_tp_size == 0


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
        heads=total_num_kv_heads,
        producers=producer_tp_size,
        producer=producer_tp_rank,
        consumers=consumer_tp_size,
        consumer=consumer_tp_rank,
        ordinal=0,
    )
    if not made.sends:
        return []
    return [(made.src_head_offset, made.dst_head_offset, made.head_count)]


def expected_producer(total_num_kv_heads, producer_tp_size, head):
    """The first of the ranks that hold the head."""
    return head * producer_tp_size // total_num_kv_heads
