# SPDX-License-Identifier: Apache-2.0
"""Answer a question with z3: what runs in a solver process.

Default solver options, but for the seed and the resource limit. Every question gets a context of
its own. Yet z3 keeps the names of symbols per process, so what was built there before still moves
the resource counts, and with them an answer close to its limit. Proofs have to stay far from it,
which `seeds` looks after.
"""

from __future__ import annotations

import hashlib
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import z3

from kvreshard.proofs import fixing, rewrite

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kvreshard.proofs.question import Question


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


def code_hash() -> str:
    """Return the SHA-256 of the code that an answer comes from besides z3's own."""
    files = (Path(module.__file__ or "") for module in (fixing, rewrite, sys.modules[__name__]))
    return hashlib.sha256(b"".join(path.read_bytes() for path in files)).hexdigest()


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
    yield from fixing.fixed(assertions, question.road, question.values)
