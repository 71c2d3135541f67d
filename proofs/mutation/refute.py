# SPDX-License-Identifier: Apache-2.0
"""Refute a statement on its bounded range with z3, and replay the model in plain Python.

z3 divides by 0 and Python does not, so the query asks that every divisor be at least 1, where a
conditional does not keep it from being computed. Only a model whose hypotheses hold and whose goal
fails in the replay refutes anything; one that does not replay is an error.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import z3

from kvreshard.proofs.divisors import divisors_are_positive
from kvreshard.proofs.evaluate import executable_truth
from kvreshard.proofs.mutation import statements
from kvreshard.proofs.mutation.answers import Answers, Model
from kvreshard.proofs.mutation.statements import FIXED, MAXIMUM, RANGES, Statement
from kvreshard.proofs.question import smt2
from kvreshard.proofs.solve import solver_version
from kvreshard.spec.formula import Truth, unfold

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

# Resource units of z3 per query. The dearest query of the specification itself takes a hundredth.
RLIMIT = 5_000_000
RANKS = range(MAXIMUM)

NOTHING_KEPT = Answers(None)


class DoesNotReplayError(Exception):
    """A model of the solver that plain Python does not confirm."""


@dataclass(frozen=True)
class Refutation:
    """What came of a statement on its range.

    Attributes:
        result: "refuted", "holds" or "undecided".
        model: the values that refute it, by constant, with the smallest H, then P or T, then D.
    """

    result: str
    model: Model | None = None


def refute(statement: Statement, answers: Answers = NOTHING_KEPT) -> Refutation:
    """Decide a statement, with the formulas as they stand in this process.

    Args:
        statement: what is to be refuted.
        answers: those of earlier runs.

    Raises:
        DoesNotReplayError: the solver's model is none in plain Python.
    """
    names = sorted(statement.constants())
    text = smt2(query(statement))
    question = "\n".join([solver_version(), _code_hash(), *names, text])
    result, model = answers.find(question) or _search(text, names)
    answers.keep(question, (result, model))
    if model is None:
        return Refutation("holds" if result == "unsat" else "undecided")
    replay(statement, model)
    return Refutation("refuted", model)


@cache
def _code_hash() -> str:
    """Return the SHA-256 of the code that asks."""
    files = [Path(__file__), Path(statements.__file__)]
    return hashlib.sha256(b"".join(path.read_bytes() for path in files)).hexdigest()


def query(statement: Statement) -> Iterator[Truth]:
    """Yield what a model that refutes the statement on its range has to satisfy."""
    stated = map(unfold, (*statement.hypotheses, statement.goal))
    written = [written_out(one, RANKS) for one in stated]
    yield from written[:-1]
    yield z3.Not(written[-1])
    yield from _ranges(statement.constants())
    yield from divisors_are_positive(written)


def replay(statement: Statement, model: Model) -> None:
    """Run the statement in plain Python for the values of a model.

    Raises:
        DoesNotReplayError: a hypothesis fails, a value is out of range, the goal holds, or a
            division by 0 is computed.
    """
    told = f"{statement.name} with {model}"
    for name, value in model.items():
        low, high = RANGES.get(name, (value, value))
        if not low <= value <= high:
            raise DoesNotReplayError(f"{told}: {name} is not in {low} to {high}")
    try:
        for hypothesis in statement.hypotheses:
            if not executable_truth(hypothesis, RANKS)(model):
                raise DoesNotReplayError(f"{told}: the hypothesis {hypothesis} fails")
        if executable_truth(statement.goal, RANKS)(model):
            raise DoesNotReplayError(f"{told}: the goal holds")
    except (ZeroDivisionError, KeyError) as error:
        raise DoesNotReplayError(f"{told}: {type(error).__name__}: {error}") from error


def written_out(statement: z3.ExprRef, ranks: range) -> z3.ExprRef:
    """Write out over the ranks what is said of some rank, or of each.

    A quantifier is looked for under `and`, `or`, `not` and implications.
    """
    if z3.is_quantifier(statement):
        bodies = [z3.substitute_vars(statement.body(), z3.IntVal(rank)) for rank in ranks]
        return z3.Or(*bodies) if statement.is_exists() else z3.And(*bodies)
    if any(one(statement) for one in (z3.is_and, z3.is_or, z3.is_not, z3.is_implies)):
        return statement.decl()(*[written_out(child, ranks) for child in statement.children()])
    return statement


def _ranges(names: set[str]) -> Iterator[Truth]:
    for name in sorted(names & RANGES.keys()):
        low, high = RANGES[name]
        yield z3.And(low <= z3.Int(name), z3.Int(name) <= high)


def _search(text: str, names: Sequence[str]) -> tuple[str, Model | None]:
    """Return "sat" with a model, "unsat" or "unknown", sizes fixed value by value from below."""
    context = z3.Context()
    whole = z3.simplify(z3.And(*z3.parse_smt2_string(text, ctx=context)))
    fixed = [name for name in FIXED if name in names]
    chosen, later = fixed[:2], fixed[2:]
    unknown = False
    for given, values in _choices(whole, chosen):
        result, model = _check(given, names, values)
        for pairs in _choices(given, later) if result == "sat" and later else ():
            narrow_result, narrow = _check(pairs[0], names, {**values, **pairs[1]})
            if narrow_result == "sat":
                return narrow_result, narrow
        if result == "sat":
            return result, model
        unknown = unknown or result == "unknown"
    return "unknown" if unknown else "unsat", None


def _choices(given: Truth, names: Sequence[str]) -> Iterator[tuple[Truth, Model]]:
    """Yield what is left of a condition for each choice of the named sizes that it allows."""
    if not names:
        yield given, {}
        return
    constant = z3.Int(names[0], given.ctx)
    low, high = RANGES[names[0]]
    for value in range(low, high + 1):
        left = z3.simplify(z3.substitute(given, (constant, z3.IntVal(value, given.ctx))))
        if not z3.is_false(left):
            for rest, values in _choices(left, names[1:]):
                yield rest, {names[0]: value, **values}


def _check(given: Truth, names: Sequence[str], values: Model) -> tuple[str, Model | None]:
    solver = z3.Solver(ctx=given.ctx)
    solver.set("rlimit", RLIMIT)
    solver.add(given)
    result = str(solver.check())
    if result != "sat":
        return result, None
    model = solver.model()
    free = [z3.Int(name, given.ctx) for name in names if name not in values]
    found = {str(c): int(model.eval(c, model_completion=True).as_long()) for c in free}
    return result, {name: {**found, **values}[name] for name in names}
