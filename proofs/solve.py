# SPDX-License-Identifier: Apache-2.0
"""Answer a question with z3: what runs in a solver process.

Default solver options, but for the seed and the resource limit. Every question gets a context of
its own, so an answer does not depend on what the process did before.
"""

from __future__ import annotations

import itertools
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import z3

from kvreshard.proofs.rewrite import constants_of, name_terms, split_comparisons, write_out

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kvreshard.proofs.question import Question
    from kvreshard.proofs.roads import Road


@dataclass(frozen=True)
class Answer:
    """What the solver said.

    Attributes:
        result: "sat" if any query was, else "unsat" if all were, else "unknown".
        queries: how many queries were put.
        largest_rlimit: resource units of the dearest query.
        seconds: time on the clock.
        reason: what stopped the solver where it is unknown.
    """

    result: str
    queries: int
    largest_rlimit: int
    seconds: float
    reason: str = ""


def solver_version() -> str:
    """Return the exact version of z3."""
    return str(z3.get_version_string())


def answer(question: Question) -> Answer:
    """Decide a question."""
    started = time.perf_counter()
    context = z3.Context()
    assertions = list(z3.parse_smt2_string(question.text, ctx=context))
    results: list[str] = []
    spent = [0]
    reason = ""
    for query in _queries(assertions, question):
        for seed in question.seeds:
            solver = z3.Solver(ctx=context)
            solver.set("rlimit", question.rlimit)
            solver.set("random_seed", seed)
            before = _rlimit_count(solver)
            solver.add(*query)
            results.append(str(solver.check()))
            spent.append(_rlimit_count(solver) - before)
            if results[-1] == "unknown":
                reason = solver.reason_unknown()
        if results[-1] != "unsat":
            break
    decided = "sat" if "sat" in results else "unknown" if "unknown" in results else "unsat"
    return Answer(decided, len(results), max(spent), time.perf_counter() - started, reason)


def _rlimit_count(solver: z3.Solver) -> int:
    """Return what the context has spent so far: z3's count never starts again from zero."""
    return int(solver.statistics().get_key_value("rlimit count"))


def _queries(assertions: list[z3.BoolRef], question: Question) -> Iterator[list[z3.BoolRef]]:
    if question.road is None:
        yield assertions
        return
    yield from _fixed(assertions, question.road, question.values)


@dataclass(frozen=True)
class _Prepared:
    """The assertions of a question, ready to have parameters fixed.

    Attributes:
        plain: what has no quantifier.
        bodies: the bodies of the negated existentials, their variable free.
        named: names for terms that hold the parameter which is split into cases.
    """

    plain: z3.BoolRef
    bodies: tuple[z3.BoolRef, ...]
    named: tuple[tuple[z3.ArithRef, z3.ArithRef], ...]


def _prepare(assertions: list[z3.BoolRef], road: Road) -> _Prepared:
    existentials = [item for item in assertions if _is_negated_existential(item)]
    plain = z3.And(*[item for item in assertions if not _is_negated_existential(item)])
    bodies = [item.arg(0).body() for item in existentials]
    named: list[tuple[z3.ArithRef, z3.ArithRef]] = []
    if road.cases is not None:
        for index, body in enumerate(bodies):
            renamed, terms = name_terms(body, z3.Int(road.cases, body.ctx), len(named))
            named += terms
            bodies[index] = split_comparisons(renamed)
    return _Prepared(plain, tuple(bodies), tuple(named))


def _is_negated_existential(assertion: z3.BoolRef) -> bool:
    return bool(z3.is_not(assertion) and z3.is_quantifier(assertion.arg(0)))


def _fixed(
    assertions: list[z3.BoolRef], road: Road, first_values: tuple[int, ...]
) -> Iterator[list[z3.BoolRef]]:
    """Yield the assertions for every choice of the fixed parameters that they allow.

    "Some rank" is written out over the ranks below the value of the last fixed parameter.
    """
    prepared = _prepare(assertions, road)
    ctx = prepared.plain.ctx
    allowed: dict[str, list[z3.ArithRef]] = {}
    others = [range(1, road.maximum + 1)] * (len(road.fixed) - 1)
    for values in itertools.product(first_values, *others):
        fixed = zip(road.fixed, values, strict=True)
        pairs = [(z3.Int(name, ctx), z3.IntVal(value, ctx)) for name, value in fixed]
        given = z3.simplify(z3.substitute(prepared.plain, *pairs))
        if z3.is_false(given):
            continue
        bodies = [z3.substitute(body, *pairs) for body in prepared.bodies]
        alternatives = [item for body in bodies for item in write_out(body, values[-1])]
        if road.cases is None:
            yield [given, *alternatives]
        else:
            named = [name == z3.substitute(term, *pairs) for name, term in prepared.named]
            yield [_cases(given, named, road, allowed), *alternatives]


def _cases(
    given: z3.BoolRef,
    named: list[z3.BoolRef],
    road: Road,
    allowed: dict[str, list[z3.ArithRef]],
) -> z3.BoolRef:
    """Return what is given, and what the names stand for, as one case for each value."""
    parameter = z3.Int(road.cases, given.ctx)
    whole = z3.And(given, *named)
    alone = z3.And(z3.BoolVal(True, given.ctx), *_about_nothing_but(parameter, given))
    key = alone.sexpr()
    if key not in allowed:
        values = [z3.IntVal(value, given.ctx) for value in range(1, road.maximum + 1)]
        allowed[key] = [
            value
            for value in values
            if not z3.is_false(z3.simplify(z3.substitute(alone, (parameter, value))))
        ]
    return z3.Or(
        z3.BoolVal(False, given.ctx),
        *[
            z3.And(parameter == value, z3.simplify(z3.substitute(whole, (parameter, value))))
            for value in allowed[key]
        ],
    )


def _about_nothing_but(parameter: z3.ArithRef, given: z3.BoolRef) -> list[z3.BoolRef]:
    return [item for item in given.children() if constants_of(item) <= {parameter}]
