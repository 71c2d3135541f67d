# SPDX-License-Identifier: Apache-2.0
"""A planner with a fault: it takes the first ranks to hold a head each."""


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
    # Ranks 0, 1, 2, 3 hold heads 0, 0, 1, 1 of two, so that ranks 0 and 2 would have to send.
    if producer_tp_rank >= total_num_kv_heads:
        return []
    held_from = producer_tp_rank * total_num_kv_heads // producer_tp_size
    wanted_from = consumer_tp_rank * total_num_kv_heads // consumer_tp_size
    start = max(held_from, wanted_from)
    end = min(held_from + held, wanted_from + wanted)
    return [(start - held_from, start - wanted_from, end - start)] if start < end else []
