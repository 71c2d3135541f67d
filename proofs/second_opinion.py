# SPDX-License-Identifier: Apache-2.0
"""What cvc5 makes of every obligation, and what either solver does without the cuts.

An obligation is asked as it was proved: its lemma instances, its closed formulas, the negated goal.
Where cvc5 does not settle that, it is asked again with quotients as witnesses (`restate`). A
bounded statement is asked with everything symbolic, whatever road z3 took.

Beside the obligations stand the uncut statements: each claim of each invariant in each regime, for
all sizes, with all definitions unfolded and neither lemma nor witness.
"""

from __future__ import annotations

import hashlib
import multiprocessing
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import z3

from kvreshard.proofs.cvc5_solver import Cvc5Question, NoAnswerError, ask_all, cvc5_version
from kvreshard.proofs.obligations import Obligation
from kvreshard.proofs.question import Question, negated, proof_text, smt2, text_hash
from kvreshard.proofs.restate import Restated, with_witnesses
from kvreshard.proofs.solve import answer, solver_version
from kvreshard.spec.invariants import INVARIANTS, PLANNER
from kvreshard.spec.regimes import REGIMES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kvreshard.proofs.cache import Cache

SCHEMA = 1

# cvc5's units: the dearest confirmed statement takes under a third of it.
AS_PROVED_RLIMIT = 3_000_000
UNCUT_RLIMIT = 1_000_000
# z3's units.
Z3_UNCUT_RLIMIT = 1_000_000

Progress = Callable[[str, int, int], None]


def uncut_statements() -> dict[str, str]:
    """Return the SMT-LIB text of each claim of each invariant in each regime, by its name."""
    return {
        f"{invariant.name}/{claim.part}/{regime.name}": proof_text(
            Obligation(
                name="",
                kind="uncut",
                sentence=invariant.sentence,
                hypotheses=(*claim.hypotheses, *regime.hypotheses),
                goal=claim.goal,
            )
        )
        for invariant in INVARIANTS.values()
        for claim in invariant.claims(PLANNER)
        for regime in REGIMES
    }


def ask_everything(
    obligations: Sequence[Obligation], *, jobs: int, cache: Cache, progress: Progress
) -> dict[str, Any]:
    """Return the record of a run, as it is checked in.

    Raises:
        NoAnswerError: cvc5 failed, or a restatement is not the statement.
    """
    return {
        "schema": SCHEMA,
        "solver": {"name": "cvc5", "version": cvc5_version()},
        "rlimit": {"as_proved": AS_PROVED_RLIMIT, "bounded": UNCUT_RLIMIT},
        "statements": ask_statements(obligations, jobs=jobs, cache=cache, progress=progress),
        "uncut": {
            "rlimit": {"cvc5": UNCUT_RLIMIT, "z3": Z3_UNCUT_RLIMIT},
            "z3": solver_version(),
            "statements": _uncut(jobs, cache, progress),
        },
    }


def ask_statements(
    obligations: Sequence[Obligation], *, jobs: int, cache: Cache, progress: Progress
) -> list[dict[str, str]]:
    """Return a row for each distinct statement, under the name of its first obligation."""
    distinct: dict[str, Obligation] = {}
    for item in obligations:
        distinct.setdefault(text_hash(item), item)

    def ask(stage: str, questions: dict[str, Cvc5Question]) -> dict[str, str]:
        answers = ask_all(
            questions.values(),
            jobs=jobs,
            cache=cache,
            progress=lambda done, total: progress(stage, done, total),
        )
        return {digest: answers[question] for digest, question in questions.items()}

    plain = {
        digest: Cvc5Question(proof_text(item), _rlimit(item)) for digest, item in distinct.items()
    }
    said = ask("as proved", plain)
    open_ones = {
        digest: restated
        for digest, item in distinct.items()
        if said[digest] == "unknown"
        and item.kind != "scenario"
        and (restated := with_witnesses(negated(item))) is not None
    }
    again = ask(
        "quotients as witnesses",
        {
            digest: Cvc5Question(smt2(restated.conditions), _rlimit(distinct[digest]))
            for digest, restated in open_ones.items()
        },
    )
    for digest, restated in open_ones.items():
        if again[digest] == "unsat":
            demand_that_it_follows(distinct[digest], restated)
    return [
        {
            "name": item.name,
            "group": "bounded" if item.scope == "bounded" else "as_proved",
            "smt2_sha256": digest,
            **_opinion(item, said[digest], again.get(digest)),
        }
        for digest, item in distinct.items()
    ]


