# SPDX-License-Identifier: Apache-2.0
"""The second solver: what it is asked, what its answers count for, and what is on record."""

from __future__ import annotations

import copy
import hashlib
import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
import z3

from kvreshard.codegen.evidence import EmissionRefused, demand_proof
from kvreshard.codegen.selection import emitted_formulas
from kvreshard.proofs import cvc5_solver, ledger, second_opinion, second_record
from kvreshard.proofs.cache import Cache
from kvreshard.proofs.cvc5_solver import Cvc5Question, NoAnswerError, ask, ask_all
from kvreshard.proofs.obligations import Obligation, obligations
from kvreshard.proofs.question import negated, proof_text, text_hash
from kvreshard.proofs.restate import with_witnesses
from kvreshard.proofs.solve import Answer
from kvreshard.spec.canonical import spec_hash
from kvreshard.spec.invariants import INVARIANTS
from kvreshard.spec.regimes import REGIMES

if TYPE_CHECKING:
    from pathlib import Path

DECLARED = obligations()
LEMMAS = [item for item in DECLARED if item.kind == "lemma"]
# What the invariants rest on for all sizes: asked again here, so that the record cannot be made up.
FOR_ALL_SIZES = list(
    {
        text_hash(item): item
        for item in DECLARED
        if item.scope == "unbounded" and item.kind in {"lemma", "invariant"}
    }.values()
)
RECORD = second_record.load()
x, y = z3.Ints("x y")


def smt(*conditions: z3.BoolRef) -> str:
    solver = z3.Solver()
    solver.add(*conditions)
    return str(solver.to_smt2())


def silent(_stage: str, _done: int, _total: int) -> None:
    """Report no progress."""


def opinion_of(item: Obligation) -> dict[str, str]:
    """Return what a run makes of one obligation."""
    (row,) = second_opinion.ask_statements([item], jobs=1, cache=Cache(None), progress=silent)
    return row


# cvc5 itself


@pytest.mark.parametrize(
    ("condition", "result"), [(x > y, "sat"), (z3.And(x > y, y > x), "unsat")], ids=str
)
def test_cvc5_answers(condition: z3.BoolRef, result: str) -> None:
    assert ask(Cvc5Question(smt(condition), 100_000)).result == result


def test_the_limit_is_a_resource_and_gives_unknown() -> None:
    hard = smt(x * x * x + y * y * y == 114 * x * y + 3, x > 1000, y > 1000)
    found = ask(Cvc5Question(hard, 2_000))
    assert (found.result, found.reason) == ("unknown", "RESOURCEOUT")


def test_a_process_that_fails_is_no_answer() -> None:
    with pytest.raises(NoAnswerError, match=r"cvc5 ended with code 1: (.|\n)*no-such-function"):
        ask(Cvc5Question("(assert (no-such-function 1))\n(check-sat)", 1_000))


def test_a_question_without_check_is_no_answer() -> None:
    with pytest.raises(NoAnswerError, match="one check-sat expected, 0 found"):
        ask(Cvc5Question("(declare-fun x () Int)", 1_000))


def test_a_process_that_does_not_stop_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cvc5_solver, "GUARD_SECONDS", 0.001)
    with pytest.raises(NoAnswerError, match=r"did not stop within 0\.001 s"):
        ask(Cvc5Question(smt(x > y), 1_000))


def test_answers_are_kept_apart_from_those_of_z3(tmp_path: Path) -> None:
    cache, question = Cache(tmp_path), Cvc5Question(smt(x > y), 100_000)
    assert ask_all([question, question], jobs=1, cache=cache, progress=lambda *_: None) == {
        question: "sat"
    }
    assert cache.find(question) is None
    kept = cache.of(f"cvc5 {cvc5_solver.cvc5_version()}").find(question)
    assert kept is not None
    assert kept.result == "sat"


# What the answers count for


def test_a_lemma_is_confirmed_as_proved() -> None:
    row = opinion_of(LEMMAS[0])
    assert (row["result"], row["form"], row["group"]) == ("confirmed", "as proved", "as_proved")


def test_a_lemma_that_needs_it_is_confirmed_with_quotients_as_witnesses() -> None:
    (item,) = (one for one in LEMMAS if one.name == "lemma/split_group")
    assert opinion_of(item)["form"] == "quotients as witnesses"


def test_a_false_statement_is_contradicted() -> None:
    row = opinion_of(replace(LEMMAS[0], goal=z3.BoolVal(False)))
    assert row["result"] == "contradicted"


def test_a_scenario_is_confirmed_where_it_exists_and_contradicted_where_not() -> None:
    scenario = next(
        item for item in DECLARED if item.name.startswith("one_producer_feeds_eight_replicas")
    )
    assert opinion_of(scenario)["result"] == "confirmed"
    assert opinion_of(replace(scenario, goal=x != x))["result"] == "contradicted"


