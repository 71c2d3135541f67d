# SPDX-License-Identifier: Apache-2.0
"""The kill matrix that is checked in: of this specification, of all its mutants, and true."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any

import pytest

from kvreshard.proofs.cache import Cache
from kvreshard.proofs.counterexample import smallest_counterexamples
from kvreshard.proofs.mutation import document
from kvreshard.proofs.mutation import matrix as matrices
from kvreshard.proofs.mutation.mutants import Generation, generate
from kvreshard.proofs.mutation.refute import RLIMIT, DoesNotReplayError, refute, replay
from kvreshard.proofs.mutation.scenarios import replay_lost_witness, ruled_out_scenario
from kvreshard.proofs.mutation.statements import (
    RANGES,
    Statement,
    claims_about,
    other_statements_about,
)
from kvreshard.proofs.mutation.survivors import explain, speaking
from kvreshard.proofs.obligations import Obligation, obligations
from kvreshard.proofs.question import Question
from kvreshard.proofs.solve import Answer, answer, solver_version
from kvreshard.spec.canonical import spec_formulas, spec_hash
from kvreshard.spec.formula import FORMULAS
from kvreshard.spec.invariants import INVARIANTS

if TYPE_CHECKING:
    from collections.abc import Callable

    from kvreshard.proofs.cache import Keyed
    from kvreshard.proofs.mutation.answers import Model
    from kvreshard.proofs.mutation.mutants import Mutant

Row = dict[str, Any]

COVERED = "every_consumer_head_is_covered_exactly_once"


def rows() -> list[Row]:
    found: list[Row] = matrices.read()["mutants"]
    return found


def kills_of(row: Row) -> list[Row]:
    """Return every kill of the row's mutant: what is refuted, and the values that refute it."""
    return [cell for cell in [*row["cells"].values(), row.get("elsewhere")] if _is_kill(cell)]


def _is_kill(cell: Any) -> bool:
    return isinstance(cell, dict)


def kill_of(row: Row, invariant: str | None) -> Row | None:
    """Return how the invariant, or any of them or another obligation, kills the row's mutant."""
    kills = [row["cells"].get(invariant)] if invariant else kills_of(row)
    return next(filter(_is_kill, kills), None)


def sample() -> dict[str, tuple[str, Row]]:
    """Return one kill of each invariant, and one of each formula: mutant and cell by id."""
    chosen: dict[str, tuple[str, Row]] = {}
    for row in rows():
        for invariant in INVARIANTS:
            if cell := kill_of(row, invariant):
                chosen.setdefault(invariant, (row["name"], cell))
        if cell := kill_of(row, None):
            chosen.setdefault(row["formula"], (row["name"], cell))
    return chosen


SAMPLE = sample()


@pytest.fixture(scope="module")
def generation() -> Generation:
    return generate()


def test_the_matrix_is_of_this_specification_solver_and_ranges() -> None:
    matrix = matrices.read()
    assert matrix["spec_hash"] == spec_hash(), "the specification changed: run `make mutate`"
    assert matrix["solver"] == {"name": "z3", "version": solver_version(), "rlimit": RLIMIT}
    assert matrix["ranges"] == {name: list(limits) for name, limits in RANGES.items()}


def test_the_matrix_has_the_mutants_that_are_generated_now(generation: Generation) -> None:
    def told(one: Any) -> list[Any]:
        return [one.name, one.before, one.after, list(one.same_as)]

    listed = [[row["name"], row["before"], row["after"], row["same_as"]] for row in rows()]
    assert listed == [told(mutant) for mutant in generation.mutants]
    assert matrices.read()["unchanged"] == list(generation.unchanged)
    assert {name: counts["sites"] for name, counts in matrices.read()["formulas"].items()} == (
        generation.sites
    )


def test_no_mutant_is_left_without_an_explanation() -> None:
    assert matrices.exit_code(rows()) == 0
    for row in rows():
        if row["outcome"] == "killed":
            assert kills_of(row), row["name"]
            assert all(kill["model"] for kill in kills_of(row)), row["name"]
            assert "reason" not in row, row["name"]
        else:
            assert row["outcome"] in {"equivalent", "right"}
            assert not kills_of(row), row["name"]
            assert row["obligations_proved"] >= 1
            assert row["obligations_open"] == row["enumeration_finds_broken"] == []


def test_every_mutant_is_judged_by_every_invariant_that_speaks_of_its_formula() -> None:
    columns = {name: {claim.column for claim in claims_about(name)} for name in spec_formulas()}
    assert any(columns.values())
    for row in rows():
        assert set(row["cells"]) == columns[row["formula"]], row["name"]


