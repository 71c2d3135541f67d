# SPDX-License-Identifier: Apache-2.0
"""Prove that two lifted planners make the same copies, for all sizes or for sizes by value.

Both are asked along the same way, so that a condition that one of them meets is known to the other.
On each way the lists of copies are matched one to one, and that each two are equal is a goal for
the solver. A list of another length, or one planner that raises alone, is a goal that is not met.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from itertools import permutations
from typing import TYPE_CHECKING

import z3

from kvreshard.proofs.audit.all_sizes import (
    BYTES_PER_HEAD,
    EVERYWHERE,
    Attempt,
    Goal,
    Prover,
    Setting,
    in_heads,
    met_digits,
    setting_of,
)
from kvreshard.proofs.audit.asking import Copies
from kvreshard.proofs.audit.domain import Domain
from kvreshard.proofs.audit.in_range import setting_at
from kvreshard.proofs.audit.orders import D, P, claims_of_coverage, compared, index
from kvreshard.proofs.audit.reduction import plain, rules_of_quotients
from kvreshard.proofs.audit.sweep import sizes_up_to
from kvreshard.proofs.lifting.path import as_condition

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from kvreshard.proofs.audit.asking import Asking, Triple
    from kvreshard.proofs.audit.orders import Order
    from kvreshard.proofs.lifting.path import Path
    from kvreshard.proofs.lifting.run import RaisedAt
    from kvreshard.proofs.lifting.values import Integer, Truth

COPIES = "both planners make the same copies"
GUARDS = "both guards refuse the same inputs"
# Lists of more copies are matched in the order that they have.
MOST_PERMUTED = 4


@dataclass(frozen=True)
class CommonDomain(Domain):
    """The sizes that both contracts are for, narrowed by the user.

    Attributes:
        old: the domain of the other contract.
    """

    old: Domain | None = None

    @staticmethod
    def of_both(old: Asking, new: Asking, where: str = "") -> CommonDomain:
        """Make the domain of two contracts.

        Raises:
            WhereError: `where` is no condition on H, P and D.
        """
        narrowed = Domain.of(new, where)
        return CommonDomain(new, where, narrowed.condition, Domain.of(old))

    @property
    def in_words(self) -> str:
        """The domain as reports say it."""
        said = super().in_words
        other = self.old.in_words if self.old else ""
        return said if other in ("", self.asking.contract.domain) else f"{other}; and {said}"

    def holds(self, path: Path, sizes: tuple[Integer, Integer, Integer]) -> bool:
        """Return whether sizes are in both domains; the way parts where that is not known."""
        if self.old is not None and not self.old.holds(path, sizes):
            return False
        return super().holds(path, sizes)


@dataclass(frozen=True)
class Both:
    """Two planners that are asked in one setting.

    Attributes:
        old, new: what asks each of them.
    """

    old: Prover
    new: Prover

    @staticmethod
    def at(old: Asking, new: Asking, domain: Domain, setting: Setting, attempt: Attempt) -> Both:
        """Make what asks both."""
        made = Prover(new, domain, setting, attempt)
        return Both(replace(made, asking=old), made)

    def inside(self, path: Path) -> bool:
        """Return whether the sizes are in the domain on this way."""
        return self.new.domain.holds(path, self.new.setting.sizes)


def prove_same_for_all_sizes(old: Asking, new: Asking, domain: Domain) -> Attempt:
    """Try to prove that two planners make the same copies for all sizes of a domain.

    Raises:
        UnsupportedError: a planner cannot be lifted.
    """
    return _in_every_order(old, new, domain, COPIES, _copies_in_order)


def prove_guards_same_for_all_sizes(old: Asking, new: Asking, domain: Domain) -> Attempt:
    """Try to prove that two guards refuse the same inputs for all sizes of a domain.

    Raises:
        UnsupportedError: a guard cannot be lifted.
    """
    return _in_every_order(old, new, domain, GUARDS, _guards_in_order)


def prove_same_in_range(old: Asking, new: Asking, domain: Domain, maximum: int) -> Attempt:
    """Try to prove the same copies for the sizes up to a bound, by value, for all ranks and bytes.

    Raises:
        UnsupportedError: a planner cannot be lifted.
    """
    attempt = Attempt()
    p, d = z3.Ints("p d")
    inside = [sizes for sizes in sizes_up_to(maximum) if domain.has(sizes)]
    if not inside:
        attempt.failed(COPIES, EVERYWHERE, f"the domain has no sizes up to {maximum}")
    for sizes in inside:
        _, producers, consumers = sizes
        both = Both.at(old, new, domain, setting_at(sizes), attempt)
        ranks = [0 <= p, p < producers, 0 <= d, d < consumers]
        both.new.settle(ranks, partial(goals_of_pair, both, p, d))
    return attempt


def _in_every_order(
    old: Asking,
    new: Asking,
    domain: Domain,
    name: str,
    prove: Callable[[Both, Order], None],
) -> Attempt:
    attempt = Attempt()
    for claim in (*claims_of_coverage(), *rules_of_quotients()):
        if not claim.holds:
            attempt.failed(name, EVERYWHERE, f"not proved: {claim.name}")
    if not domain.is_divisible():
        what = "the domain is not shown to have only sizes of which one divides the other"
        attempt.failed(name, EVERYWHERE, what)
    if attempt.open:
        return attempt
    orders = list(domain.orders())
    if not orders:
        attempt.failed(name, EVERYWHERE, "the domain has no sizes")
    for order in orders:
        prove(Both.at(old, new, domain, setting_of(order), attempt), order)
    return attempt


def _copies_in_order(both: Both, order: Order) -> None:
    d = index("d", order.factors_of(D))
    # A pair that meets under either contract has these digits in common; no other one copies.
    shared = min(met_digits(prover, order, d) for prover in (both.old, both.new))
    p = index("p", order.factors_of(P), d.digits[:shared])
    ranks = [*d.hypotheses, *p.hypotheses, *compared((p, d), order.factors)]
    both.new.settle(ranks, partial(goals_of_pair, both, p.value, d.value))


def _guards_in_order(both: Both, order: Order) -> None:  # noqa: ARG001 - the setting is its own
    def run(path: Path) -> list[Goal]:
        if not both.inside(path):
            return []
        old, new = (
            bool(prover.asking.refused(path, prover.named(None, None)))
            for prover in (both.old, both.new)
        )
        return [Goal(GUARDS, old == new, f"the {'old' if old else 'new'} guard refuses alone")]

    both.new.settle([], run)


def goals_of_pair(both: Both, p: Integer, d: Integer, path: Path) -> list[Goal]:
    """Return what has to hold for two planners to copy the same from p to d."""
    if not both.inside(path):
        return []
    old, new = (_answer(prover, path, p, d) for prover in (both.old, both.new))
    if not isinstance(old, Copies) or not isinstance(new, Copies):
        return list(_of_raising(old, new))
    many, others = len(old.copies), len(new.copies)
    if many != others:
        return [Goal(COPIES, False, f"of one pair the old one makes {many} copies, not {others}")]
    condition = _same(_comparable(path, old.copies, new.copies))
    return [Goal(COPIES, condition, "the copies of a pair are the same")]


def _answer(prover: Prover, path: Path, p: Integer, d: Integer) -> Copies | RaisedAt:
    """Return a pair's copies in bytes, or where the planner raises. One that does not meet, none.

    Whether the sizes are in the domain was asked before.
    """
    given = prover.named(p, d)
    if not prover.asking.pairs(path, given):
        return Copies(())
    outcome = prover.asking.plan(path, given)
    if not isinstance(outcome, Copies):
        return outcome
    unit = BYTES_PER_HEAD if prover.asking.contract.unit == "heads" else z3.IntVal(1)
    return Copies(
        tuple((plain(s * unit), plain(t * unit), plain(n * unit)) for s, t, n in outcome.copies)
    )


def _of_raising(old: Copies | RaisedAt, new: Copies | RaisedAt) -> Iterator[Goal]:
    for one, other, name in ((old, new, "old"), (new, old, "new")):
        if not isinstance(one, Copies) and isinstance(other, Copies):
            what = f"the {name} planner alone raises {one.kind} at line {one.line}"
            yield Goal(COPIES, False, what)


def _comparable(
    path: Path, old: Sequence[Triple], new: Sequence[Triple]
) -> tuple[list[Triple], list[Triple]]:
    """Return both lists in heads if all of both are whole heads, else in bytes.

    Bytes are heads times the bytes of one, which are at least 1, so that one is as good.
    """
    whole = [[in_heads(path, copy) for copy in copies] for copies in (old, new)]
    mine, theirs = ([copy for copy in copies if copy is not None] for copies in whole)
    if (len(mine), len(theirs)) == (len(old), len(new)):
        return mine, theirs
    return list(old), list(new)


def _same(lists: tuple[list[Triple], list[Triple]]) -> Truth:
    """Return a condition under which two lists of one length have the same copies.

    Copies of the same look are matched first. That is a guess: the solver is asked about them too.
    """
    matched: list[z3.BoolRef] = []
    mine, theirs = [], list(lists[1])
    for copy in lists[0]:
        twin = next((at for at, other in enumerate(theirs) if _looks_like(copy, other)), None)
        if twin is None:
            mine.append(copy)
        else:
            matched.append(_equal(copy, theirs.pop(twin)))
    orders = permutations(theirs) if len(theirs) <= MOST_PERMUTED else iter([tuple(theirs)])
    ways = [
        z3.And(*(_equal(one, other) for one, other in zip(mine, order, strict=True)))
        for order in orders
    ]
    return z3.And(*matched, ways[0] if len(ways) == 1 else z3.Or(*ways))


def _equal(one: Triple, other: Triple) -> z3.BoolRef:
    return z3.And(*(as_condition(a == b) for a, b in zip(one, other, strict=True)))


def _looks_like(one: Triple, other: Triple) -> bool:
    rest = (plain(a - b) for a, b in zip(one, other, strict=True))
    return all(isinstance(left, int) and left == 0 for left in rest)
