# SPDX-License-Identifier: Apache-2.0
"""Election: which of the producer ranks that hold the same heads sends them.

The planner is proved for every ordinal in range, so a policy has to show only that its ordinal
is in range. `paired` also has to show that the elected rank is one that the consumer talks to.
"""

from __future__ import annotations

from dataclasses import dataclass

import z3

from kvreshard.spec.formula import Formula, Integer, Truth, formula
from kvreshard.spec.ownership import replica_count


@formula
def elect_lowest(
    total_num_kv_heads: Integer,  # noqa: ARG001 - every policy takes the same arguments
    producer_tp_size: Integer,  # noqa: ARG001
    consumer_tp_size: Integer,  # noqa: ARG001
    consumer_tp_rank: Integer,  # noqa: ARG001
) -> Integer:
    """The lowest rank that holds the heads sends them."""
    return z3.IntVal(0)


@formula
def elect_spread(
    total_num_kv_heads: Integer,
    producer_tp_size: Integer,
    consumer_tp_size: Integer,  # noqa: ARG001
    consumer_tp_rank: Integer,
) -> Integer:
    """Consumers take turns, so that those of one head pull from different replicas."""
    return consumer_tp_rank % replica_count(total_num_kv_heads, producer_tp_size)


@formula
def elect_paired(
    total_num_kv_heads: Integer,
    producer_tp_size: Integer,
    consumer_tp_size: Integer,
    consumer_tp_rank: Integer,
) -> Integer:
    """The first rank of the consumer's pairs sends, as in vLLM's Mooncake connector."""
    first_pair = consumer_tp_rank * producer_tp_size // consumer_tp_size
    return first_pair % replica_count(total_num_kv_heads, producer_tp_size)


@formula
def pair_is_divisible(producer_tp_size: Integer, consumer_tp_size: Integer) -> Truth:
    """Whether one group size divides the other, without which there are no pairs."""
    return z3.Or(producer_tp_size % consumer_tp_size == 0, consumer_tp_size % producer_tp_size == 0)


@formula
def is_paired(
    producer_tp_size: Integer,
    producer_tp_rank: Integer,
    consumer_tp_size: Integer,
    consumer_tp_rank: Integer,
) -> Truth:
    """Whether two ranks talk to each other: rank r of the larger group with r // ratio."""
    return z3.If(
        producer_tp_size >= consumer_tp_size,
        producer_tp_rank // (producer_tp_size // consumer_tp_size) == consumer_tp_rank,
        consumer_tp_rank // (consumer_tp_size // producer_tp_size) == producer_tp_rank,
    )


@dataclass(frozen=True)
class Policy:
    """A way to elect a sender: its name in the API and the formula of its ordinal."""

    name: str
    elect: Formula
    needs_divisible_pair: bool = False


POLICIES: tuple[Policy, ...] = (
    Policy("lowest", elect_lowest),
    Policy("spread", elect_spread),
    Policy("paired", elect_paired, needs_divisible_pair=True),
)
