# SPDX-License-Identifier: Apache-2.0
"""Why a mutant that nothing refutes is no fault: a proof, or there is no explanation.

Either the mutant is equal to the formula, for all integers or where the reason says, or every
obligation that speaks of the formula holds for the mutant too: it is another right planner. All of
it is proved for all sizes, with the seeds, the limits and the lemmas of a proof run.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import z3

from kvreshard.proofs.lemma import LEMMAS, Proof
from kvreshard.proofs.mutation.hints import HINTS
from kvreshard.proofs.mutation.operators import applied_in
from kvreshard.proofs.mutation.refute import refute
from kvreshard.proofs.mutation.statements import Statement
from kvreshard.proofs.obligations import Obligation, definedness, obligations
from kvreshard.proofs.rewrite import constants_of
from kvreshard.proofs.run import prove
from kvreshard.spec.formula import FORMULAS, Hypothesis, unfold
from kvreshard.spec.parameters import PARAMETERS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from kvreshard.proofs.cache import Cache
    from kvreshard.proofs.mutation.mutants import Mutant

# The bounds of 64-bit integers say where arrays may be used, not what a right plan is. Bounded
# statements say less than the unbounded ones beside them.
_LEFT_OUT_KIND = "overflow"
_LEFT_OUT_SCOPE = "bounded"
_SIZES_AND_RANKS = frozenset({"heads", "ranks", "rank"})


@dataclass(frozen=True)
class Explanation:
    """Why a mutant is no fault.

    Attributes:
        outcome: "equivalent" or "right"; "survivor" where nothing was proved.
        reason: a sentence.
        lemmas: the lemmas that the proof rests on, by name.
        proved: how many obligations, with those of the lemmas, were proved for it.
        open: the obligations that were not proved.
    """

    outcome: str
    reason: str
    lemmas: tuple[str, ...] = ()
    proved: int = 0
    open: tuple[str, ...] = ()


def explain(mutant: Mutant, *, jobs: int, cache: Cache) -> Explanation:
    """Prove that a mutant is no fault, or say what could not be proved."""
    for where, hypotheses in _domains(mutant.formula):
        item = _equality(mutant, hypotheses)
        if _differ_on_the_range(item):
            continue
        shown = [item, *_definedness(mutant)]
        verdicts = prove([*_lemmas_of(shown), *shown], jobs=jobs, cache=cache)
        if all(verdict.holds for verdict in verdicts):
            reason = f"equal to {mutant.formula} {where}"
            return Explanation("equivalent", reason, _closure(shown), len(verdicts))
    return _right_by_every_obligation(mutant, jobs, cache)


def _domains(formula: str) -> Iterator[tuple[str, tuple[Hypothesis, ...]]]:
    """Yield where the mutant may be equal to the formula, the strongest claim first."""
    legal = _legal(formula)
    named = {name for name in FORMULAS[formula].parameter_names if _is_size_or_rank(name)}
    grouped = tuple(one for one in legal if _names(one) & named and _names(one) <= named)
    yield "for all integers", ()
    yield "for legal sizes and ranks, whatever the other arguments are", grouped
    yield "on its legal inputs", legal
    yield "wherever an obligation speaks of it", _common(formula)


def _is_size_or_rank(name: str) -> bool:
    # The heads of a group are of the same unit as its offsets; the parameters' own table decides.
    return name in PARAMETERS and PARAMETERS[name].unit in _SIZES_AND_RANKS


def _names(hypothesis: Hypothesis) -> set[str]:
    return {str(constant) for constant in constants_of(hypothesis.condition)}


def _legal(formula: str) -> tuple[Hypothesis, ...]:
    """Return the legal ranges of a formula's parameters, but for those that it decides."""
    names = FORMULAS[formula].parameter_names
    chosen = [PARAMETERS[name] for name in names if name in PARAMETERS]
    hypotheses = [hypothesis for entry in chosen for hypothesis in entry.hypotheses]
    return tuple(one for one in hypotheses if formula not in applied_in(one.condition))


