# SPDX-License-Identifier: Apache-2.0
"""Prove a lifted planner right for all sizes of which one divides the other.

For each order of the three sizes the planner is asked with sizes and ranks written in factors and
digits, along every way through its code. On each way each invariant is a goal for the solver. That
every consumer head is covered takes a witness: the rank that the contract expects to send it, or
the one that a policy of the specification elects.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import z3

from kvreshard.proofs.audit.asking import ContractMismatchError, Copies
from kvreshard.proofs.audit.claims import possible, proved
from kvreshard.proofs.audit.judging import IN_SCOPE
from kvreshard.proofs.audit.orders import D, H, Index, Order, P, claims_of_coverage, compared, index
from kvreshard.proofs.audit.reduction import Hypotheses, plain, reduced, rules_of_quotients
from kvreshard.proofs.broken.names import CONTENT, COVERED, HOLDER, OVERLAP, READ, WRITE
from kvreshard.proofs.lifting.path import all_ways, as_condition
from kvreshard.spec.election import POLICIES
from kvreshard.spec.ownership import first_head, head_count, owner

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from typing import TypeAlias

    from kvreshard.proofs.audit.asking import Asking, Triple
    from kvreshard.proofs.audit.domain import Domain
    from kvreshard.proofs.lifting.path import Path, Way
    from kvreshard.proofs.lifting.values import Integer, Truth, Value
    from kvreshard.spec.election import Policy

    # From a consumer rank and a head to the rank that is expected to send it.
    Elect: TypeAlias = Callable[[Path, Integer, Integer], Integer]

BYTES_PER_HEAD = z3.Int("bytes_per_head")
# The case of what stops a proof as a whole.
EVERYWHERE = "everywhere"


@dataclass(frozen=True)
class Goal:
    """What has to hold on a way.

    Attributes:
        invariant: whose part it is.
        condition: what has to hold.
        what: the same in words.
    """

    invariant: str
    condition: Truth
    what: str


@dataclass
class Attempt:
    """What came of trying to prove the invariants.

    Attributes:
        goals: how many goals were proved.
        open: for each invariant the goals that are not proved, each with the case it is of.
        without_effect: what was met and is taken to have no effect, as (file, line, what).
    """

    goals: int = 0
    open: dict[str, list[tuple[str, str]]] = field(default_factory=dict)
    without_effect: set[tuple[str, int, str]] = field(default_factory=set)

    def failed(self, invariant: str, case: str, what: str) -> None:
        """Take note of a goal that is not proved."""
        self.open.setdefault(invariant, []).append((case, what))

    def all_failed(self, what: str) -> None:
        """Take note of what stops the proof as a whole."""
        for name in IN_SCOPE:
            self.failed(name, EVERYWHERE, what)


@dataclass(frozen=True)
class Setting:
    """A case in which a planner is asked: its sizes, and what is given of them.

    Attributes:
        name: the case in words.
        sizes: H, P and D.
        given: what holds of the sizes.
    """

    name: str
    sizes: tuple[Integer, Integer, Integer]
    given: tuple[Truth, ...]


def setting_of(order: Order) -> Setting:
    """Return the case of all sizes that stand in an order."""
    sizes = (order.size(H), order.size(P), order.size(D))
    return Setting(str(order), sizes, tuple(order.hypotheses))


@dataclass(frozen=True)
class Prover:
    """What is asked in one setting.

    Attributes:
        asking: the planner and its contract.
        domain: which sizes are meant.
        setting: the case.
        attempt: where results go.
    """

    asking: Asking
    domain: Domain
    setting: Setting
    attempt: Attempt

    def named(self, p: Integer | None, d: Integer | None) -> dict[str, Value]:
        """Return the parameters of a contract's functions by name."""
        heads, producers, consumers = self.setting.sizes
        return {
            "total_num_kv_heads": heads,
            "producer_tp_size": producers,
            "producer_tp_rank": p,
            "consumer_tp_size": consumers,
            "consumer_tp_rank": d,
            "bytes_per_head": BYTES_PER_HEAD,
        }

    def asked(self, path: Path, p: Integer, d: Integer) -> Copies | str | None:
        """Return a pair's copies in heads, None if it does not meet, or what stops it in words."""
        given = self.named(p, d)
        if not self.domain.holds(path, self.setting.sizes):
            return None
        if not self.asking.pairs(path, given):
            return None
        outcome = self.asking.plan(path, given)
        if not isinstance(outcome, Copies):
            return f"the planner raises {outcome.kind} at line {outcome.line}"
        if self.asking.contract.unit == "heads":
            return Copies(tuple(tuple(map(plain, one)) for one in outcome.copies))
        made = [in_heads(path, copy) for copy in outcome.copies]
        whole = tuple(copy for copy in made if copy is not None)
        if len(whole) < len(made):
            return "the offsets of a copy are not found to be whole heads"
        return Copies(whole)

    def settle(self, extra: Sequence[Truth], run: Callable[[Path], list[Goal]]) -> bool:
        """Go every way through a run and prove its goals; return whether all are proved.

        Raises:
            UnsupportedError: the planner cannot be lifted.
        """
        given = (*self.setting.given, BYTES_PER_HEAD >= 1, *extra)
        meaning = Hypotheses(given)

        def gone(path: Path) -> list[Goal]:
            try:
                return run(path)
            except ContractMismatchError as mismatch:
                # A way that nothing leads to may break the contract; another one may not.
                return [Goal(name, False, str(mismatch)) for name in IN_SCOPE]

        ways = all_ways(gone, lambda: meaning)
        self.attempt.without_effect.update(one for way in ways for one in way.assumed)
        covered = proved(given, z3.Or(*(z3.And(*way.conditions) for way in ways)))
        if not covered:
            # A way that is missing may have goals of any invariant.
            for invariant in IN_SCOPE:
                self.attempt.failed(invariant, self.setting.name, "not every way was gone")
        # Each way is looked at, whatever came of another: each may fail in a way of its own.
        done = [self._prove(given, way) for way in ways]
        return all(done) and covered

    def cover(
        self,
        extra: Sequence[Truth],
        run: Callable[[Path, Elect], list[Goal]],
        candidates: Iterable[Elect],
    ) -> None:
        """Settle a run with the first witness with which all its goals are proved."""
        before = {name: list(what) for name, what in self.attempt.open.items()}
        for elect in candidates:
            self.attempt.open = {name: list(what) for name, what in before.items()}

            def expecting(path: Path, elect: Elect = elect) -> list[Goal]:
                return run(path, elect)

            if self.settle(extra, expecting):
                return

    def _prove(self, given: Sequence[Truth], way: Way) -> bool:
        known = [*given, *way.conditions]
        if not possible(known):
            return True
        done = True
        for goal in way.outcome:
            if proved(known, goal.condition):
                self.attempt.goals += 1
                known.append(as_condition(goal.condition))
            else:
                done = False
                self.attempt.failed(goal.invariant, self.setting.name, goal.what)
        return done


