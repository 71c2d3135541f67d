# SPDX-License-Identifier: Apache-2.0
"""Planners whose election of a sender goes wrong."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from kvreshard.proofs.broken.entry import ANY_SIZES, BrokenPlanner, any_sizes
from kvreshard.proofs.broken.names import COVERED, PEERS
from kvreshard.proofs.broken.right import NOTHING, RIGHT, overlap, planner_of, replicas

if TYPE_CHECKING:
    from kvreshard.proofs.judge import Copy


def spread(H: int, P: int, p: int, D: int, d: int) -> Copy:
    """Let consumers take turns among the replicas, which is right if both sides do it."""
    elected = p % replicas(H, P) == d % replicas(H, P)
    return overlap(H, P, p, D, d) if elected else NOTHING


def spread_without_end(H: int, P: int, p: int, D: int, d: int) -> Copy:
    """Elect replica d, which exists for the first consumers only."""
    return overlap(H, P, p, D, d) if p % replicas(H, P) == d else NOTHING


PLANNERS = (
    BrokenPlanner(
        name="the_two_sides_elect_different_senders",
        sentence=(
            "Producers let the lowest replica of a head send; consumers take turns among the "
            "replicas and wait for the one whose turn it is."
        ),
        seen_in=(),
        subject=replace(RIGHT, senders=planner_of(spread).senders),
        invariants=(PEERS,),
        domain=ANY_SIZES,
        in_domain=any_sizes,
    ),
    BrokenPlanner(
        name="the_elected_replica_does_not_exist",
        sentence=(
            "Replica d of a head is to send to consumer rank d, although there may be fewer "
            "replicas than consumers."
        ),
        seen_in=(),
        subject=planner_of(spread_without_end),
        invariants=(COVERED,),
        domain=ANY_SIZES,
        in_domain=any_sizes,
    ),
)
