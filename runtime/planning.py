# SPDX-License-Identifier: Apache-2.0
"""The proved plan, asked for a pair of ranks whose regions may differ in total heads."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kvreshard.generated.planner import (
    TransferPlan,
    expected_receivers,
    expected_senders,
    plan_transfer,
)

if TYPE_CHECKING:
    from kvreshard.runtime.layout import RankLayout
    from kvreshard.runtime.regions import Region


def region_plan(
    region: Region, producer: RankLayout, consumer: RankLayout, election: str
) -> TransferPlan:
    """Plan one region of the pair, in heads. Raises ValueError for an election out of its range."""
    return plan_transfer(
        total_num_kv_heads=region.total_num_kv_heads,
        producer_tp_size=producer.tp_size,
        producer_tp_rank=producer.tp_rank,
        consumer_tp_size=consumer.tp_size,
        consumer_tp_rank=consumer.tp_rank,
        election=election,
    )


def senders_to(consumer: RankLayout, producer_tp_size: int, election: str) -> frozenset[int]:
    """Producer ranks that send at least one region to this consumer."""
    return frozenset(
        rank
        for total in _head_totals(consumer)
        for rank in expected_senders(
            total_num_kv_heads=total,
            producer_tp_size=producer_tp_size,
            consumer_tp_size=consumer.tp_size,
            consumer_tp_rank=consumer.tp_rank,
            election=election,
        )
    )


def receivers_of(producer: RankLayout, consumer_tp_size: int, election: str) -> frozenset[int]:
    """Consumer ranks this producer sends at least one region to."""
    return frozenset(
        rank
        for total in _head_totals(producer)
        for rank in expected_receivers(
            total_num_kv_heads=total,
            producer_tp_size=producer.tp_size,
            producer_tp_rank=producer.tp_rank,
            consumer_tp_size=consumer_tp_size,
            election=election,
        )
    )


def _head_totals(rank: RankLayout) -> set[int]:
    return {region.total_num_kv_heads for region in rank.regions}
