# SPDX-License-Identifier: Apache-2.0
"""Which hypotheses a proof needs."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
import z3

from kvreshard.proofs import cores
from kvreshard.proofs.cores import NoCoreError, core_question, find_needed, needed
from kvreshard.proofs.obligations import Obligation, obligations
from kvreshard.spec.formula import Hypothesis

if TYPE_CHECKING:
    from pathlib import Path

x, y, z = z3.Ints("x y z")
DECLARED = obligations()
RECORD = cores.load()


def stated(goal: z3.BoolRef, **hypotheses: z3.BoolRef) -> Obligation:
    """Return an unbounded obligation with named hypotheses."""
    given = tuple(Hypothesis(name, condition) for name, condition in hypotheses.items())
    return Obligation("it", "invariant", "It holds.", given, goal, scope="unbounded")


def test_what_the_goal_does_not_follow_without_is_needed() -> None:
    item = stated(x > z, first=x > y, second=y > z, third=x > 0)
    assert needed(core_question(item)) == ("first", "second")


def test_of_two_hypotheses_that_do_the_same_one_is_needed() -> None:
    assert needed(core_question(stated(x > 0, weak=x > 1, strong=x > 2))) == ("strong",)


def test_a_goal_that_holds_anyway_needs_nothing() -> None:
    assert needed(core_question(stated(x == x + 0, first=x > y))) == ()


def test_a_statement_that_is_not_refuted_has_no_core() -> None:
    with pytest.raises(NoCoreError, match="it: not refuted"):
        needed(core_question(stated(x > 0, first=y > 0)))


def test_no_statement_is_no_result() -> None:
    with pytest.raises(NoCoreError, match="no statement has a hypothesis"):
        find_needed([], jobs=1)


def test_statements_are_counted_once_and_lemmas_not_by_name() -> None:
    lemma = next(item for item in DECLARED if item.kind == "lemma")
    item = stated(x > z, first=x > y, second=y > z, third=x > 0)
    record = find_needed([item, item, lemma], jobs=1)
    assert record["statements"] == 2
    assert record["hypotheses"] == [
        {"name": "first", "stated_by": 1, "needed_by": 1},
        {"name": "second", "stated_by": 1, "needed_by": 1},
        {"name": "third", "stated_by": 1, "needed_by": 0},
    ]


def test_the_record_is_about_the_statements_as_they_are() -> None:
    assert RECORD["statements_sha256"] == cores.statements_hash(DECLARED)


def test_the_record_names_every_hypothesis_of_the_unbounded_statements() -> None:
    names = {
        hypothesis.name
        for item in DECLARED
        if item.scope == "unbounded" and item.kind != "lemma"
        for hypothesis in item.given()
    }
    assert {row["name"] for row in RECORD["hypotheses"]} == names
    assert all(row["needed_by"] <= row["stated_by"] for row in RECORD["hypotheses"])


def test_what_the_record_calls_unneeded_is_needed_by_none_that_states_it() -> None:
    unneeded = {row["name"] for row in RECORD["hypotheses"] if not row["needed_by"]}
    asked = [
        item
        for item in DECLARED
        if item.scope == "unbounded" and unneeded & {one.name for one in item.given()}
    ]
    assert asked
    for item in asked:
        assert not unneeded & set(needed(core_question(item))), item.name


def test_what_is_written_is_what_is_read(tmp_path: Path) -> None:
    path = tmp_path / "record.json"
    cores.write(RECORD, path)
    assert cores.load(path) == RECORD
    assert json.loads(path.read_text(encoding="utf-8")) == RECORD
