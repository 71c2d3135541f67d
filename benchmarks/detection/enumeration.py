# SPDX-License-Identifier: Apache-2.0
"""Enumeration: judge a planner on every legal (H, P, D) up to a bound, the smallest bound first.

In this order the first failure tells what the smallest sufficient bound is.
"""

# ruff: noqa: N806 - H, P and D are the names in the theorems

from __future__ import annotations

from typing import TYPE_CHECKING

from kvreshard.proofs.judge import Subject, is_legal, judge

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

Sizes = tuple[int, int, int]

_NEEDS_DIVISIBLE = "paired"


def shell(bound: int) -> Iterator[Sizes]:
    """Yield the legal (H, P, D) of which the largest is `bound`."""
    for H in range(1, bound + 1):
        sizes = [size for size in range(1, bound + 1) if is_legal(H, size)]
        for P in sizes:
            for D in sizes:
                if max(H, P, D) == bound:
                    yield H, P, D


def up_to(bound: int) -> Iterator[Sizes]:
    """Yield every legal (H, P, D) up to a bound, by the largest of the three."""
    for largest in range(1, bound + 1):
        yield from shell(largest)


def pairs_up_to(bound: int) -> int:
    """Return how many pairs of ranks the legal (H, P, D) up to a bound have together."""
    return sum(
        sum(size for size in range(1, bound + 1) if is_legal(H, size)) ** 2
        for H in range(1, bound + 1)
    )


def first_failure(
    subjects: Mapping[str, Subject],
    sizes: Iterable[Sizes],
    in_domain: Callable[[int, int, int], bool] = lambda *_: True,
) -> tuple[Sizes, tuple[str, ...]] | None:
    """Return the first sizes that a planner fails at and the invariants it violates there.

    Args:
        subjects: the planner with each election that it is judged with, by the election's name.
        sizes: what to judge, in this order.
        in_domain: whether the planner is meant for the sizes.
    """
    for triple in sizes:
        if in_domain(*triple):
            broken = violated(subjects, triple)
            if broken:
                return triple, broken
    return None


def violated(subjects: Mapping[str, Subject], sizes: Sizes) -> tuple[str, ...]:
    """Return the invariants that a planner violates at some sizes, each once, sorted.

    A planner that raises leaves its consumers without their heads.
    """
    H, P, D = sizes
    found: set[str] = set()
    for election, subject in subjects.items():
        if election == _NEEDS_DIVISIBLE and P % D and D % P:
            continue
        try:
            found.update(violation.invariant for violation in judge(subject, H, P, D))
        except (ArithmeticError, ValueError, IndexError):
            found.add("every_consumer_head_is_covered_exactly_once")
    return tuple(sorted(found))
