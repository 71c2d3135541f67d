# SPDX-License-Identifier: Apache-2.0
"""Everything that has to be shown, as a list: no obligation exists outside of it."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING

import z3

from kvreshard.proofs.compositions import (
    DEFINEDNESS,
    ELECTIONS,
    PROOFS,
    REGIMES_ARE_EXHAUSTIVE,
    WITNESSES,
)
from kvreshard.proofs.lemma import LEMMAS, NO_LEMMAS, Lemma, Proof
from kvreshard.proofs.overflow import does_not_overflow, int64_formulas
from kvreshard.proofs.roads import DEFAULT_MAXIMUM, Road, bounds, road_for
from kvreshard.spec.election import POLICIES, is_paired, pair_is_divisible
from kvreshard.spec.formula import FORMULAS, Formula, Hypothesis, Truth
from kvreshard.spec.int64 import int64_bounds_for
from kvreshard.spec.invariants import INVARIANTS, PLANNER, Claim, Invariant
from kvreshard.spec.ownership import holds, owner, replica_count
from kvreshard.spec.parameters import D, H, P, d, h, hypotheses_for
from kvreshard.spec.regimes import IMPOSSIBLE_REGIMES, REGIMES, Regime
from kvreshard.spec.scenarios import SCENARIO_HYPOTHESES, SCENARIOS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence


@dataclass(frozen=True)
class Obligation:
    """One thing to show.

    Attributes:
        name: unique; `/` separates invariant, part, regime and scope.
        kind: one of the ledger's kinds.
        sentence: what it says.
        hypotheses: what may be assumed. They also have to be satisfiable.
        goal: what has to follow. For a scenario: what has to be satisfiable with the hypotheses.
        proof: lemma instances, and the formulas that stay closed.
        assumed: how many of the hypotheses, from the first, the proof is given. The others, which
            single out a regime, are not needed by it.
        invariant, part, regime, scope: where it belongs; None where that does not apply.
        road: how a bounded statement is settled; None for an unbounded one.
        about: the formula whose definedness or overflow it is about, or None.
    """

    name: str
    kind: str
    sentence: str
    hypotheses: tuple[Hypothesis, ...]
    goal: Truth
    proof: Proof = NO_LEMMAS
    assumed: int | None = None
    invariant: str | None = None
    part: str | None = None
    regime: str | None = None
    scope: str | None = None
    road: Road | None = None
    about: Formula | None = None

    def given(self) -> tuple[Hypothesis, ...]:
        """Return the hypotheses that the proof is given."""
        return self.hypotheses[: self.assumed]

    def lemmas(self) -> tuple[str, ...]:
        """Return the names of the lemmas it rests on, each once."""
        return tuple(dict.fromkeys(use.lemma.name for use in self.proof.uses))

    def formulas(self) -> tuple[str, ...]:
        """Return the names of the formulas that the statement speaks of, with all they call."""
        statement = [hypothesis.condition for hypothesis in self.hypotheses]
        found = _formulas_in([*statement, self.goal])
        return tuple(sorted(found | ({self.about.name} if self.about else set())))


def obligations(maximum: int = DEFAULT_MAXIMUM) -> tuple[Obligation, ...]:
    """Return every obligation, in the order of the ledger.

    Args:
        maximum: largest number of heads, and largest TP size, of the bounded statements.
    """
    listed = (
        *map(_lemma, LEMMAS.values()),
        *_exhaustive(),
        # By name: the order in which modules were imported is no order to write a ledger in.
        *definedness(made for _, made in sorted(FORMULAS.items())),
        *_overflow(),
        *_scenarios(),
        *_elections(),
        *_invariants(maximum),
    )
    names = [obligation.name for obligation in listed]
    if len(set(names)) != len(names):
        raise ValueError("two obligations have the same name")
    for obligation in listed:
        for use in obligation.proof.uses:
            if LEMMAS.get(use.lemma.name) is not use.lemma:
                raise ValueError(f"{obligation.name} uses {use.lemma.name}, which is not stated")
    return listed


def _lemma(lemma: Lemma) -> Obligation:
    given = tuple(
        Hypothesis(f"given_{number}", condition)
        for number, condition in enumerate(lemma.given, start=1)
    )
    return Obligation(
        name=f"lemma/{lemma.name}",
        kind="lemma",
        sentence=lemma.sentence,
        hypotheses=given,
        goal=z3.And(*lemma.then),
        proof=lemma.proof,
        scope="unbounded",
    )


_GROUPS = hypotheses_for(["total_num_kv_heads", "producer_tp_size", "consumer_tp_size"])


def _exhaustive() -> Iterator[Obligation]:
    yield Obligation(
        name="every_legal_pair_is_in_exactly_one_regime",
        kind="exhaustive",
        sentence="Every legal pair of groups is in exactly one of the regimes.",
        hypotheses=_GROUPS,
        goal=_exactly_one([regime.condition() for regime in REGIMES]),
        proof=REGIMES_ARE_EXHAUSTIVE,
        scope="unbounded",
    )
    for regime in IMPOSSIBLE_REGIMES:
        yield Obligation(
            name=f"no_pair_is_in_{regime.name}",
            kind="exhaustive",
            sentence="Where one side splits and the other replicates, one size divides the other.",
            hypotheses=(*_GROUPS, *regime.hypotheses[:-1]),
            goal=z3.Not(regime.hypotheses[-1].condition),
            proof=REGIMES_ARE_EXHAUSTIVE,
            scope="unbounded",
        )


def _exactly_one(conditions: Sequence[Truth]) -> Truth:
    pairs = itertools.combinations(conditions, 2)
    return z3.And(z3.Or(*conditions), *[z3.Not(z3.And(*pair)) for pair in pairs])


def definedness(formulas: Iterable[Formula]) -> Iterator[Obligation]:
    """Yield that formulas are defined on their legal inputs, for those that divide or apply."""
    for made in formulas:
        conditions = list(_defined(made.body, z3.BoolVal(True)))
        if not conditions:
            continue
        yield Obligation(
            name=f"{made.name}/is_defined",
            kind="definedness",
            sentence=(
                f"Each divisor in {made.name} is at least 1, and each formula it applies gets "
                "arguments in their legal ranges."
            ),
            hypotheses=_legal_for(made),
            goal=z3.And(*conditions),
            proof=DEFINEDNESS.get(made.name, NO_LEMMAS),
            scope="unbounded",
            about=made,
        )


def _defined(expression: z3.ExprRef, path: Truth) -> Iterator[Truth]:
    """Yield what makes every division and every application in an expression legal.

    Only a conditional guards its branches. What stands in `and` or `or` has to be legal whatever
    the other operands are, since the emitted code may compute it first.
    """
    if z3.is_app_of(expression, z3.Z3_OP_ITE):
        test, then, otherwise = expression.children()
        yield from _defined(test, path)
        yield from _defined(then, z3.And(path, test))
        yield from _defined(otherwise, z3.And(path, z3.Not(test)))
        return
    for child in expression.children():
        yield from _defined(child, path)
    if z3.is_app_of(expression, z3.Z3_OP_IDIV) or z3.is_app_of(expression, z3.Z3_OP_MOD):
        yield z3.Implies(path, expression.arg(1) >= 1)
    callee = FORMULAS.get(expression.decl().name())
    if callee is not None:
        pairs = list(zip(callee.parameters, expression.children(), strict=True))
        for hypothesis in hypotheses_for(callee.parameter_names):
            yield z3.Implies(path, z3.substitute(hypothesis.condition, *pairs))


def _legal_for(made: Formula) -> tuple[Hypothesis, ...]:
    # A formula that decides a hypothesis cannot assume it.
    return tuple(
        hypothesis
        for hypothesis in hypotheses_for(made.parameter_names)
        if made.name not in _formulas_in([hypothesis.condition])
    )


def _overflow() -> Iterator[Obligation]:
    for made in int64_formulas():
        yield Obligation(
            name=f"{made.name}/does_not_overflow",
            kind="overflow",
            sentence=(
                f"Each integer that {made.name} computes fits 64 bits, and each formula it applies "
                "gets arguments within their bounds."
            ),
            hypotheses=(*_legal_for(made), *int64_bounds_for(made.parameter_names)),
            goal=does_not_overflow(made),
            scope="unbounded",
            about=made,
        )


def _scenarios() -> Iterator[Obligation]:
    for scenario in SCENARIOS:
        yield Obligation(
            name=f"{scenario.name}/{scenario.regime.name}",
            kind="scenario",
            sentence=scenario.sentence,
            hypotheses=(*SCENARIO_HYPOTHESES, *scenario.regime.hypotheses),
            goal=scenario.condition,
            regime=scenario.regime.name,
        )


def _elections() -> Iterator[Obligation]:
    consumer = (*_GROUPS, *hypotheses_for(["consumer_tp_rank"]))
    for policy in POLICIES:
        elected = policy.elect(H, P, D, d)
        divisible = Hypothesis("one_tp_size_divides_the_other", pair_is_divisible(P, D))
        given = (*consumer, divisible) if policy.needs_divisible_pair else consumer
        yield Obligation(
            name=f"{policy.name}/the_elected_ordinal_is_in_range",
            kind="election",
            sentence=f"Policy {policy.name} elects an ordinal that every set of replicas has.",
            hypotheses=given,
            goal=z3.And(0 <= elected, elected < replica_count(H, P)),
            scope="unbounded",
        )
        if policy.needs_divisible_pair:
            yield from _stays_within_its_pairs(policy.name, policy.elect, consumer)


def _stays_within_its_pairs(
    name: str, elect: Formula, consumer: tuple[Hypothesis, ...]
) -> Iterator[Obligation]:
    held = Hypothesis("the_consumer_holds_the_head", holds(H, D, d, h))
    sender = owner(H, P, h, elect(H, P, D, d))
    for regime in REGIMES:
        if regime.name.endswith("_divisible"):
            yield Obligation(
                name=f"{name}/the_elected_rank_is_in_the_consumers_pairs/{regime.name}",
                kind="election",
                sentence=f"Policy {name} elects, for each head, a rank paired with the consumer.",
                hypotheses=(*consumer, held, *regime.hypotheses),
                goal=is_paired(P, sender, D, d),
                proof=ELECTIONS[regime.name],
                regime=regime.name,
                scope="unbounded",
            )


def _invariants(maximum: int) -> Iterator[Obligation]:
    for invariant in INVARIANTS.values():
        for claim in invariant.claims(PLANNER):
            for regime in REGIMES:
                yield _unbounded(invariant, claim, regime)
                yield _bounded(invariant, claim, regime, maximum)


def _unbounded(invariant: Invariant, claim: Claim, regime: Regime) -> Obligation:
    goal = claim.goal
    if z3.is_quantifier(goal):
        goal = z3.substitute_vars(goal.body(), WITNESSES[invariant.name, claim.part])
    return Obligation(
        name=f"{invariant.name}/{claim.part}/{regime.name}/unbounded",
        kind="invariant",
        sentence=invariant.sentence,
        hypotheses=(*claim.hypotheses, *regime.hypotheses),
        goal=goal,
        proof=PROOFS[invariant.name][claim.part],
        assumed=len(claim.hypotheses),
        invariant=invariant.name,
        part=claim.part,
        regime=regime.name,
        scope="unbounded",
    )


def _bounded(invariant: Invariant, claim: Claim, regime: Regime, maximum: int) -> Obligation:
    # Whether one size divides the other is not needed, and the regimes that differ in nothing else
    # are then one question.
    *sharding, divisibility = regime.hypotheses
    given = (*claim.hypotheses, *sharding, *bounds(maximum))
    return Obligation(
        name=f"{invariant.name}/{claim.part}/{regime.name}/bounded",
        kind="invariant",
        sentence=invariant.sentence,
        hypotheses=(*given, divisibility),
        goal=claim.goal,
        assumed=len(given),
        invariant=invariant.name,
        part=claim.part,
        regime=regime.name,
        scope="bounded",
        road=road_for(invariant.name, claim.part, regime.name, maximum),
    )


def _formulas_in(expressions: Iterable[z3.ExprRef]) -> set[str]:
    found: set[str] = set()
    seen: set[int] = set()
    pending = list(expressions)
    while pending:
        node = pending.pop()
        if node.get_id() in seen:
            continue
        seen.add(node.get_id())
        if z3.is_quantifier(node):
            pending.append(node.body())
            continue
        pending.extend(node.children())
        made = FORMULAS.get(node.decl().name()) if z3.is_app(node) else None
        if made is not None and made.name not in found:
            found.add(made.name)
            pending.append(made.body)
    return found
