# SPDX-License-Identifier: Apache-2.0
"""Planners that are wrong in ways seen in the wild or made up, each with what it breaks.

Each restates a fault in plain Python. A check worth having tells every one of them from a right
planner.
"""

from __future__ import annotations

from kvreshard.proofs.broken import (
    election,
    head_count,
    head_map,
    lengths,
    offsets,
    peers,
    ratio,
    replicas,
)
from kvreshard.proofs.broken.entry import BrokenPlanner
from kvreshard.proofs.broken.right import RIGHT

__all__ = ["BROKEN", "RIGHT", "BrokenPlanner"]

BROKEN: dict[str, BrokenPlanner] = {
    planner.name: planner
    for theme in (ratio, head_map, head_count, replicas, election, offsets, peers, lengths)
    for planner in theme.PLANNERS
}
