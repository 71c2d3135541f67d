# SPDX-License-Identifier: Apache-2.0
"""A planner that lists, for a producer and a consumer rank, copies of heads.

It is called as `planner(total_num_kv_heads=, producer_tp_size=, producer_tp_rank=,
consumer_tp_size=, consumer_tp_rank=)`, once for each pair of ranks, and returns a list of
(source head, target head, number of heads), counted within each rank's own block; an empty list
where the producer sends nothing.
"""

UNIT = "heads"
DOMAIN = "legal groups"


def plan(
    planner,
    total_num_kv_heads,
    producer_tp_size,
    producer_tp_rank,
    consumer_tp_size,
    consumer_tp_rank,
):
    """The copies as the planner lists them."""
    return planner(
        total_num_kv_heads=total_num_kv_heads,
        producer_tp_size=producer_tp_size,
        producer_tp_rank=producer_tp_rank,
        consumer_tp_size=consumer_tp_size,
        consumer_tp_rank=consumer_tp_rank,
    )
