# SPDX-License-Identifier: Apache-2.0
"""Put every obligation to the solver, on all cores, and say what came of each."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from kvreshard.proofs.question import SEEDS, Question, refutation, satisfiability
from kvreshard.proofs.solve import Answer, answer

if TYPE_CHECKING:
    from kvreshard.proofs.cache import Cache
    from kvreshard.proofs.obligations import Obligation

HOLDS = frozenset({"proved", "satisfied"})


@dataclass(frozen=True)
class Verdict:
    """What came of an obligation.

    Attributes:
        obligation: what was to be shown.
        result: "proved", "satisfied", "refuted", "unknown" or "vacuous".
        queries: how many queries were put, over all seeds and fixed values.
        largest_rlimit: resource units of the dearest query.
        seconds: solver time on the clock, added up over queries.
        reason: why it does not hold, in words; empty where it does.
        rests_on: the lemma that it would be proved with, had that been proved; else empty.
        cached: whether every answer came from the cache.
    """

    obligation: Obligation
    result: str
    queries: int
    largest_rlimit: int
    seconds: float
    reason: str = ""
    rests_on: str = ""
    cached: bool = False

    @property
    def holds(self) -> bool:
        """Whether the obligation is shown."""
        return self.result in HOLDS


Progress = Callable[[str, int, int], None]


def _silent(_name: str, _done: int, _total: int) -> None:
    """Report no progress."""


def prove(
    obligations: Sequence[Obligation],
    *,
    jobs: int,
    cache: Cache,
    seeds: tuple[int, ...] = SEEDS,
    progress: Progress = _silent,
) -> list[Verdict]:
    """Return a verdict for each obligation, in their order.

    Args:
        obligations: what is to be shown.
        jobs: solver processes to run at once.
        cache: answers of earlier runs.
        seeds: solver seeds; a proof has to succeed with each.
        progress: called with an obligation's name and the questions answered and put so far.
    """
    asked = {item.name: _questions(item, seeds) for item in obligations}
    answers, fresh = _answers(asked, jobs, cache, progress)
    verdicts = [_verdict(item, asked[item.name], answers, fresh) for item in obligations]
    return _resting_on_proved_lemmas(verdicts)


def _questions(item: Obligation, seeds: tuple[int, ...]) -> list[Question]:
    refuting = [] if item.kind == "scenario" else refutation(item, seeds)
    return [satisfiability(item), *refuting]


def _answers(
    asked: dict[str, list[Question]], jobs: int, cache: Cache, progress: Progress
) -> tuple[dict[Question, Answer], set[Question]]:
    names: dict[Question, str] = {}
    for name, questions in asked.items():
        for question in questions:
            names.setdefault(question, name)
    fresh = {question for question in names if cache.find(question) is None}
    # The long ones first, so that no core idles at the end.
    ordered = sorted(names, key=lambda it: (it.road is None, names[it]))

    def advance(question: Question, done: int, total: int) -> None:
        progress(names[question], done, total)

    return ask_z3(ordered, jobs=jobs, cache=cache, progress=advance), fresh


def ask_z3(
    questions: Iterable[Question],
    *,
    jobs: int,
    cache: Cache,
    progress: Callable[[Question, int, int], None],
) -> dict[Question, Answer]:
    """Return the answer to each question, asking in the order given what is not in the cache.

    Args:
        questions: equal ones are asked once.
        jobs: solver processes to run at once.
        cache: answers of earlier runs.
        progress: called with what was answered, how many are, and how many there are.
    """
    wanted = list(dict.fromkeys(questions))
    answers = {one: found for one in wanted if (found := cache.find(one)) is not None}
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(max_workers=jobs, mp_context=context) as pool:
        futures = {pool.submit(answer, one): one for one in wanted if one not in answers}
        try:
            for future in as_completed(futures):
                question = futures[future]
                answers[question] = future.result()
                cache.keep(question, answers[question])
                progress(question, len(answers), len(wanted))
        except BaseException:
            # Leaving the block waits for what is queued: minutes, after an interrupt.
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return answers


def _verdict(
    item: Obligation,
    questions: list[Question],
    answers: dict[Question, Answer],
    fresh: set[Question],
) -> Verdict:
    given = [answers[question] for question in questions]
    result, reason = _result(item, given[0], given[1:])
    return Verdict(
        item,
        result,
        sum(one.queries for one in given),
        max(one.largest_rlimit for one in given),
        sum(one.seconds for one in given),
        reason,
        cached=not fresh.intersection(questions),
    )


def _result(item: Obligation, possible: Answer, failing: list[Answer]) -> tuple[str, str]:
    """Return the result and the reason. Only "sat" first and "unsat" after is a proof."""
    if possible.result == "unsat":
        if item.kind == "scenario":
            return "refuted", "the situation cannot occur"
        return "vacuous", "the hypotheses contradict each other"
    if possible.result != "sat":
        return "unknown", f"whether the hypotheses can hold: {possible.reason}"
    if item.kind == "scenario":
        return "satisfied", ""
    results = {one.result for one in failing}
    if "sat" in results:
        return "refuted", "the solver has a counterexample"
    if not failing or results != {"unsat"} or not sum(one.queries for one in failing):
        return "unknown", next((one.reason for one in failing if one.reason), "nothing was asked")
    return "proved", ""


def _resting_on_proved_lemmas(verdicts: Iterable[Verdict]) -> list[Verdict]:
    """Return the verdicts; what rests on a lemma that was not proved is not proved either."""
    listed = list(verdicts)
    while True:
        known = {one.obligation.name: one for one in listed}
        checked = [_with_its_lemmas(one, known) for one in listed]
        if all(new is old for new, old in zip(checked, listed, strict=True)):
            return listed
        listed = checked


def _with_its_lemmas(verdict: Verdict, known: dict[str, Verdict]) -> Verdict:
    for name in verdict.obligation.lemmas() if verdict.result == "proved" else ():
        lemma = known.get(f"lemma/{name}")
        if lemma is None or not lemma.holds:
            state = "is not part of this run" if lemma is None else f"is {lemma.result}"
            reason = f"lemma {name} {state}"
            return replace(verdict, result="unknown", reason=reason, rests_on=name)
    return verdict