def in_heads(path: Path, copy: Triple) -> Triple | None:
    """Return a copy's offsets and length in heads, if they are whole heads in this form."""
    made = []
    for value in copy:
        heads = plain(path.meaning.quotient(path, value, BYTES_PER_HEAD))
        rest = plain(value - heads * BYTES_PER_HEAD)
        if not (isinstance(rest, int) and rest == 0):
            return None
        made.append(heads)
    return made[0], made[1], made[2]


def goals_of_one(prover: Prover, path: Path, p: Integer, d: Integer) -> list[Goal]:
    """Return what has to hold of a pair's copies, each on its own and among themselves."""
    found = prover.asked(path, p, d)
    if found is None:
        return []
    if isinstance(found, str):
        return [Goal(name, False, found) for name in IN_SCOPE]
    heads, producers, consumers = prover.setting.sizes
    mine, theirs = (reduced(path, head_count(heads, size)) for size in (producers, consumers))
    source, target = (
        reduced(path, first_head(heads, size, rank))
        for size, rank in ((producers, p), (consumers, d))
    )
    goals = []
    for src, dst, count in found.copies:
        inside = _both(0 <= src, src + count <= mine)
        goals += [
            Goal(HOLDER, count >= 1, "a copy has a head"),
            Goal(READ, inside, "what is read is in the block"),
            # What lies outside the producer's block is no head at all.
            Goal(CONTENT, inside, "what is read is in the block"),
            Goal(WRITE, _both(0 <= dst, dst + count <= theirs), "what is written is in the block"),
            Goal(CONTENT, source + src == target + dst, "the heads are those that belong there"),
            Goal(
                HOLDER,
                _both(source <= target + dst, target + dst + count <= source + mine),
                "the producer holds what it writes",
            ),
        ]
    goals += _apart(found.copies, found.copies, "two copies of one producer", among=True)
    return goals


def _both(one: Truth, other: Truth) -> Truth:
    return z3.And(as_condition(one), as_condition(other))


def _apart(
    ones: Sequence[Triple], others: Sequence[Triple], who: str, among: bool = False
) -> Iterator[Goal]:
    for at, (_, dst, count) in enumerate(ones):
        for _, other_dst, other_count in others[at + 1 :] if among else others:
            apart = z3.Or(
                as_condition(dst + count <= other_dst),
                as_condition(other_dst + other_count <= dst),
            )
            yield Goal(OVERLAP, apart, f"{who} do not overlap")
            yield Goal(COVERED, apart, f"{who} do not cover one head")


def goals_of_two(prover: Prover, path: Path, p: Integer, q: Integer, d: Integer) -> list[Goal]:
    """Return what has to hold of the copies of two producers into one consumer's block."""
    ones, others = prover.asked(path, p, d), prover.asked(path, q, d)
    if not isinstance(ones, Copies) or not isinstance(others, Copies):
        # None copies nothing; one that raises has a goal of its own, which is not met.
        return []
    return list(_apart(ones.copies, others.copies, "the copies of two producers"))