def _rlimit(item: Obligation) -> int:
    return UNCUT_RLIMIT if item.scope == "bounded" else AS_PROVED_RLIMIT


def _opinion(item: Obligation, said: str, restated: str | None) -> dict[str, str]:
    """Return the result, and the form of the statement that was confirmed.

    That a restatement can hold is no contradiction: it says less where a divisor is below 1.
    """
    wanted, contrary = ("sat", "unsat") if item.kind == "scenario" else ("unsat", "sat")
    if said == contrary:
        return {"result": "contradicted", "form": "as proved"}
    if said == wanted:
        return {"result": "confirmed", "form": "as proved"}
    if restated == "unsat":
        return {"result": "confirmed", "form": "quotients as witnesses"}
    return {"result": "undecided", "form": ""}


def demand_that_it_follows(item: Obligation, restated: Restated) -> None:
    """Have z3 prove that the witnesses exist, so that the restatement follows from the original.

    Raises:
        NoAnswerError: it does not, so the restatement says nothing.
    """
    restored = restated.originals()[restated.definitions :]
    same = all(new.eq(old) for new, old in zip(restored, negated(item), strict=True))
    asked = [
        Question(smt2([z3.Not(one)]), (0,), Z3_UNCUT_RLIMIT) for one in restated.witnesses_exist()
    ]
    if not same or any(answer(question).result != "unsat" for question in asked):
        raise NoAnswerError(f"the restatement of {item.name} is not shown to be the statement")


def _ask_z3_apart(
    questions: Sequence[Question],
    *,
    jobs: int,
    cache: Cache,
    progress: Callable[[int, int], None],
) -> dict[Question, str]:
    """Return what z3 says, each question in a process of its own.

    Many uncut statements are close to the limit, where an answer moves with what a process did.
    """
    answers = {one: found for one in questions if (found := cache.find(one)) is not None}
    left = [one for one in questions if one not in answers]
    context = multiprocessing.get_context("spawn")
    with context.Pool(jobs, maxtasksperchild=1) as pool:
        for question, found in zip(left, pool.imap(answer, left, chunksize=1), strict=True):
            answers[question] = found
            cache.keep(question, found)
            progress(len(answers), len(questions))
    return {one: answers[one].result for one in questions}


def _uncut(jobs: int, cache: Cache, progress: Progress) -> list[dict[str, str]]:
    texts = uncut_statements()
    by_z3 = {name: Question(text, (0,), Z3_UNCUT_RLIMIT) for name, text in texts.items()}
    by_cvc5 = {name: Cvc5Question(text, UNCUT_RLIMIT) for name, text in texts.items()}
    z3_says = _ask_z3_apart(
        list(by_z3.values()),
        jobs=jobs,
        cache=cache,
        progress=lambda done, total: progress("uncut, z3", done, total),
    )
    cvc5_says = ask_all(
        by_cvc5.values(),
        jobs=jobs,
        cache=cache,
        progress=lambda done, total: progress("uncut, cvc5", done, total),
    )
    words = {"unsat": "settled", "sat": "contradicted", "unknown": "open"}
    return [
        {
            "name": name,
            "smt2_sha256": hashlib.sha256(texts[name].encode("utf-8")).hexdigest(),
            "z3": words[z3_says[by_z3[name]]],
            "cvc5": words[cvc5_says[by_cvc5[name]]],
        }
        for name in texts
    ]
