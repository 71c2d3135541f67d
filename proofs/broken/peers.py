# SPDX-License-Identifier: Apache-2.0
"""Planners whose copies are right and whose ranks wait for the wrong peers."""

# ruff: noqa: ARG005 - a stand-in has the parameters of what it stands in for, used or not

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from kvreshard.proofs.broken.entry import ANY_SIZES, BrokenPlanner, any_sizes
from kvreshard.proofs.broken.names import PEERS
from kvreshard.proofs.broken.right import RIGHT

if TYPE_CHECKING:
    from kvreshard.proofs.judge import Subject


def _entry(name: str, sentence: str, subject: Subject) -> BrokenPlanner:
    return BrokenPlanner(name, sentence, (), subject, (PEERS,), ANY_SIZES, any_sizes)


PLANNERS = (
    _entry(
        "a_consumer_waits_for_every_producer",
        "A consumer waits for all P producer ranks, also for those that send it nothing.",
        replace(RIGHT, senders=lambda H, P, D, d: list(range(P))),
    ),
    _entry(
        "a_consumer_waits_for_its_first_producer_only",
        "A consumer is ready when the first of its producer ranks has sent.",
        replace(RIGHT, senders=lambda H, P, D, d: RIGHT.senders(H, P, D, d)[:1]),
    ),
    _entry(
        "a_consumer_waits_for_nobody",
        "A consumer is ready before any producer rank has sent.",
        replace(RIGHT, senders=lambda H, P, D, d: []),
    ),
    _entry(
        "a_consumer_waits_for_each_producer_twice",
        "A consumer waits for two messages of each of its producer ranks, which send one.",
        replace(
            RIGHT,
            senders=lambda H, P, D, d: [p for p in RIGHT.senders(H, P, D, d) for _ in range(2)],
        ),
    ),
    _entry(
        "a_producer_counts_every_consumer",
        "A producer keeps its blocks until all D consumer ranks have answered.",
        replace(RIGHT, receivers=lambda H, P, p, D: list(range(D))),
    ),
    _entry(
        "a_producer_counts_its_first_consumer_only",
        "A producer frees its blocks when the first of its consumer ranks has them.",
        replace(RIGHT, receivers=lambda H, P, p, D: RIGHT.receivers(H, P, p, D)[:1]),
    ),
)
