# SPDX-License-Identifier: Apache-2.0
"""Situations that must exist: at least one per regime.

If the specification rules one of them out, a theorem may hold for want of cases, so each has to
be satisfiable.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import z3

from kvreshard.spec.invariants import PAIR, PLANNER, q
from kvreshard.spec.parameters import D, H, P, d, p
from kvreshard.spec.regimes import REGIMES, Regime

if TYPE_CHECKING:
    from kvreshard.spec.formula import Truth

_REGIMES = {regime.name: regime for regime in REGIMES}


@dataclass(frozen=True)
class Scenario:
    """A named situation in a regime; `condition` is added to the legal ranges of a pair."""

    name: str
    sentence: str
    regime: Regime
    condition: Truth


def _senders(d_rank: z3.ArithRef) -> z3.ArithRef:
    """Producer ranks that send to a consumer rank, as the consumer counts them."""
    distance = PLANNER.last_sender(d_rank) - PLANNER.first_sender(d_rank)
    return distance // PLANNER.sender_step() + 1


_SENDS = PLANNER.sends(p, d)

SCENARIOS: tuple[Scenario, ...] = (
    Scenario(
        "a_consumer_gathers_from_four_split_producers",
        "A consumer rank gathers the heads of four producer ranks.",
        _REGIMES["split_to_split_divisible"],
        z3.And(_SENDS, _senders(d) == 4),
    ),
    Scenario(
        "a_producer_splits_its_block_over_two_consumers",
        "A producer rank sends the second half of its heads to a consumer rank.",
        _REGIMES["split_to_split_divisible"],
        z3.And(_SENDS, PLANNER.src_head_offset(p, d) == 2, PLANNER.copied_head_count(p, d) == 2),
    ),
    Scenario(
        "six_heads_move_from_three_ranks_to_two",
        "Neither size divides the other, and a producer rank serves two consumer ranks.",
        _REGIMES["split_to_split_indivisible"],
        z3.And(
            H == 6,
            P == 3,
            D == 2,
            _SENDS,
            PLANNER.sends(p, d + 1),
            PLANNER.copied_head_count(p, d) == 1,
        ),
    ),
    Scenario(
        "one_producer_feeds_eight_replicas",
        "Consumer rank 7 of 8 reads the last of four heads of the only producer rank.",
        _REGIMES["split_to_replicated_divisible"],
        z3.And(H == 4, P == 1, D == 8, d == 7, _SENDS, PLANNER.src_head_offset(p, d) == 3),
    ),
    Scenario(
        "a_consumer_gathers_from_four_sets_of_replicas",
        "A consumer rank gathers four heads, each from one of two replicas; here the last.",
        _REGIMES["replicated_to_split_divisible"],
        z3.And(
            H == 4, P == 8, D == 1, _SENDS, _senders(d) == 4, PLANNER.dst_head_offset(p, d) == 3
        ),
    ),
    Scenario(
        "a_replica_that_is_not_the_lowest_sends",
        "The elected rank is the second of those that hold the head.",
        _REGIMES["replicated_to_replicated_divisible"],
        z3.And(_SENDS, p % 2 == 1, P == 2 * H),
    ),
    Scenario(
        "replicas_of_two_and_of_three_meet",
        "Both sides replicate, neither size divides the other, and a rank stays silent.",
        _REGIMES["replicated_to_replicated_indivisible"],
        z3.And(P == 2 * H, D == 3 * H, _SENDS, 0 <= q, q < P, z3.Not(PLANNER.sends(q, d))),
    ),
)

SCENARIO_HYPOTHESES = PAIR
