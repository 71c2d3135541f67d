# SPDX-License-Identifier: Apache-2.0
"""The kill matrix that is checked in: of this specification, of all its mutants, and true."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kvreshard.proofs.mutation import document
from kvreshard.proofs.mutation import matrix as matrices
from kvreshard.proofs.mutation.mutants import Generation, generate
from kvreshard.proofs.mutation.refute import RLIMIT, refute
from kvreshard.proofs.mutation.scenarios import ruled_out_scenario
from kvreshard.proofs.mutation.statements import RANGES, claims_about, other_statements_about
from kvreshard.proofs.mutation.survivors import speaking
from kvreshard.proofs.obligations import obligations
from kvreshard.proofs.solve import solver_version
from kvreshard.spec.canonical import spec_formulas, spec_hash
from kvreshard.spec.invariants import INVARIANTS


def rows() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = matrices.read()["mutants"]
    return found


def kill_of(row: dict[str, Any], invariant: str | None) -> dict[str, Any] | None:
    """Return how the invariant, or any of them or another obligation, kills the row's mutant."""
    cells = [row["cells"].get(invariant)] if invariant else [*row["cells"].values()]
    cells += [] if invariant else [row.get("elsewhere")]
    return next((cell for cell in cells if isinstance(cell, dict)), None)


def sample() -> dict[str, tuple[str, dict[str, Any]]]:
    """Return one kill of each invariant, and one of each formula: mutant and cell by id."""
    chosen: dict[str, tuple[str, dict[str, Any]]] = {}
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
            assert kill_of(row, None)
        else:
            assert row["outcome"] in {"equivalent", "right"}
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
