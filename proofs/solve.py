# SPDX-License-Identifier: Apache-2.0
"""Answer a question with z3: what runs in a solver process.

Default solver options, but for the seed and the resource limit. Every question gets a context of
its own, so an answer does not depend on what the process did before.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator
from dataclasses import dataclass

import z3

from kvreshard.proofs.question import Question
from kvreshard.proofs.rewrite import name_terms, split_comparisons, write_out
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


def _fixed(
    assertions: list[z3.BoolRef], road: Road, first_values: tuple[int, ...]
) -> Iterator[list[z3.BoolRef]]:
    """Yield the assertions for every choice of the fixed parameters that they allow."""
    ctx = assertions[0].ctx
    plain = z3.And(*[item for item in assertions if not _is_negated_existential(item)])
    existentials = [item for item in assertions if _is_negated_existential(item)]
    others = [range(1, road.maximum + 1)] * (len(road.fixed) - 1)
    for values in itertools.product(first_values, *others):
        fixed = dict(zip(road.fixed, values, strict=True))
        pairs = [(z3.Int(name, ctx), z3.IntVal(value, ctx)) for name, value in fixed.items()]
        given = z3.simplify(z3.substitute(plain, *pairs))
        if z3.is_false(given):
            continue
        written = [z3.substitute(item, *pairs) for item in existentials]
        yield list(_written_out(given, written, values[-1], road))


def _is_negated_existential(assertion: z3.BoolRef) -> bool:
    return z3.is_not(assertion) and z3.is_quantifier(assertion.arg(0))


def _written_out(
    given: z3.BoolRef, existentials: list[z3.BoolRef], count: int, road: Road
) -> Iterator[z3.BoolRef]:
    """Yield the assertions with `some rank` as an alternative over ranks 0 to count - 1."""
    if road.cases is None:
        yield given
        for negated in existentials:
            yield from write_out(negated, count, z3.simplify)
        return
    parameter = z3.Int(road.cases, given.ctx)
    named: list[tuple[z3.ArithRef, z3.ArithRef]] = []

    def template(body: z3.BoolRef) -> z3.BoolRef:
        renamed, terms = name_terms(body, parameter)
        named.extend(terms)
        return z3.simplify(split_comparisons(z3.simplify(renamed)))

    for negated in existentials:
        yield from write_out(negated, count, template)
    whole = z3.And(given, *[name == term for name, term in named])
    values = [z3.IntVal(value, given.ctx) for value in range(1, road.maximum + 1)]
    yield z3.Or(
        z3.BoolVal(False, given.ctx),
        *[
            z3.And(parameter == value, z3.simplify(z3.substitute(whole, (parameter, value))))
            for value in values
            if not z3.is_false(z3.simplify(z3.substitute(given, (parameter, value))))
        ],
    )