def goals_of_witness(
    prover: Prover, path: Path, elect: Elect, d: Integer, x: Integer
) -> list[Goal]:
    """Return what has to hold for head slot x of consumer rank d to be covered by its witness."""
    heads, producers, consumers = prover.setting.sizes
    if not prover.domain.holds(path, prover.setting.sizes):
        return []
    head = plain(reduced(path, first_head(heads, consumers, d)) + x)
    witness = plain(elect(path, d, head))
    goals = [
        Goal(COVERED, _both(0 <= witness, witness < producers), "the expected sender is a rank")
    ]
    found = prover.asked(path, witness, d)
    if not isinstance(found, Copies):
        return [*goals, Goal(COVERED, False, found or "the expected sender meets the consumer")]
    covers = [_both(dst <= x, x < dst + count) for _, dst, count in found.copies]
    what = "the expected sender covers the head"
    return [*goals, Goal(COVERED, z3.Or(*covers) if covers else False, what)]


def witnesses(prover: Prover) -> Iterator[Elect]:
    """Yield who may be expected to send a head: as the contract says, or by a policy."""
    heads, producers, consumers = prover.setting.sizes
    if prover.asking.contract.function("expected_producer") is not None:

        def expected(path: Path, d: Integer, head: Integer) -> Integer:
            return prover.asking.expected_producer(path, {**prover.named(None, d), "head": head})

        yield expected
        return
    for policy in POLICIES:

        def elected(path: Path, d: Integer, head: Integer, policy: Policy = policy) -> Integer:
            ordinal = policy.elect(heads, producers, consumers, d)
            return reduced(path, owner(heads, producers, _term(head), ordinal))

        yield elected


def _term(value: Integer) -> z3.ArithRef:
    return z3.IntVal(value) if isinstance(value, int) else value


def prove_for_all_sizes(asking: Asking, domain: Domain) -> Attempt:
    """Try to prove every invariant in scope for all sizes of a domain.

    Raises:
        UnsupportedError: the planner cannot be lifted.
    """
    attempt = Attempt()
    for claim in (*claims_of_coverage(), *rules_of_quotients()):
        if not claim.holds:
            attempt.all_failed(f"not proved: {claim.name}")
    if not domain.is_divisible():
        attempt.all_failed(
            "the domain is not shown to have only sizes of which one divides the other"
        )
    if attempt.open:
        return attempt
    orders = list(domain.orders())
    if not orders:
        attempt.all_failed("the domain has no sizes")
    for order in orders:
        _in_order(asking, domain, order, attempt)
    return attempt


def _in_order(asking: Asking, domain: Domain, order: Order, attempt: Attempt) -> None:
    prover = Prover(asking, domain, setting_of(order), attempt)
    factors = order.factors
    d = index("d", order.factors_of(D))
    shared = met_digits(prover, order, d)
    p = index("p", order.factors_of(P), d.digits[:shared])
    prover.settle(
        [*d.hypotheses, *p.hypotheses, *compared((p, d), factors)],
        lambda path: goals_of_one(prover, path, p.value, d.value),
    )
    for place in range(shared, len(p.digits)):
        q = index("q", p.factors, p.digits[:place])
        later = p.digits[place] < q.digits[place]

        def both(path: Path, q: Index = q) -> list[Goal]:
            return goals_of_two(prover, path, p.value, q.value, d.value)

        prover.settle(
            [*d.hypotheses, *p.hypotheses, *q.hypotheses, later, *compared((p, q, d), factors)],
            both,
        )
    _cover(prover, order, d)


def met_digits(prover: Prover, order: Order, d: Index) -> int:
    """Return how many first digits any two ranks that meet have in common, as far as is proved.

    Only such pairs copy anything, so that the producer may be written with the consumer's digits.
    """
    p = index("p", order.factors_of(P))
    given = (*order.hypotheses, *d.hypotheses, *p.hypotheses, *compared((p, d), order.factors))
    meaning = Hypotheses(given)

    def met(path: Path) -> bool:
        in_domain = prover.domain.holds(path, prover.setting.sizes)
        return in_domain and prover.asking.pairs(path, prover.named(p.value, d.value))

    ways = [[*given, *way.conditions] for way in all_ways(met, lambda: meaning) if way.outcome]
    shared = 0
    for mine, theirs in zip(p.digits, d.digits, strict=False):
        if not all(proved(known, mine == theirs) for known in ways):
            break
        shared += 1
    return shared


def _cover(prover: Prover, order: Order, d: Index) -> None:
    inner = order.factors_of(H)[len(d.digits) :]
    x = Index(tuple(z3.Int(f"x{at}") for at in range(1, len(inner) + 1)), inner)
    whole = Index((*d.digits, *x.digits), (*d.factors, *x.factors))
    given = [*whole.hypotheses, *compared((d, whole), order.factors)]
    prover.cover(
        given,
        lambda path, elect: goals_of_witness(prover, path, elect, d.value, x.value),
        witnesses(prover),
    )
