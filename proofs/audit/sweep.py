# SPDX-License-Identifier: Apache-2.0
"""Try a planner at every size of its domain up to a bound, one by one, smallest first."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from kvreshard.proofs.audit.asking import plain_path
from kvreshard.proofs.audit.judging import Plans, judge_plans
from kvreshard.proofs.audit.model import Sweep
from kvreshard.proofs.judge import BYTES_PER_HEAD, is_legal
from kvreshard.proofs.lifting.run import RaisedAt

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from kvreshard.proofs.audit.asking import Asking
    from kvreshard.proofs.audit.model import Sizes
    from kvreshard.proofs.judge import Violation

# 376 legal sizes of which one divides the other.
SWEPT_TO = 16


class Subject(Protocol):
    """What can be asked with plain numbers: a lifted planner, or one that is executed."""

    @property
    def executed(self) -> bool:
        """Whether it is executed."""

    def in_domain(self, sizes: Sizes) -> bool:
        """Whether the planner is meant for the sizes."""

    def plans(self, sizes: Sizes, bytes_per_head: int) -> Plans:
        """Every copy at the sizes."""

    def refused(self, sizes: Sizes, bytes_per_head: int) -> bool | None:
        """Whether the guard refuses; None if there is none."""


@dataclass(frozen=True)
class Lifted:
    """A lifted planner, asked with plain numbers: nothing of the target is executed.

    Attributes:
        asking: the planner and its contract.
        has: (H, P, D) to whether the planner is meant for the sizes.
        without_effect: what was met and is taken to have no effect, as (file, line, what).
    """

    asking: Asking
    has: Callable[[Sizes], bool]
    without_effect: set[tuple[str, int, str]] = field(default_factory=set)
    executed = False

    def in_domain(self, sizes: Sizes) -> bool:
        """Whether the planner is meant for the sizes."""
        return self.has(sizes)

    def plans(self, sizes: Sizes, bytes_per_head: int) -> Plans:
        """Every copy at the sizes."""
        _, P, D = sizes
        unit = 1 if self.asking.contract.unit == "bytes" else bytes_per_head
        copies, raised = {}, {}
        for p in range(P):
            for d in range(D):
                given = named(sizes, p, d, bytes_per_head)
                if not self.asking.pairs(plain_path(), given):
                    continue
                path = plain_path()
                outcome = self.asking.plan(path, given)
                self.without_effect.update(path.assumed)
                if isinstance(outcome, RaisedAt):
                    raised[p, d] = f"{outcome.kind} at line {outcome.line}"
                elif outcome.copies:
                    copies[p, d] = tuple(
                        (src * unit, dst * unit, count * unit) for src, dst, count in outcome.copies
                    )
        return Plans(sizes, bytes_per_head, copies, raised)

    def refused(self, sizes: Sizes, bytes_per_head: int) -> bool | None:
        """Whether the guard refuses; None if there is none."""
        path = plain_path()
        refused = self.asking.refused(path, named(sizes, bytes_per_head=bytes_per_head))
        self.without_effect.update(path.assumed)
        return refused


def named(
    sizes: Sizes, p: int | None = None, d: int | None = None, bytes_per_head: int | None = None
) -> dict[str, int]:
    """Return the parameters of a contract's functions by name, those that have a value."""
    H, P, D = sizes
    known = {
        "total_num_kv_heads": H,
        "producer_tp_size": P,
        "producer_tp_rank": p,
        "consumer_tp_size": D,
        "consumer_tp_rank": d,
        "bytes_per_head": bytes_per_head,
    }
    return {name: value for name, value in known.items() if value is not None}


@dataclass
class Swept:
    """What came of a sweep.

    Attributes:
        sweep: the numbers.
        failing: the sizes that fail, smallest first, each with what was seen.
        by_invariant: how many sizes break each invariant.
        answers: for each size what all its copies come to, in one number, to compare two subjects.
    """

    sweep: Sweep
    failing: list[tuple[Sizes, list[Violation]]] = field(default_factory=list)
    by_invariant: Counter[str] = field(default_factory=Counter)
    answers: dict[Sizes, int] = field(default_factory=dict)


def sizes_up_to(maximum: int) -> Iterator[Sizes]:
    """Yield every legal (H, P, D) up to a bound, by H, then P, then D."""
    sizes = range(1, maximum + 1)
    for H in sizes:
        legal = [size for size in sizes if is_legal(H, size)]
        yield from ((H, P, D) for P in legal for D in legal)


def sweep(subject: Subject, maximum: int) -> Swept:
    """Judge a planner at every size of its domain up to a bound."""
    tried = refused = turned_away = 0
    found: list[tuple[Sizes, list[Violation]]] = []
    counts: Counter[str] = Counter()
    answers: dict[Sizes, int] = {}
    for sizes in sizes_up_to(maximum):
        if not subject.in_domain(sizes):
            continue
        tried += 1
        plans = subject.plans(sizes, BYTES_PER_HEAD)
        # What is raised is worded by each in its own way.
        answers[sizes] = hash((frozenset(plans.copies.items()), frozenset(plans.raised)))
        violations = list(judge_plans(plans))
        counts.update({violation.invariant for violation in violations})
        refuses = bool(subject.refused(sizes, BYTES_PER_HEAD))
        refused += bool(violations) and refuses
        turned_away += not violations and refuses
        if violations:
            found.append((sizes, violations))
    numbers = Sweep(maximum, tried, len(found), refused, turned_away, subject.executed)
    return Swept(numbers, found, counts, answers)