def test_a_right_planner_meets_every_obligation_about_its_formula() -> None:
    for row in rows():
        if row["outcome"] == "right":
            count = len(speaking(row["formula"], obligations()))
            told = f"each of the {count} obligations that speak of {row['formula']} holds"
            assert row["reason"] == told


@cache
def statements_about(formula: str) -> list[Statement]:
    return [*claims_about(formula), *other_statements_about(formula)]


@cache
def scenarios() -> dict[str, Obligation]:
    return {one.name: one for one in obligations() if one.kind == "scenario"}


def replay_kill(kill: Row, mutant: Mutant) -> None:
    """Run a recorded kill again in plain Python. No solver is asked."""
    name, model = kill["killed_by"], kill["model"]
    if item := scenarios().get(name):
        replay_lost_witness(item, mutant, model)
        return
    with mutant.applied():
        # Whether a formula is defined is said of its own body: the mutant has another one.
        mutated = name == f"{mutant.formula}/is_defined"
        listed = (other_statements_about if mutated else statements_about)(mutant.formula)
        replayed = any(_refutes(one, model) for one in listed if one.name == name)
    if not replayed:
        raise DoesNotReplayError(f"{name} does not refute {mutant.name} with {model}")


def _refutes(statement: Statement, model: Model) -> bool:
    try:
        replay(statement, model)
    except DoesNotReplayError:
        return False
    return True


@pytest.mark.parametrize("formula", spec_formulas())
def test_every_recorded_kill_happens_in_plain_python(formula: str, generation: Generation) -> None:
    killed = [row for row in rows() if row["formula"] == formula and row["outcome"] == "killed"]
    assert killed
    for row in killed:
        assert kills_of(row)
        for kill in kills_of(row):
            replay_kill(kill, generation.by_name()[row["name"]])


# The matrix has it to 6.
ENUMERATED_TO = 3


def check_by_enumeration(mutant: Mutant) -> None:
    with mutant.applied():
        broken = {one.violation.invariant for one in smallest_counterexamples(ENUMERATED_TO)}
    assert not broken, f"{mutant.name} breaks {sorted(broken)}"


def check_by_proof(row: Row, mutant: Mutant, answers: Cache) -> None:
    found = explain(mutant, jobs=1, cache=answers)
    assert (row["outcome"], row["reason"]) == (found.outcome, found.reason), mutant.name
    assert row["lemmas"] == list(found.lemmas)
    assert (row["obligations_proved"], row["obligations_open"]) == (found.proved, [])


class AnsweredHere(Cache):
    """Asks z3 in this process: to start one for each mutant costs more than most answers."""

    def find(self, question: Keyed) -> Answer | None:
        found = super().find(question)
        if found is None:
            assert isinstance(question, Question)
            found = answer(question)
            self.keep(question, found)
        return found


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> Cache:
    """Return the answers of this run alone, where mutants share lemmas."""
    return AnsweredHere(tmp_path_factory.mktemp("answers"))


UNKILLED = [row for row in rows() if row["outcome"] != "killed"]


@pytest.mark.parametrize("formula", dict.fromkeys(row["formula"] for row in UNKILLED))
def test_what_is_no_fault_is_proved_so_again(
    formula: str, generation: Generation, answers: Cache
) -> None:
    for row in [one for one in UNKILLED if one["formula"] == formula]:
        mutant = generation.by_name()[row["name"]]
        check_by_enumeration(mutant)
        check_by_proof(row, mutant, answers)


# A matrix that lies


def excused(row: Row, outcome: str, reason: str) -> Row:
    """Return a killed row as one that is no fault."""
    forged = {name: value for name, value in row.items() if name != "elsewhere"}
    forged["outcome"] = outcome
    forged["cells"] = dict.fromkeys(row["cells"], "holds")
    forged["elsewhere"] = "holds"
    forged["enumeration_finds_broken"] = []
    return {
        **forged,
        "reason": reason,
        "lemmas": [],
        "obligations_proved": 2,
        "obligations_open": [],
    }


def with_rows(change: Callable[[Row], Row], generation: Generation) -> Row:
    """Return the matrix with changed rows, and with the counts that belong to them."""
    matrix = matrices.read()
    forged = matrices.build(generation, [change(row) for row in matrix["mutants"]], [])
    for name, counts in forged["invariants"].items():
        forged["invariants"][name] = {**matrix["invariants"][name], **counts}
    return forged


