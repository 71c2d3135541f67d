# SPDX-License-Identifier: Apache-2.0
"""Which hypotheses the proofs need: unsat cores, made small by dropping what can be dropped.

A hypothesis that no proof needs is no mistake: a precondition may be there for the reader. But it
is one that the theorems do not rest on, and a reviewer should know which these are.
"""

from __future__ import annotations

import hashlib
import json
import multiprocessing
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import z3

from kvreshard.proofs.question import RLIMIT, negated, smt2, text_hash
from kvreshard.proofs.solve import solver_version

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kvreshard.proofs.obligations import Obligation

SCHEMA = 1
CORES_PATH = Path(__file__).parent / "needed_hypotheses.json"


class NoCoreError(Exception):
    """A statement that is proved was not refuted here, so there is no core to look at."""


@dataclass(frozen=True)
class CoreQuestion:
    """A proof: its assertions, the first of which are the named hypotheses."""

    name: str
    hypotheses: tuple[str, ...]
    text: str


def core_question(item: Obligation) -> CoreQuestion:
    """Return the question for an obligation as it was proved."""
    names = tuple(hypothesis.name for hypothesis in item.given())
    return CoreQuestion(item.name, names, smt2(negated(item)))


def needed(question: CoreQuestion) -> tuple[str, ...]:
    """Return hypotheses that suffice, none of which can be dropped within the resource limit.

    Raises:
        NoCoreError: even all of them do not suffice.
    """
    context = z3.Context()
    assertions = list(z3.parse_smt2_string(question.text, ctx=context))
    count = len(question.hypotheses)
    if len(assertions) <= count:
        raise NoCoreError(f"{question.name}: fewer assertions than hypotheses")
    named, rest = assertions[:count], assertions[count:]
    left = list(range(count))
    if not _refuted(context, [named[number] for number in left], rest):
        raise NoCoreError(f"{question.name}: not refuted")
    for number in range(count):
        fewer = [kept for kept in left if kept != number]
        if _refuted(context, [named[kept] for kept in fewer], rest):
            left = fewer
    return tuple(question.hypotheses[number] for number in left)


def _refuted(context: z3.Context, named: list[z3.BoolRef], rest: list[z3.BoolRef]) -> bool:
    solver = z3.Solver(ctx=context)
    solver.set("rlimit", RLIMIT)
    solver.add(*named, *rest)
    return bool(solver.check() == z3.unsat)


def statements_hash(obligations: Sequence[Obligation]) -> str:
    """Return the SHA-256 of the texts that are asked, so that a record of others is seen."""
    texts = {text_hash(item) for item in obligations if _is_asked(item)}
    return hashlib.sha256("\n".join(sorted(texts)).encode("utf-8")).hexdigest()


def _is_asked(item: Obligation) -> bool:
    return item.scope == "unbounded" and bool(item.given())


def find_needed(obligations: Sequence[Obligation], *, jobs: int) -> dict[str, Any]:
    """Return, for each hypothesis, how many distinct unbounded statements state and need it.

    Raises:
        NoCoreError: a statement is not refuted, or there is none.
    """
    distinct = {
        text_hash(item): core_question(item) for item in reversed(obligations) if _is_asked(item)
    }
    if not distinct:
        raise NoCoreError("no statement has a hypothesis")
    questions = sorted(distinct.values(), key=lambda question: question.name)
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(max_workers=jobs, mp_context=context) as pool:
        cores = list(pool.map(needed, questions))
    stated = Counter(
        name for question in questions if _is_named(question) for name in question.hypotheses
    )
    used = Counter(
        name
        for question, core in zip(questions, cores, strict=True)
        if _is_named(question)
        for name in core
    )
    return {
        "schema": SCHEMA,
        "solver": {"name": "z3", "version": solver_version()},
        "statements": len(questions),
        "statements_sha256": statements_hash(obligations),
        "hypotheses": [
            {"name": name, "stated_by": stated[name], "needed_by": used[name]}
            for name in sorted(stated)
        ],
    }


def _is_named(question: CoreQuestion) -> bool:
    """Whether the hypotheses have names of their own: those of a lemma are numbered."""
    return not question.name.startswith("lemma/")


def load(path: Path = CORES_PATH) -> dict[str, Any]:
    """Return the checked-in record."""
    record: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return record


def write(record: dict[str, Any], path: Path = CORES_PATH) -> None:
    """Write a record."""
    path.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8", newline="\n")
