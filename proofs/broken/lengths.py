# SPDX-License-Identifier: Apache-2.0
"""Planners that plan well and check the lengths of the registered regions badly."""

# ruff: noqa: ARG005 - a stand-in has the parameters of what it stands in for, used or not

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from kvreshard.proofs.broken.entry import ANY_SIZES, BrokenPlanner, any_sizes
from kvreshard.proofs.broken.names import LENGTHS
from kvreshard.proofs.broken.right import RIGHT, heads_of

if TYPE_CHECKING:
    from collections.abc import Callable


def scaled_with_tp(H: int, P: int, D: int, a: int, b: int) -> bool:
    """Accept lengths in inverse ratio to the group sizes, as if no head were replicated."""
    whole = a >= 1 and a % len(heads_of(H, P, 0)) == 0 and b % len(heads_of(H, D, 0)) == 0
    return whole and a * P == b * D


def by_product_alone(H: int, P: int, D: int, a: int, b: int) -> bool:
    """Accept lengths in the ratio of the heads held, whole numbers of bytes per head or not."""
    return a >= 1 and b >= 1 and a * len(heads_of(H, D, 0)) == b * len(heads_of(H, P, 0))


def _entry(
    name: str, sentence: str, accepts: Callable[[int, int, int, int, int], bool]
) -> BrokenPlanner:
    return BrokenPlanner(
        name, sentence, (), replace(RIGHT, accepts=accepts), (LENGTHS,), ANY_SIZES, any_sizes
    )


PLANNERS = (
    replace(
        _entry(
            "region_lengths_are_taken_to_scale_with_tp",
            "The lengths of two regions have to be in inverse ratio to the group sizes, although "
            "a rank holds at least one head however many ranks there are.",
            scaled_with_tp,
        ),
        seen_in=("vLLM #45330", "vLLM PR #45860", "vLLM PR #45879"),
        reported=(8, 8, 16),
    ),
    _entry(
        "region_lengths_are_compared_by_their_product",
        "The lengths of two regions have to be in the ratio of the heads held, and nobody asks "
        "whether each is a whole number of bytes per head.",
        by_product_alone,
    ),
    _entry(
        "any_region_lengths_are_accepted",
        "The lengths of the two regions are not looked at.",
        lambda H, P, D, a, b: True,
    ),
    _entry(
        "all_region_lengths_are_refused",
        "No lengths are accepted, not even those that fit.",
        lambda H, P, D, a, b: False,
    ),
)
