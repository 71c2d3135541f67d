# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import ast
import json
from typing import TYPE_CHECKING, Any

import pytest
from fixture_ledger import fixture_ledger, row

from kvreshard.codegen.emit import EmissionRefused, load_ledger, render_planner
from kvreshard.codegen.evidence import ledger_hash
from kvreshard.codegen.files import write_generated
from kvreshard.codegen.selection import RESULT_UNITS, called_by, divides, emitted_formulas
from kvreshard.spec.canonical import spec_hash
from kvreshard.spec.election import POLICIES
from kvreshard.spec.invariants import INVARIANTS

if TYPE_CHECKING:
    from pathlib import Path


def reasons(ledger: dict[str, Any]) -> list[str]:
    with pytest.raises(EmissionRefused) as caught:
        render_planner(ledger)
    for reason in caught.value.reasons:
        assert reason in str(caught.value)
    return caught.value.reasons


def test_the_same_ledger_gives_the_same_text() -> None:
    assert render_planner(fixture_ledger()) == render_planner(fixture_ledger())


@pytest.mark.parametrize("ledger", [{}, {"schema": 1, "obligations": []}, {"schema": 1}])
def test_an_empty_ledger_is_refused(ledger: dict[str, Any]) -> None:
    assert reasons(ledger) == ["the ledger is missing or empty: run `make prove`"]


def test_a_ledger_of_another_schema_is_refused() -> None:
    assert reasons(fixture_ledger() | {"schema": 2}) == ["the ledger has schema 2, not 1"]


@pytest.mark.parametrize("about", [None, "0" * 64])
def test_a_ledger_of_another_spec_is_refused(about: str | None) -> None:
    assert reasons(fixture_ledger() | {"spec_hash": about}) == [
        f"the ledger is about spec {about}, not {spec_hash()}: run `make prove`"
    ]


def test_an_invariant_without_an_obligation_is_refused() -> None:
    ledger = fixture_ledger()
    ledger["obligations"] = [
        obligation
        for obligation in ledger["obligations"]
        if obligation["invariant"] != "no_two_writes_overlap"
    ]
    assert reasons(ledger) == ["no_two_writes_overlap: no obligation states it"]


@pytest.mark.parametrize("result", ["refuted", "unknown", "vacuous", "timeout"])
def test_a_formula_with_an_unproved_obligation_is_refused(result: str) -> None:
    ledger = fixture_ledger()
    ledger["obligations"].append(
        row("no_two_writes_overlap/split_to_split", "invariant", ["sends"], result=result)
    )
    ledger["obligations"].append(row("some_lemma", "lemma", ["owner", "sends"], result=result))
    assert sorted(reasons(ledger)) == [
        f"owner: some_lemma is {result}",
        f"sends: no_two_writes_overlap/split_to_split is {result}",
        f"sends: some_lemma is {result}",
    ]


def test_a_scenario_that_is_satisfied_is_no_obstacle() -> None:
    ledger = fixture_ledger()
    ledger["obligations"].append(
        row("a_gather_of_four", "scenario", ["sends"], result="satisfied", scope=None)
    )
    assert "def sends(" in render_planner(ledger)


def test_a_formula_that_no_obligation_speaks_of_is_refused() -> None:
    ledger = fixture_ledger()
    for obligation in ledger["obligations"]:
        obligation["formulas"] = [name for name in obligation["formulas"] if name != "owner"]
    assert reasons(ledger) == [
        "owner: no invariant, election or lemma speaks of it",
        "owner: it divides, and no definedness obligation speaks of it",
    ]


def test_a_division_that_is_not_proved_defined_is_refused() -> None:
    ledger = fixture_ledger()
    ledger["obligations"] = [
        obligation for obligation in ledger["obligations"] if obligation["kind"] != "definedness"
    ]
    found = reasons(ledger)
    assert len(found) == sum(divides(made) for made in emitted_formulas())
    assert "first_head: it divides, and no definedness obligation speaks of it" in found
    assert not any(reason.startswith("elect_lowest") for reason in found)


def test_nothing_is_written_when_refused(tmp_path: Path) -> None:
    with pytest.raises(EmissionRefused):
        write_generated({}, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_what_is_written_is_what_is_rendered(tmp_path: Path) -> None:
    target = tmp_path / "planner.py"
    assert target in write_generated(fixture_ledger(), tmp_path)
    assert target.read_bytes() == render_planner(fixture_ledger()).encode()


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (None, "there is no ledger.json: run `make prove`"),
        ("[]", "ledger.json is not a JSON object"),
        ("{", "ledger.json is not JSON"),
    ],
)
def test_a_ledger_that_cannot_be_read_is_refused(
    tmp_path: Path, content: str | None, reason: str
) -> None:
    path = tmp_path / "ledger.json"
    if content is not None:
        path.write_text(content, encoding="utf-8")
    with pytest.raises(EmissionRefused) as caught:
        load_ledger(path)
    assert caught.value.reasons[0].startswith(reason)


def test_a_ledger_is_read_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "ledger.json"
    path.write_text(json.dumps(fixture_ledger()), encoding="utf-8")
    assert load_ledger(path) == fixture_ledger()


def test_the_header_ties_the_text_to_spec_ledger_and_solver() -> None:
    ledger = fixture_ledger() | {"solver": {"name": "z3", "version": "5.4.1"}}
    header = render_planner(ledger).split('"""')[0]
    assert f"# spec:   sha256 {spec_hash()}" in header
    assert f"# ledger: sha256 {ledger_hash(ledger)}" in header
    assert "# solver: z3 5.4.1" in header


def test_every_function_says_what_it_takes_assumes_and_what_is_proved() -> None:
    functions = {
        node.name: ast.get_docstring(node) or ""
        for node in ast.parse(render_planner(fixture_ledger())).body
        if isinstance(node, ast.FunctionDef)
    }
    for made in emitted_formulas():
        text = " ".join(functions[made.name].split())
        assert " ".join(made.sentence.split()) in text
        assert f"Returns: {RESULT_UNITS[made.name]}." in text
        assert all(f"{name} (" in text for name in made.parameter_names)
        assert "Assumes: total_num_kv_heads_is_positive" in text or "Assumes: producer" in text
        assert all(name in text for name in INVARIANTS)
    for name in ("compute_sender_transfer_plan", "validate_region_lengths"):
        assert "Hypothesis `a_region_is_one_layer`:" in functions[name]


def test_the_formula_that_decides_legality_does_not_assume_it() -> None:
    text = render_planner(fixture_ledger())
    docstring = text.split("def group_is_legal(")[1].split('"""')[1]
    assert "group_is_legal" not in docstring


def test_only_what_the_interface_needs_is_emitted() -> None:
    names = [made.name for made in emitted_formulas()]
    assert len(names) == len(set(names))
    assert {policy.elect.name for policy in POLICIES} <= set(names)
    assert not {"holds", "is_paired", "byte_address", "head_slot_at", "token_at"} & set(names)
    assert set(RESULT_UNITS) == set(names)
    for position, made in enumerate(emitted_formulas()):
        assert all(callee.name in names[:position] for callee in called_by(made.body))


def test_the_ledgers_hash_is_of_its_content_not_its_formatting() -> None:
    ledger = fixture_ledger()
    assert ledger_hash(json.loads(json.dumps(ledger, indent=4))) == ledger_hash(ledger)
    ledger["obligations"][0]["result"] = "unknown"
    assert ledger_hash(ledger) != ledger_hash(fixture_ledger())