def _common(formula: str) -> tuple[Hypothesis, ...]:
    """Return the hypotheses of all obligations about a formula that limit its own arguments.

    A parameter for which an application has another term than the constant of its name is not
    limited by them. That the formula itself is defined says nothing of where it is applied.
    """
    about = [
        item
        for item in speaking(formula, obligations())
        if not (item.kind == "definedness" and item.about is FORMULAS[formula])
    ]
    if not about:
        return ()
    limited = set(FORMULAS[formula].parameter_names)
    for item in about:
        limited &= _limited(item, formula)
    free = set(FORMULAS[formula].parameter_names) - limited
    shared = [
        one
        for one in about[0].hypotheses
        if formula not in applied_in(one.condition)
        and not _names(one) & free
        and all(any(one.condition.eq(two.condition) for two in item.hypotheses) for item in about)
    ]
    return tuple(shared)


def _limited(item: Obligation, formula: str) -> set[str]:
    """Return the parameters for which each application has the constant of that name."""
    conditions = [hypothesis.condition for hypothesis in item.hypotheses]
    names = FORMULAS[formula].parameter_names
    limited = set(names)
    pending = [unfold(one, frozenset({formula})) for one in (*conditions, item.goal)]
    while pending:
        node = pending.pop()
        if z3.is_quantifier(node):
            pending.append(node.body())
            continue
        pending += node.children()
        if node.decl().name() == formula:
            pairs = zip(names, node.children(), strict=True)
            limited &= {name for name, term in pairs if term.eq(z3.Int(name))}
    return limited


def _equality(mutant: Mutant, hypotheses: tuple[Hypothesis, ...]) -> Obligation:
    made = FORMULAS[mutant.formula]
    return Obligation(
        name=f"{mutant.name}/is_equal",
        kind="equivalence",
        sentence=f"The mutant has the values of {made.name}.",
        hypotheses=hypotheses,
        goal=made.body == mutant.body,
        proof=HINTS.get(mutant.name, HINTS.get(mutant.formula, {})).get("", Proof()),
        scope="unbounded",
        about=made,
    )


def _definedness(mutant: Mutant) -> list[Obligation]:
    """Return that the mutant itself divides and applies legally: equal values do not say so."""
    with mutant.applied():
        return list(definedness([FORMULAS[mutant.formula]]))


def _differ_on_the_range(item: Obligation) -> bool:
    """Whether small values tell the two apart, which spares the solver a vain search."""
    given = tuple(hypothesis.condition for hypothesis in item.hypotheses)
    found = refute(Statement(item.name, item.kind, item.name, given, item.goal))
    return found.model is not None


def _right_by_every_obligation(mutant: Mutant, jobs: int, cache: Cache) -> Explanation:
    hints = HINTS.get(mutant.name, {})
    with mutant.applied():
        about = [_with_hint(item, hints) for item in speaking(mutant.formula, obligations())]
        chosen = {item.name: item for item in [*_lemmas_of(about), *about]}
        verdicts = prove(list(chosen.values()), jobs=jobs, cache=cache)
    failed = tuple(verdict.obligation.name for verdict in verdicts if not verdict.holds)
    if failed or not about:
        reason = "neither equal to the formula nor right by every obligation, as far as is proved"
        return Explanation("survivor", reason, open=failed)
    reason = f"each of the {len(about)} obligations that speak of {mutant.formula} holds"
    return Explanation("right", reason, _closure(about), len(verdicts))


def speaking(formula: str, items: Iterable[Obligation]) -> list[Obligation]:
    """Return the obligations about a formula that a right planner has to meet."""
    return [
        item
        for item in items
        if item.kind != _LEFT_OUT_KIND
        and item.scope != _LEFT_OUT_SCOPE
        and formula in item.formulas()
    ]


def _with_hint(item: Obligation, hints: dict[str, Proof]) -> Obligation:
    """Return the obligation, with the lemma instances that the mutant's proof needs beside."""
    for prefix, hint in hints.items():
        if prefix and item.name.startswith(prefix):
            proof = Proof((*item.proof.uses, *hint.uses), item.proof.closed | hint.closed)
            return replace(item, proof=proof)
    return item


def _lemmas_of(items: Iterable[Obligation]) -> list[Obligation]:
    """Return the obligations of all lemmas that the items rest on."""
    wanted = set(_closure(items))
    if not wanted:
        return []
    return [
        item
        for item in obligations()
        if item.kind == "lemma" and item.name.removeprefix("lemma/") in wanted
    ]


def _closure(items: Iterable[Obligation]) -> tuple[str, ...]:
    found: set[str] = set()
    pending = [name for item in items for name in item.lemmas()]
    while pending:
        name = pending.pop()
        if name not in found:
            found.add(name)
            pending += [use.lemma.name for use in LEMMAS[name].proof.uses]
    return tuple(sorted(found))
