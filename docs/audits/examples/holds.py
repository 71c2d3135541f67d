# SPDX-License-Identifier: Apache-2.0
"""A planner that holds: it compares the heads that the two ranks hold, whatever the sizes are."""


def plan_transfer(
    total_num_kv_heads: int,
    producer_tp_size: int,
    producer_tp_rank: int,
    consumer_tp_size: int,
    consumer_tp_rank: int,
) -> list[tuple[int, int, int]]:
    """List the copies from one producer rank to one consumer rank, in heads."""
    held = max(total_num_kv_heads // producer_tp_size, 1)
    wanted = max(total_num_kv_heads // consumer_tp_size, 1)
    replicas = max(producer_tp_size // total_num_kv_heads, 1)
    if producer_tp_rank % replicas != 0:
        return []
    held_from = producer_tp_rank * total_num_kv_heads // producer_tp_size
    wanted_from = consumer_tp_rank * total_num_kv_heads // consumer_tp_size
    start = max(held_from, wanted_from)
    end = min(held_from + held, wanted_from + wanted)
    return [(start - held_from, start - wanted_from, end - start)] if start < end else []
