# SPDX-License-Identifier: Apache-2.0
"""A right planner written by hand, from which most of the broken ones differ in one place.

It shares no code with the specification or the judge.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kvreshard.proofs.judge import Copy, Subject

if TYPE_CHECKING:
    from collections.abc import Callable

    Plan = Callable[[int, int, int, int, int], Copy]

NOTHING = Copy(False, 0, 0, 0)


def heads_of(H: int, T: int, r: int) -> range:
    """Return the heads of rank r of T."""
    count = max(H // T, 1)
    return range(r * H // T, r * H // T + count)


def replicas(H: int, T: int) -> int:
    """Return how many ranks of T hold the same heads."""
    return max(T // H, 1)


def overlap(H: int, P: int, p: int, D: int, d: int) -> Copy:
    """Copy what both ranks hold, whoever else may hold it too."""
    source, target = heads_of(H, P, p), heads_of(H, D, d)
    shared = sorted(set(source) & set(target))
    if not shared:
        return NOTHING
    return Copy(True, shared[0] - source[0], shared[0] - target[0], len(shared))


def right_plan(H: int, P: int, p: int, D: int, d: int) -> Copy:
    """Copy what both ranks hold, from the lowest replica."""
    return NOTHING if p % replicas(H, P) else overlap(H, P, p, D, d)


def right_lengths(H: int, P: int, D: int, a: int, b: int) -> bool:
    """Accept lengths that are the same whole number of bytes for each head, at least one."""
    size, rest = divmod(a, len(heads_of(H, P, 0)))
    return size >= 1 and rest == 0 and b == size * len(heads_of(H, D, 0))


def planner_of(plan: Plan) -> Subject:
    """Return a planner whose two sides count their peers by its own plan."""
    return Subject(
        plan=plan,
        senders=lambda H, P, D, d: [p for p in range(P) if plan(H, P, p, D, d).sends],
        receivers=lambda H, P, p, D: [d for d in range(D) if plan(H, P, p, D, d).sends],
        accepts=right_lengths,
    )


RIGHT = planner_of(right_plan)
