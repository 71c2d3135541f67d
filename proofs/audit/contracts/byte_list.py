# SPDX-License-Identifier: Apache-2.0
"""A planner that lists, for a producer and a consumer rank, copies of bytes.

It is called as `planner(total_num_kv_heads=, producer_tp_size=, producer_tp_rank=,
consumer_tp_size=, consumer_tp_rank=, bytes_per_head=)`, once for each pair of ranks, and returns a
list of (source offset, target offset, length) in bytes, counted within each rank's own block,
which is head-major without padding; an empty list where the producer sends nothing.
"""

UNIT = "bytes"
DOMAIN = "legal groups"


def plan(
    planner,
    total_num_kv_heads,
    producer_tp_size,
    producer_tp_rank,
    consumer_tp_size,
    consumer_tp_rank,
    bytes_per_head,
):
    """The copies as the planner lists them."""
    return planner(
        total_num_kv_heads=total_num_kv_heads,
        producer_tp_size=producer_tp_size,
        producer_tp_rank=producer_tp_rank,
        consumer_tp_size=consumer_tp_size,
        consumer_tp_rank=consumer_tp_rank,
        bytes_per_head=bytes_per_head,
    )
