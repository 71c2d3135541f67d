# SPDX-License-Identifier: Apache-2.0
"""The smallest sizes at which a broken planner fails, found by trying all of them in order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from kvreshard.proofs.judge import is_legal, judge

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kvreshard.proofs.broken import BrokenPlanner

    Sizes = tuple[int, int, int]

SEARCHED_TO = 12


@dataclass(frozen=True)
class Search:
    """What came of a search.

    Attributes:
        maximum: the largest H, P and D that were tried.
        tried: how many inputs, all of them legal and meant for the planner.
        failing: those that break an invariant, by H, then P, then D.
    """

    maximum: int
    tried: int
    failing: tuple[Sizes, ...]


def check_input(planner: BrokenPlanner, sizes: Sizes) -> None:
    """Raise a ValueError that names what is wrong, if sizes are not of a planner's domain."""
    total_num_kv_heads, *groups = sizes
    if min(sizes) < 1:
        raise ValueError(f"H, P, D={sizes}; legal: each at least 1")
    for letter, size in zip("PD", groups, strict=True):
        if not is_legal(total_num_kv_heads, size):
            raise ValueError(
                f"{letter}={size} is not legal for H={total_num_kv_heads}; "
                "legal: a divisor or a multiple of H"
            )
    if not planner.in_domain(*sizes):
        raise ValueError(
            "H={}, P={}, D={}".format(*sizes) + f" is not an input that {planner.name} is meant "
            f"for; legal: {planner.domain}"
        )


def search(planner: BrokenPlanner, maximum: int = SEARCHED_TO) -> Search:
    """Judge a planner at every input of its domain with H, P and D up to `maximum`."""
    tried = list(inputs(planner, maximum))
    failing = (sizes for sizes in tried if any(judge(planner.subject, *sizes)))
    return Search(maximum, len(tried), tuple(failing))


def inputs(planner: BrokenPlanner, maximum: int) -> Iterator[Sizes]:
    """Yield each (H, P, D) of a planner's domain up to `maximum`, smallest H, P, D first."""
    sizes = range(1, maximum + 1)
    for H in sizes:
        legal = [size for size in sizes if is_legal(H, size)]
        yield from ((H, P, D) for P in legal for D in legal if planner.in_domain(H, P, D))