def test_a_killed_mutant_that_is_called_equivalent_is_found_out(
    generation: Generation, monkeypatch: pytest.MonkeyPatch
) -> None:
    killed = [row for row in rows() if row["formula"] == "sends" and kill_of(row, COVERED)]
    names = {row["name"] for row in killed[:25]}
    assert len(names) == 25

    def change(row: Row) -> Row:
        reason = "equal to sends for all integers"
        return excused(row, "equivalent", reason) if row["name"] in names else row

    forged = with_rows(change, generation)
    assert forged["summary"]["equivalent"] == matrices.read()["summary"]["equivalent"] + 25
    monkeypatch.setattr(matrices, "read", lambda: forged)
    # Nothing in the file itself gives it away.
    test_the_matrix_has_the_mutants_that_are_generated_now(generation)
    test_no_mutant_is_left_without_an_explanation()
    test_every_mutant_is_judged_by_every_invariant_that_speaks_of_its_formula()
    test_the_counts_of_the_matrix_are_those_of_its_rows(generation)
    for row in [one for one in rows() if one["name"] in names]:
        with pytest.raises(AssertionError, match=rf"^{row['name']} breaks \["):
            check_by_enumeration(generation.by_name()[row["name"]])


def test_a_killed_mutant_that_is_called_no_fault_is_not_proved_so(
    generation: Generation, answers: Cache
) -> None:
    name, reason = "elect_spread@0:value_plus_1", "equal to elect_spread for all integers"
    (row,) = (one for one in rows() if one["name"] == name)
    with pytest.raises(AssertionError, match="survivor"):
        check_by_proof(excused(row, "equivalent", reason), generation.by_name()[name], answers)


@pytest.mark.parametrize("formula", spec_formulas())
def test_values_that_refute_nothing_are_found_out(formula: str, generation: Generation) -> None:
    row = next(one for one in rows() if one["formula"] == formula and kills_of(one))
    mutant = generation.by_name()[row["name"]]
    changes_nothing = replace(mutant, body=FORMULAS[formula].body)
    for kill in kills_of(row):
        with pytest.raises(DoesNotReplayError):
            replay_kill(kill, changes_nothing)


def test_every_formula_and_every_invariant_kills() -> None:
    assert set(SAMPLE) == {*INVARIANTS, *spec_formulas()}


@pytest.mark.parametrize("chosen", SAMPLE)
def test_a_kill_of_the_matrix_happens_again(chosen: str, generation: Generation) -> None:
    name, cell = SAMPLE[chosen]
    mutant = generation.by_name()[name]
    statements = claims_about(mutant.formula)
    with mutant.applied():
        statements += other_statements_about(mutant.formula)
        asked = [one for one in statements if one.name == cell["killed_by"]]
        found = next((one.model for one in map(refute, asked) if one.model), None)
    if not asked:
        assert ruled_out_scenario(mutant) == (cell["killed_by"], cell["model"])
    else:
        assert found == cell["model"]


def test_the_counts_of_the_matrix_are_those_of_its_rows(generation: Generation) -> None:
    matrix = matrices.read()
    again = matrices.build(generation, matrix["mutants"], [])
    assert matrix["summary"] == again["summary"]
    assert matrix["formulas"] == again["formulas"]
    for name, counts in again["invariants"].items():
        assert counts.items() <= matrix["invariants"][name].items()
        assert counts["killed"] > 0


def test_the_matrix_lies_as_it_is_written() -> None:
    text = matrices.MATRIX_PATH.read_text(encoding="utf-8")
    assert matrices.text(json.loads(text)) == text


def test_the_document_is_the_one_of_the_matrix() -> None:
    assert document.DOCUMENT_PATH.read_text(encoding="utf-8") == document.text(matrices.read())


def test_an_invariant_that_kills_nothing_alone_is_questioned() -> None:
    matrix = matrices.read()
    told = document.text(matrix).partition("## Is each invariant needed?")[2]
    told = told.partition("\n## ")[0]
    lonely = [name for name, one in matrix["invariants"].items() if not one["killed_alone"]]
    assert [name for name in INVARIANTS if f"`{name}` kills no mutant alone." in told] == lonely
    for name in lonely:
        standing = matrix["invariants"][name]
        assert (standing["broken_alone_at"] is None) == bool(standing["implied_by"])


def test_a_matrix_of_another_schema_is_refused(tmp_path: Any) -> None:
    path = tmp_path / "kill_matrix.json"
    path.write_text('{"schema": 0}', encoding="utf-8")
    with pytest.raises(ValueError, match=r"schema of kill_matrix\.json is 0, and has to be 1"):
        matrices.read(path)
