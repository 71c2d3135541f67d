# SPDX-License-Identifier: Apache-2.0
"""The smallest inputs for which the formulas, as they stand, break an invariant.

The formulas are run in plain Python and judged with sets of heads, from the smallest number of
heads up, then by producer size, consumer size, election and rank. No solver is asked.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from kvreshard.proofs.evaluate import executable
from kvreshard.proofs.judge import (
    BlockLayout,
    Copy,
    Subject,
    Violation,
    is_legal,
    judge,
    judge_layout,
)
from kvreshard.spec import layout, planner
from kvreshard.spec.election import POLICIES, Policy
from kvreshard.spec.ownership import replica_count

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

SEARCHED_TO = 12

# A planner that raises sends nothing.
BROKEN_BY_RAISING = "every_consumer_head_is_covered_exactly_once"


@dataclass(frozen=True)
class Counterexample:
    """A violated invariant, the input with the election that was used, and what was seen."""

    violation: Violation
    election: str


def smallest_counterexamples(maximum: int = SEARCHED_TO) -> list[Counterexample]:
    """Return, for each invariant that fails for sizes up to `maximum`, the smallest failure."""
    found: dict[str, Counterexample] = {}
    subjects = {policy: specified(policy) for policy in POLICIES}
    for H, P, D in _triples(maximum):
        for policy, subject in subjects.items():
            if policy.needs_divisible_pair and P % D and D % P:
                continue
            for violation in _judged(subject, H, P, D):
                found.setdefault(violation.invariant, Counterexample(violation, policy.name))
    for violation in judge_layout(specified_layout()):
        found.setdefault(violation.invariant, Counterexample(violation, POLICIES[0].name))
    return list(found.values())


def specified_layout() -> BlockLayout:
    """Return the layout that the formulas of the specification describe."""
    address, head_slot, token, position = (
        executable(made)
        for made in (
            layout.byte_address,
            layout.head_slot_at,
            layout.token_at,
            layout.position_at,
        )
    )
    return BlockLayout(address, head_slot, token, position)


def specified(policy: Policy) -> Subject:
    """Return the planner that the formulas of the specification make with a policy."""
    elect = executable(policy.elect)
    sends, src, dst, count, first, last, low, high, accepts, step = (
        executable(made)
        for made in (
            planner.sends,
            planner.src_head_offset,
            planner.dst_head_offset,
            planner.copied_head_count,
            planner.first_sender,
            planner.last_sender,
            planner.first_receiver_candidate,
            planner.last_receiver_candidate,
            planner.region_lengths_match,
            replica_count,
        )
    )

    def plan(H: int, P: int, p: int, D: int, d: int) -> Copy:
        if not sends(H, P, p, D, d, elect(H, P, D, d)):
            return Copy(False, 0, 0, 0)
        return Copy(True, *(int(offset(H, P, p, D, d)) for offset in (src, dst, count)))

    def senders(H: int, P: int, D: int, d: int) -> list[int]:
        e = elect(H, P, D, d)
        return list(range(first(H, P, D, d, e), last(H, P, D, d, e) + 1, step(H, P)))

    def receivers(H: int, P: int, p: int, D: int) -> list[int]:
        candidates = range(low(H, P, p, D), high(H, P, p, D) + 1)
        return [d for d in candidates if sends(H, P, p, D, d, elect(H, P, D, d))]

    def accepted(H: int, P: int, D: int, a: int, b: int) -> bool:
        return bool(accepts(H, P, D, a, b))

    return Subject(plan, senders, receivers, accepted)


def _triples(maximum: int) -> Iterator[tuple[int, int, int]]:
    sizes = range(1, maximum + 1)
    for H in sizes:
        legal = [size for size in sizes if is_legal(H, size)]
        yield from ((H, P, D) for P in legal for D in legal)


def _judged(subject: Subject, H: int, P: int, D: int) -> Iterator[Violation]:
    """Judge, with a planner that raises counted as one that sends nothing."""
    try:
        yield from judge(subject, H, P, D)
    except (ArithmeticError, ValueError, IndexError) as error:
        yield Violation(
            BROKEN_BY_RAISING,
            H,
            P,
            D,
            None,
            f"the planner raises {type(error).__name__}: {error}",
        )


def enumerate_planner(
    subject_of: Callable[[str], Subject], maximum: int
) -> tuple[int, list[Counterexample]]:
    """Judge a planner on every legal triple up to `maximum` and every policy it defines.

    Returns:
        How many (H, P, D, policy) were judged, and every violation.
    """
    judged = 0
    found: list[Counterexample] = []
    for H, P, D in _triples(maximum):
        for policy in POLICIES:
            if policy.needs_divisible_pair and P % D and D % P:
                continue
            judged += 1
            violations = _judged(subject_of(policy.name), H, P, D)
            found += [Counterexample(violation, policy.name) for violation in violations]
    return judged, found
