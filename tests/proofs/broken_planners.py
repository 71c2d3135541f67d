# SPDX-License-Identifier: Apache-2.0
"""Planners in plain Python: a right one, and faults seen in the wild or made up."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from kvreshard.proofs.judge import Copy, Subject

Plan = Callable[[int, int, int, int, int], Copy]

NOTHING = Copy(False, 0, 0, 0)


def heads_of(H: int, T: int, r: int) -> range:
    """Return the heads of a rank."""
    count = max(H // T, 1)
    return range(r * H // T, r * H // T + count)


def right_plan(H: int, P: int, p: int, D: int, d: int) -> Copy:
    """Copy what both ranks hold, from the lowest replica."""
    source, target = heads_of(H, P, p), heads_of(H, D, d)
    shared = sorted(set(source) & set(target))
    if not shared or p % max(P // H, 1):
        return NOTHING
    return Copy(True, shared[0] - source[0], shared[0] - target[0], len(shared))


def right_lengths(H: int, P: int, D: int, a: int, b: int) -> bool:
    """Accept lengths that are the same whole number of bytes for each head, at least one."""
    mine, theirs = len(heads_of(H, P, 0)), len(heads_of(H, D, 0))
    return any((a, b) == (mine * size, theirs * size) for size in range(1, a + 1))


def subject(plan: Plan) -> Subject:
    """Return a planner whose two sides count their peers by its own plan."""
    return Subject(
        plan=plan,
        senders=lambda H, P, D, d: [p for p in range(P) if plan(H, P, p, D, d).sends],
        receivers=lambda H, P, p, D: [d for d in range(D) if plan(H, P, p, D, d).sends],
        accepts=right_lengths,
    )


RIGHT = subject(right_plan)


def _changed(**offsets: int) -> Plan:
    """Return the right plan with something added to its numbers."""

    def plan(H: int, P: int, p: int, D: int, d: int) -> Copy:
        copy = right_plan(H, P, p, D, d)
        if not copy.sends:
            return copy
        moved = {name: getattr(copy, name) + step for name, step in offsets.items()}
        return copy._replace(**moved)

    return plan


def by_ratio(H: int, P: int, p: int, D: int, d: int) -> Copy:
    """Cut blocks by the ratio of the sizes, as if every rank held its own heads.

    vLLM's connector did so before its pull request 52516. Of P // D producers in front of a
    consumer each is given the part of the block that its place names, one of at least one head.
    """
    mine, theirs = max(H // P, 1), max(H // D, 1)
    if P >= D:
        ratio = P // D
        if p // ratio != d:
            return NOTHING
        at = (p % ratio) * (theirs // ratio)
        # Without a whole head for each, all have the same part, and the first alone sends it.
        if theirs < ratio and p % ratio:
            return NOTHING
        return Copy(True, 0, at, mine)
    ratio = D // P
    if d // ratio != p:
        return NOTHING
    return Copy(True, (d % ratio) * (mine // ratio), 0, min(mine, theirs))


def by_modulo(H: int, P: int, p: int, D: int, d: int) -> Copy:
    """Take rank r's head to be r % H, as in SGLang's issue 23746. One producer, more consumers."""
    assert P == 1
    assert D > H
    return Copy(True, d % H, 0, 1) if p == 0 else NOTHING


def by_rebuilt_heads(H: int, P: int, p: int, D: int, d: int) -> Copy:
    """Take the model to have local heads times group size, which counts replicas as heads."""
    local = max(H // P, 1)
    rebuilt = local * P
    source = range(p * local, (p + 1) * local)
    count = max(rebuilt // D, 1)
    target = range(d * rebuilt // D, d * rebuilt // D + count)
    shared = sorted(set(source) & set(target))
    if not shared:
        return NOTHING
    return Copy(True, shared[0] - source[0], shared[0] - target[0], len(shared))


def by_every_replica(H: int, P: int, p: int, D: int, d: int) -> Copy:
    """Let every rank that holds a head send it."""
    replicas = max(P // H, 1)
    return right_plan(H, P, p - p % replicas, D, d)


def with_copies_of_nothing(H: int, P: int, p: int, D: int, d: int) -> Copy:
    """Let a rank with nothing to give send no heads, where the right plan stays silent."""
    copy = right_plan(H, P, p, D, d)
    return copy if copy.sends else Copy(True, 0, 0, 0)


def from_a_rank_that_lacks_the_head(H: int, P: int, p: int, D: int, d: int) -> Copy:
    """Let the rank before the right one send."""
    return right_plan(H, P, (p + 1) % P, D, d)


RATIO = subject(by_ratio)
MODULO = subject(by_modulo)
REBUILT = subject(by_rebuilt_heads)
EVERY_REPLICA = subject(by_every_replica)
READS_PAST_THE_BLOCK = subject(_changed(src_head_offset=1))
READS_BEFORE_THE_BLOCK = subject(_changed(src_head_offset=-1))
WRITES_PAST_THE_BLOCK = subject(_changed(dst_head_offset=1))
COPIES_TOO_MUCH = subject(_changed(head_count=1))
COPIES_NOTHING = subject(with_copies_of_nothing)
WRONG_RANK = subject(from_a_rank_that_lacks_the_head)
# ARG005 below: a stand-in has the parameters of what it stands in for, used or not.
WAITS_FOR_ALL = replace(RIGHT, senders=lambda H, P, D, d: list(range(P)))  # noqa: ARG005
WAITS_FOR_NONE = replace(RIGHT, senders=lambda H, P, D, d: [])  # noqa: ARG005
WAITS_TWICE = replace(
    RIGHT, senders=lambda H, P, D, d: [p for p in RIGHT.senders(H, P, D, d) for _ in range(2)]
)
COUNTS_ALL_CONSUMERS = replace(RIGHT, receivers=lambda H, P, p, D: list(range(D)))  # noqa: ARG005
LENGTHS_BY_PRODUCT = replace(
    RIGHT,
    accepts=lambda H, P, D, a, b: (
        a >= 1 and b >= 1 and a * len(heads_of(H, D, 0)) == b * len(heads_of(H, P, 0))
    ),
)
LENGTHS_UNCHECKED = replace(RIGHT, accepts=lambda H, P, D, a, b: True)  # noqa: ARG005
LENGTHS_REFUSED = replace(RIGHT, accepts=lambda H, P, D, a, b: False)  # noqa: ARG005
