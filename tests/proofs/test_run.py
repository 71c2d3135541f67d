# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from concurrent.futures import Future
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, ClassVar

import pytest
import z3

from kvreshard.proofs import question as question_module
from kvreshard.proofs import run as run_module
from kvreshard.proofs.cache import Cache
from kvreshard.proofs.ledger import all_hold, build
from kvreshard.proofs.lemma import Lemma, Proof
from kvreshard.proofs.obligations import Obligation
from kvreshard.proofs.question import Question, refutation, satisfiability, smt2
from kvreshard.proofs.roads import Road
from kvreshard.proofs.run import Verdict, prove
from kvreshard.proofs.solve import Answer, answer, solver_version
from kvreshard.spec.formula import Hypothesis
from kvreshard.spec.parameters import H

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from kvreshard.spec.formula import Truth

x, y, w = z3.Ints("x y w")
POSITIVE = x >= 1
# z3's words for it.
GAVE_UP = ("max. resource limit exceeded", "canceled")
# Fermat's last theorem for the exponent 3: true, and out of the solver's reach.
FERMAT = z3.Implies(z3.And(x >= 1, y >= 1, w >= 1), x * x * x + y * y * y != w * w * w)


def obligation(name: str, given: list[Truth], goal: Truth, **more: Any) -> Obligation:
    """Return a small obligation with a sentence of its own."""
    hypotheses = tuple(Hypothesis(f"given_{n}", one) for n, one in enumerate(given))
    kind = str(more.pop("kind", "lemma"))
    return Obligation(name, kind, f"The obligation {name}.", hypotheses, goal, **more)


def made_lemma(name: str, then: Truth, *uses: Lemma) -> Lemma:
    return Lemma(name, name, (x,), (POSITIVE,), (then,), Proof(tuple(use(x) for use in uses)))


TRUE_LEMMA = made_lemma("true", x >= 0)
FALSE_LEMMA = made_lemma("false", x >= 2)
ABSENT_LEMMA = made_lemma("absent", x >= 0)
# True, and shown with the false one.
LEANING_LEMMA = made_lemma("leaning", x * x >= 1, FALSE_LEMMA)


def shown_with(name: str, *lemmas: Lemma) -> Obligation:
    return obligation(name, [POSITIVE], x + 1 >= 2, proof=Proof(tuple(one(x) for one in lemmas)))


def of_lemma(made: Lemma) -> Obligation:
    return obligation(f"lemma/{made.name}", [*made.given], made.then[0], proof=made.proof)


OBLIGATIONS = (
    of_lemma(TRUE_LEMMA),
    of_lemma(FALSE_LEMMA),
    of_lemma(LEANING_LEMMA),
    obligation("true", [POSITIVE], x + 1 >= 2),
    obligation("false", [POSITIVE], x >= 2),
    obligation("vacuous", [POSITIVE, x <= 0], x == 7),
    obligation("too_hard", [POSITIVE], FERMAT),
    obligation("hypotheses_too_hard", [z3.Not(FERMAT)], x == x + 1),
    obligation("possible", [POSITIVE], x == 3, kind="scenario"),
    obligation("impossible", [POSITIVE], x == 0, kind="scenario"),
    obligation("possibly_possible", [POSITIVE], z3.Not(FERMAT), kind="scenario"),
    shown_with("with_a_true_lemma", TRUE_LEMMA),
    shown_with("with_a_false_lemma", TRUE_LEMMA, FALSE_LEMMA),
    shown_with("with_a_leaning_lemma", LEANING_LEMMA),
    shown_with("with_an_absent_lemma", ABSENT_LEMMA),
    obligation(
        "on_a_road",
        [H >= 1, H <= 4, x >= 1, y <= 0],
        x * H > y,
        road=Road(("total_num_kv_heads",), maximum=4),
    ),
    obligation("off_the_road", [H == 9], H == 8, road=Road(("total_num_kv_heads",), maximum=4)),
)


@pytest.fixture(scope="module")
def progress() -> list[tuple[str, int, int]]:
    return []


