# SPDX-License-Identifier: Apache-2.0
"""Faults that no planner is to blame for: engines that misreport, and callers that misinform.

Each is run with the proved planner, without and with digests of content.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import TYPE_CHECKING

from detection.gate import Case
from kvreshard.runtime.descriptors import Descriptors
from kvreshard.runtime.transport.in_process import InProcessTransport

if TYPE_CHECKING:
    from collections.abc import Callable

    from kvreshard.runtime.transport.in_process import Fabric
    from kvreshard.runtime.transport.protocol import Transport

# 4 heads, from two ranks to one: each producer writes one interval of each of two blocks.
_SIZES = (4, 2, 1)


class _ForgetsTheLast(InProcessTransport):
    """Leave the last descriptor out and report success."""

    def write(self, session_id: str, descriptors: Descriptors) -> None:
        super().write(session_id, Descriptors(*(column[:-1] for column in descriptors)))


class _SwapsTargets(InProcessTransport):
    """Write each interval to where another one belongs."""

    def write(self, session_id: str, descriptors: Descriptors) -> None:
        super().write(session_id, descriptors._replace(destination=descriptors.destination[::-1]))


class _FlipsABit(InProcessTransport):
    """Damage a byte that was written."""

    def write(self, session_id: str, descriptors: Descriptors) -> None:
        super().write(session_id, descriptors)
        ctypes.c_ubyte.from_address(int(descriptors.destination[0])).value ^= 1


class _ReadsTooLate(InProcessTransport):
    """Read a source byte after somebody else has written to it."""

    def write(self, session_id: str, descriptors: Descriptors) -> None:
        ctypes.c_ubyte.from_address(int(descriptors.source[0])).value ^= 1
        super().write(session_id, descriptors)


@dataclass(frozen=True)
class EngineFault:
    """A fault outside the planner, as a sentence, and how to run it."""

    name: str
    sentence: str
    case: Callable[[bool], Case]


def _with_transport(
    name: str, sentence: str, transport: Callable[[Fabric], Transport]
) -> EngineFault:
    return EngineFault(
        name, sentence, lambda compare: Case(_SIZES, compare_content=compare, transport=transport)
    )


FAULTS: tuple[EngineFault, ...] = (
    _with_transport(
        "a_write_is_forgotten",
        "The engine reports success and has left one interval out.",
        _ForgetsTheLast,
    ),
    _with_transport(
        "two_targets_are_swapped",
        "The engine writes two intervals each to where the other belongs.",
        _SwapsTargets,
    ),
    _with_transport("a_bit_is_flipped", "A byte is damaged on the way.", _FlipsABit),
    _with_transport(
        "the_source_changes_before_it_is_read",
        "A producer's block is written to while it is being sent.",
        _ReadsTooLate,
    ),
    EngineFault(
        "replicas_differ",
        "The replica that sends holds another value than the other ranks of its head.",
        lambda compare: Case((1, 2, 1), compare_content=compare, stale_replica=True),
    ),
    EngineFault(
        "both_sides_are_told_the_wrong_number_of_heads",
        "A model of two heads is announced as one of one head, on both sides alike.",
        lambda compare: Case((2, 2, 4), compare_content=compare, claimed_heads=1),
    ),
)
