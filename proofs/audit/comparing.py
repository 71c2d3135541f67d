# SPDX-License-Identifier: Apache-2.0
"""Ask two planners at every size of a domain up to a bound, and judge both where they differ."""

from __future__ import annotations

import hashlib
from collections import Counter
from dataclasses import dataclass, field
from itertools import product
from typing import TYPE_CHECKING

from kvreshard.proofs.audit.difference_model import (
    Counted,
    Difference,
    DiffSweep,
    Judged,
    Pair,
    WhichIsRight,
)
from kvreshard.proofs.audit.judging import IN_SCOPE, Plans, judge_plans
from kvreshard.proofs.audit.sweep import sizes_up_to
from kvreshard.proofs.judge import BYTES_PER_HEAD

if TYPE_CHECKING:
    from kvreshard.proofs.audit.model import Sizes
    from kvreshard.proofs.audit.sweep import Subject


@dataclass
class Compared:
    """What came of asking two planners at many sizes.

    Attributes:
        sweep: the numbers.
        first: for each kind of difference its smallest sizes, the smallest kind first.
        reaching: the smallest sizes that differ at which a planner is wrong and its own guard, if
            there is one, refuses nothing; None if there are none.
        guards_differ: the sizes at which one guard refuses and the other does not.
        answers: for each size a digest of both plans, without what the raised exceptions say.
    """

    sweep: DiffSweep
    first: dict[WhichIsRight, Sizes] = field(default_factory=dict)
    reaching: Sizes | None = None
    guards_differ: list[Sizes] = field(default_factory=list)
    answers: dict[Sizes, str] = field(default_factory=dict)


def compare(old: Subject, new: Subject, maximum: int) -> Compared:
    """Ask both at every size of their domain up to a bound.

    Raises:
        UnsupportedError, ExecutionStopped: one of them does not answer.
    """
    seen: Counter[tuple[WhichIsRight, bool, bool]] = Counter()
    first: dict[WhichIsRight, Sizes] = {}
    reaching: Sizes | None = None
    guards: list[Sizes] = []
    answers: dict[Sizes, str] = {}
    for sizes in sizes_up_to(maximum):
        if not (old.in_domain(sizes) and new.in_domain(sizes)):
            continue
        refused = (
            bool(old.refused(sizes, BYTES_PER_HEAD)),
            bool(new.refused(sizes, BYTES_PER_HEAD)),
        )
        if refused[0] != refused[1]:
            guards.append(sizes)
        plans = (old.plans(sizes, BYTES_PER_HEAD), new.plans(sizes, BYTES_PER_HEAD))
        answers[sizes] = _digest(plans)
        if any(pair.differs for pair in side_by_side(*plans)):
            right = which_is_right(*plans)
            first.setdefault(right, sizes)
            if reaching is None and _reaches(right, *refused):
                reaching = sizes
            seen[right, refused[0], refused[1]] += 1
    counted = tuple(_counted(right, seen) for right in WhichIsRight)
    numbers = DiffSweep(
        maximum,
        len(answers),
        BYTES_PER_HEAD,
        sum(seen.values()),
        counted,
        executed=old.executed and new.executed,
    )
    return Compared(numbers, first, reaching, guards, answers)


def _reaches(right: WhichIsRight, old_refused: bool, new_refused: bool) -> bool:
    """Return whether a planner that is wrong is not refused."""
    old_wrong = right in (WhichIsRight.NEW, WhichIsRight.NEITHER)
    new_wrong = right in (WhichIsRight.OLD, WhichIsRight.NEITHER)
    return (old_wrong and not old_refused) or (new_wrong and not new_refused)


def _counted(right: WhichIsRight, seen: Counter[tuple[WhichIsRight, bool, bool]]) -> Counted:
    mine = {key: many for key, many in seen.items() if key[0] is right}
    return Counted(
        right,
        sum(mine.values()),
        sum(many for (_, old, _), many in mine.items() if old),
        sum(many for (_, _, new), many in mine.items() if new),
    )


def answers_at(old: Subject, new: Subject, sizes: Sizes, bytes_per_head: int) -> str:
    """Return a digest of both plans at an input, without what raised exceptions say.

    Raises:
        UnsupportedError, ExecutionStopped: one of them does not answer.
    """
    return _digest((old.plans(sizes, bytes_per_head), new.plans(sizes, bytes_per_head)))


def _digest(plans: tuple[Plans, Plans]) -> str:
    made = [
        (sorted((pair, sorted(copies)) for pair, copies in one.copies.items()), sorted(one.raised))
        for one in plans
    ]
    return hashlib.sha256(repr(made).encode()).hexdigest()


def side_by_side(old: Plans, new: Plans) -> tuple[Pair, ...]:
    """Return every pair of ranks for which one of two planners copies something or raises."""
    _, P, D = old.sizes
    made = (
        Pair(
            p,
            d,
            old.copies.get((p, d), ()),
            new.copies.get((p, d), ()),
            old.raised.get((p, d), ""),
            new.raised.get((p, d), ""),
        )
        for d, p in product(range(D), range(P))
    )
    return tuple(
        pair for pair in made if pair.old or pair.new or pair.old_raises or pair.new_raises
    )


def which_is_right(old: Plans, new: Plans) -> WhichIsRight:
    """Return which of two plans breaks nothing, by the judge."""
    old_wrong, new_wrong = (any(True for _ in judge_plans(plans)) for plans in (old, new))
    return {
        (True, False): WhichIsRight.NEW,
        (False, True): WhichIsRight.OLD,
        (False, False): WhichIsRight.BOTH,
        (True, True): WhichIsRight.NEITHER,
    }[old_wrong, new_wrong]


def difference_at(
    old: Subject, new: Subject, sizes: Sizes, bytes_per_head: int, why: str
) -> Difference | None:
    """Return how two planners differ at an input, or None where they do not.

    Raises:
        UnsupportedError, ExecutionStopped: one of them does not answer.
    """
    mine, theirs = (one.plans(sizes, bytes_per_head) for one in (old, new))
    pairs = side_by_side(mine, theirs)
    if not any(pair.differs for pair in pairs):
        return None
    right = which_is_right(mine, theirs)
    return Difference(
        sizes=sizes,
        bytes_per_head=bytes_per_head,
        pairs=pairs,
        old=_judged(old, mine),
        new=_judged(new, theirs),
        right=right,
        choice=_choice(mine, theirs) if right is WhichIsRight.BOTH else "",
        why=why,
    )


def _judged(subject: Subject, plans: Plans) -> Judged:
    found = list(judge_plans(plans))
    broken = [name for name in IN_SCOPE if any(one.invariant == name for one in found)]
    seen = next((one.seen for one in found if one.invariant == broken[0]), "") if found else ""
    return Judged(tuple(broken), seen, subject.refused(plans.sizes, plans.bytes_per_head))


def _choice(old: Plans, new: Plans) -> str:
    """Say how two right plans differ: in who sends a byte, or in how the same bytes are cut."""
    if _senders(old) == _senders(new):
        return "by cutting the same bytes into other copies"
    return "by another choice of replica"


def _senders(plans: Plans) -> list[list[tuple[int, int]]]:
    """Return for each consumer rank where in its block the sender changes, as (byte, sender)."""
    _, P, D = plans.sizes
    made = []
    for d in range(D):
        written = sorted((dst, p) for p in range(P) for _, dst, _ in plans.copies.get((p, d), ()))
        changes = [one for at, one in enumerate(written) if not at or written[at - 1][1] != one[1]]
        made.append(changes)
    return made