@pytest.fixture(scope="module")
def verdicts(progress: list[tuple[str, int, int]]) -> dict[str, Verdict]:
    """Prove all of the small obligations in one run, with a small resource limit."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(question_module, "RLIMIT", 200_000)
        listed = prove(
            OBLIGATIONS,
            jobs=1,
            cache=Cache(None),
            progress=lambda name, done, total: progress.append((name, done, total)),
        )
    assert [one.obligation for one in listed] == list(OBLIGATIONS)
    return {one.obligation.name: one for one in listed}


@pytest.mark.parametrize(
    ("name", "result", "reason"),
    [
        ("true", "proved", ""),
        ("false", "refuted", "the solver has a counterexample"),
        ("vacuous", "vacuous", "the hypotheses contradict each other"),
        ("possible", "satisfied", ""),
        ("impossible", "refuted", "the situation cannot occur"),
        ("with_a_true_lemma", "proved", ""),
        ("with_a_false_lemma", "unknown", "lemma false is refuted"),
        ("lemma/leaning", "unknown", "lemma false is refuted"),
        ("with_a_leaning_lemma", "unknown", "lemma leaning is unknown"),
        ("with_an_absent_lemma", "unknown", "lemma absent is not part of this run"),
        ("on_a_road", "proved", ""),
        ("off_the_road", "unknown", "nothing was asked"),
    ],
)
def test_the_verdict_and_its_reason(
    verdicts: dict[str, Verdict], name: str, result: str, reason: str
) -> None:
    assert (verdicts[name].result, verdicts[name].reason) == (result, reason)
    assert verdicts[name].holds == (result in {"proved", "satisfied"})


@pytest.mark.parametrize(
    ("name", "start"),
    [
        ("too_hard", ""),
        ("hypotheses_too_hard", "whether the hypotheses can hold: "),
        ("possibly_possible", "whether the hypotheses can hold: "),
    ],
)
def test_what_the_solver_does_not_settle_does_not_hold(
    verdicts: dict[str, Verdict], name: str, start: str
) -> None:
    assert verdicts[name].result == "unknown"
    assert not verdicts[name].holds
    assert verdicts[name].reason in {start + word for word in GAVE_UP}


def test_queries_are_counted_over_seeds_and_values(verdicts: dict[str, Verdict]) -> None:
    counted = {name: verdicts[name].queries for name in ("true", "possible", "on_a_road")}
    # Once for the hypotheses, then with each of three seeds, or with one seed for each value.
    assert counted == {"true": 4, "possible": 1, "on_a_road": 5}
    assert verdicts["off_the_road"].queries == 1


def test_what_a_query_cost_is_not_what_the_run_cost(verdicts: dict[str, Verdict]) -> None:
    assert 200_000 < verdicts["too_hard"].largest_rlimit < 210_000
    assert 0 < verdicts["true"].largest_rlimit < 1_000
    assert not any(one.cached for one in verdicts.values())


@pytest.mark.usefixtures("verdicts")
def test_progress_is_told_after_each_question(progress: list[tuple[str, int, int]]) -> None:
    total = progress[0][2]
    assert [done for _, done, _ in progress] == list(range(1, total + 1))
    assert {count for *_, count in progress} == {total}
    assert {name for name, *_ in progress} <= {item.name for item in OBLIGATIONS}


def test_one_verdict_that_does_not_hold_fails_the_run(verdicts: dict[str, Verdict]) -> None:
    good = [verdicts["true"], verdicts["possible"]]
    assert all_hold(build(good))
    for name in ("false", "vacuous", "too_hard", "impossible", "off_the_road"):
        assert not all_hold(build([*good, verdicts[name]])), name


def test_a_run_over_nothing_shows_nothing() -> None:
    assert prove([], jobs=1, cache=Cache(None)) == []
    assert not all_hold(build([]))


LEANING = (
    of_lemma(FALSE_LEMMA),
    of_lemma(LEANING_LEMMA),
    shown_with("with_a_leaning_lemma", LEANING_LEMMA),
)


def test_a_lemma_that_comes_later_in_the_list_still_has_to_hold(tmp_path: Path) -> None:
    listed = prove(tuple(reversed(LEANING)), jobs=1, cache=Cache(tmp_path))
    assert {one.obligation.name: one.result for one in listed} == {
        "lemma/false": "refuted",
        "lemma/leaning": "unknown",
        "with_a_leaning_lemma": "unknown",
    }
    again = prove(LEANING, jobs=1, cache=Cache(tmp_path))
    assert all(one.cached for one in again)
    assert [one.result for one in again] == [one.result for one in reversed(listed)]


# One question


def test_a_counterexample_for_one_seed_is_a_counterexample() -> None:
    found = answer(Question(smt2([x >= 1]), (0, 1), 10_000))
    assert (found.result, found.queries) == ("sat", 2)


def test_a_limit_that_is_too_small_is_not_an_answer() -> None:
    found = answer(Question(smt2([z3.Not(FERMAT)]), (0,), 5_000))
    assert found.result == "unknown"
    assert found.reason in GAVE_UP


def test_an_answer_does_not_depend_on_what_came_before() -> None:
    asked = Question(smt2([z3.Not(FERMAT), x <= 5, y <= 5, w <= 7]), (0,), 20_000_000)
    first, second = answer(asked), answer(asked)
    assert (first.result, first.largest_rlimit) == (second.result, second.largest_rlimit)
    assert first.result == "unsat"


def test_the_text_does_not_depend_on_what_was_built_before() -> None:
    def text() -> str:
        shared = (x + y) * (x + y) * 3
        return smt2([shared >= x, z3.Or(shared == 4, shared * shared <= y)])

    first = text()
    kept = [z3.Int(f"other_{number}") * number + 1 for number in range(200)]
    assert text() == first
    assert len(kept) == 200


def test_the_hypotheses_are_asked_for_with_those_that_the_proof_does_without() -> None:
    item = obligation("narrow", [POSITIVE, x == 5], x >= 1, assumed=1)
    (asked,) = refutation(item)
    assert "5" in satisfiability(item).text
    assert "5" not in asked.text
    assert asked.seeds == (0, 1, 2)


def test_the_solver_is_the_one_that_is_pinned() -> None:
    assert solver_version() == "5.4.1"


class PoolThatAnswers(AbstractContextManager[Any]):
    """A pool whose work is done at once, and that remembers how it was shut down."""

    shut_down: ClassVar[list[dict[str, bool]]] = []

    def __init__(self, **_: object) -> None:
        pass

    def __exit__(self, *_: object) -> None:
        pass

    def submit(self, work: Callable[[Question], Answer], question: Question) -> Future[Answer]:
        done: Future[Answer] = Future()
        done.set_result(work(question))
        return done

    def shutdown(self, **how: bool) -> None:
        self.shut_down.append(how)


def test_an_interrupt_drops_what_is_queued(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(_name: str, _done: int, _total: int) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(run_module, "ProcessPoolExecutor", PoolThatAnswers)
    monkeypatch.setattr(PoolThatAnswers, "shut_down", [])
    items = [obligation("interrupted", [POSITIVE], x >= 0)]
    with pytest.raises(KeyboardInterrupt):
        prove(items, jobs=1, cache=Cache(None), progress=interrupt)
    assert PoolThatAnswers.shut_down == [{"wait": False, "cancel_futures": True}]