def test_what_can_hold_restated_is_undecided_and_no_contradiction(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (item,) = (one for one in LEMMAS if one.name == "lemma/split_group")

    def answers(questions: Any, **_: Any) -> dict[Cvc5Question, str]:
        return {
            one: "unknown" if one.text == proof_text(item) else "sat" for one in list(questions)
        }

    monkeypatch.setattr(second_opinion, "ask_all", answers)
    assert opinion_of(item)["result"] == "undecided"


def test_a_restatement_that_z3_does_not_prove_counts_for_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (item,) = (one for one in LEMMAS if one.name == "lemma/split_group")
    restated = with_witnesses(negated(item))
    assert restated is not None
    second_opinion.demand_that_it_follows(item, restated)
    monkeypatch.setattr(second_opinion, "answer", lambda _: Answer("unknown", 1, 0, 0.0))
    with pytest.raises(NoAnswerError, match="the restatement of lemma/split_group is not shown"):
        second_opinion.demand_that_it_follows(item, restated)


def test_the_uncut_statements_are_every_claim_in_every_regime() -> None:
    texts = second_opinion.uncut_statements()
    unbounded = [item for item in DECLARED if item.scope == "unbounded" and item.invariant]
    assert len(texts) == len(unbounded)
    assert {name.rsplit("/", 1)[1] for name in texts} == {regime.name for regime in REGIMES}
    asked = {name: hashlib.sha256(text.encode("utf-8")).hexdigest() for name, text in texts.items()}
    assert len(set(asked.values())) == len(asked)
    assert not {text_hash(item) for item in unbounded} & set(asked.values())
    recorded = {row["name"]: row["smt2_sha256"] for row in RECORD["uncut"]["statements"]}
    assert recorded == asked


# The record


def test_the_record_has_every_statement_and_no_other() -> None:
    assert set(second_record.opinions(RECORD)) == {text_hash(item) for item in DECLARED}
    assert len(RECORD["statements"]) == len(second_record.opinions(RECORD))
    assert {row["name"] for row in RECORD["uncut"]["statements"]} == set(
        second_opinion.uncut_statements()
    )


def test_the_record_is_about_the_installed_solver() -> None:
    assert RECORD["solver"] == {"name": "cvc5", "version": cvc5_solver.cvc5_version()}


def test_the_record_has_no_complaint() -> None:
    assert second_record.complaints(RECORD) == []


@pytest.mark.parametrize("group", second_record.UNDECIDED_AT_MOST)
def test_the_number_of_undecided_may_only_fall(group: str) -> None:
    found = second_record.counts(RECORD, group)["undecided"]
    assert found == second_record.UNDECIDED_AT_MOST[group], (
        f"{found} statements are undecided: lower UNDECIDED_AT_MOST[{group!r}], or find out why "
        "there are more than before"
    )


def test_the_ledger_has_the_record_in_its_column() -> None:
    written = json.loads(ledger.LEDGER_PATH.read_text(encoding="utf-8"))
    assert ledger.with_opinions(written, second_record.opinions(RECORD)) == written
    assert all(row["second_solver"] for row in written["obligations"])


@pytest.mark.parametrize("item", FOR_ALL_SIZES, ids=lambda item: item.name)
def test_cvc5_confirms_what_holds_for_all_sizes_as_the_record_says(item: Obligation) -> None:
    (row,) = (row for row in RECORD["statements"] if row["smt2_sha256"] == text_hash(item))
    assert opinion_of(item)["result"] == row["result"] == "confirmed"


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"result": "contradicted"}, "cvc5 contradicts the proof"),
        ({"result": "undecided"}, "undecided, and has to be confirmed"),
    ],
    ids=["contradicted", "undecided"],
)
def test_a_worse_record_is_complained_about(change: dict[str, str], complaint: str) -> None:
    record = copy.deepcopy(RECORD)
    name = second_record.ALWAYS_CONFIRMED[1]
    row = next(
        row
        for row in record["statements"]
        if row["name"].startswith(name) and row["group"] == "as_proved"
    )
    row.update(change)
    assert any(
        found.startswith(name) and complaint in found for found in second_record.complaints(record)
    )


def test_a_contradiction_fails_the_proof_run_and_the_emission() -> None:
    written = json.loads(ledger.LEDGER_PATH.read_text(encoding="utf-8"))
    assert ledger.all_hold(written)
    demand_proof(written, spec_hash(), emitted_formulas(), INVARIANTS)
    (row, *_) = (row for row in written["obligations"] if "first_head" in row["formulas"])
    worse = {**second_record.opinions(RECORD), row["smt2_sha256"]: "contradicted"}
    contradicted = ledger.with_opinions(written, worse)
    assert not ledger.all_hold(contradicted)
    assert row["name"] in ledger.contradicted(contradicted)
    with pytest.raises(EmissionRefused) as caught:
        demand_proof(contradicted, spec_hash(), emitted_formulas(), INVARIANTS)
    assert f"first_head: {row['name']} is contradicted by the second solver" in caught.value.reasons


def test_an_uncut_counterexample_is_complained_about() -> None:
    record = copy.deepcopy(RECORD)
    record["uncut"]["statements"][0]["z3"] = "contradicted"
    (complaint,) = second_record.complaints(record)
    assert complaint.endswith("uncut: z3 has a counterexample")


def test_more_undecided_than_before_and_too_few_confirmed_are_complained_about() -> None:
    record = copy.deepcopy(RECORD)
    proved = [row for row in record["statements"] if row["group"] == "as_proved"]
    for row in proved[: len(proved) // 5]:
        row["result"] = "undecided"
    found = " ".join(second_record.complaints(record))
    assert "are undecided; at most" in found
    assert "at least 90% have to be" in found


def test_an_empty_record_is_complained_about(tmp_path: Path) -> None:
    found = second_record.complaints(second_record.load(tmp_path / "none.json"))
    assert "as_proved: nothing was asked" in found
    assert "bounded: nothing was asked" in found
    assert sum(one.endswith("no obligation as proved was asked") for one in found) == 3
