# SPDX-License-Identifier: Apache-2.0
"""docs/why-proof.md: what its tables are made of, and a sample of it measured anew."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from kvreshard.proofs.broken import BROKEN, RIGHT
from kvreshard.proofs.judge import is_legal, judge
from kvreshard.proofs.mutation import matrix as matrices
from kvreshard.proofs.mutation.mutants import generate
from kvreshard.spec.canonical import spec_hash
from kvreshard.spec.formula import FORMULAS

# The benchmarks are scripts, no package of the project.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "benchmarks"))

import why_proof
from detection import beyond, document, emitted, enumeration, gate, measure, peers, vectorised
from detection import engine as engines

RECORD = why_proof.read()
DETECTIONS: dict[str, Any] = RECORD["detections"]
MUTANTS = generate().by_name()
# One in forty, and one of each formula that is not in the emitted module.
SAMPLE = [*list(MUTANTS)[::40], "holds@0:and_to_or", "is_paired@0:always_then"]
IN_THE_MODULE = [name for name in SAMPLE if emitted.is_emitted(MUTANTS[name].formula)]


def test_the_document_is_what_the_record_gives() -> None:
    text = why_proof.DOCUMENT.read_text(encoding="utf-8")
    assert document.with_tables(text, RECORD, matrices.read()) == text, (
        "docs/why-proof.md is stale: run `python benchmarks/why_proof.py --document`, or without "
        "the flag where planners, mutants or checks have changed"
    )


def test_a_document_that_lacks_a_table_is_refused() -> None:
    with pytest.raises(ValueError, match="the document has places for"):
        document.with_tables("# Why\n", RECORD, matrices.read())


def test_the_record_covers_what_there_is() -> None:
    assert list(DETECTIONS["planners"]) == list(BROKEN)
    assert list(DETECTIONS["mutants"]) == list(MUTANTS)
    assert list(DETECTIONS["late"]) == [fault.name for fault in beyond.FAULTS]
    assert list(DETECTIONS["engine"]) == [fault.name for fault in engines.FAULTS]
    assert RECORD["spec_hash"] == spec_hash()


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_planner_measured_anew(name: str) -> None:
    assert measure.planner_row(BROKEN[name], measure.Clock()) == DETECTIONS["planners"][name]


@pytest.mark.parametrize("name", SAMPLE)
def test_a_mutant_measured_anew(name: str) -> None:
    assert measure.mutant_row(MUTANTS[name], measure.Clock()) == DETECTIONS["mutants"][name]


@pytest.mark.parametrize("fault", beyond.FAULTS, ids=lambda fault: fault.name)
def test_a_late_fault_shows_where_it_is_said_to(fault: beyond.LateFault) -> None:
    row = DETECTIONS["late"][fault.name]
    assert row["same_formula_up_to"] == min(fault.fails_at - 1, 256)
    assert row["first_failure"] or row["replayed"]
    assert beyond.replayed(fault) == row["replayed"]


@pytest.mark.parametrize("fault", engines.FAULTS, ids=lambda fault: fault.name)
def test_a_fault_outside_the_planner_measured_anew(fault: engines.EngineFault) -> None:
    row = DETECTIONS["engine"][fault.name]
    assert gate.run(fault.case(False)) == row["gate"]
    assert gate.run(fault.case(True)) == row["with_digests"]


# What the prose says without a table.


def test_enumeration_to_8_is_enough_for_every_public_fault_and_16_for_every_mutant() -> None:
    for name, row in DETECTIONS["planners"].items():
        assert max(row["first_failure"]) <= 8, name
    for name, row in DETECTIONS["mutants"].items():
        assert not row.get("first_failure") or max(row["first_failure"]) <= 16, name


def test_the_peers_test_no_indivisible_pair_and_vllm_no_replicated_head() -> None:
    assert all(P % D == 0 or D % P == 0 for _, P, D in peers.points())
    ours = [sizes for tests in peers.PEERS if tests.project == "vLLM" for sizes in tests.points]
    assert ours
    assert all(max(P, D) <= H for H, P, D in ours)


def test_each_bound_of_enumeration_has_a_late_fault_that_passes_it() -> None:
    assert [fault.fails_at for fault in beyond.FAULTS[:3]] == [17, 65, 257]


# What measures is measured.


def test_the_sizes_of_the_peers_are_legal() -> None:
    points = peers.points()
    assert len(points) > 30
    for sizes in points:
        H, P, D = sizes
        assert is_legal(H, P)
        assert is_legal(H, D)
        assert not list(judge(RIGHT, H, P, D))


def test_enumeration_goes_by_the_largest_size() -> None:
    listed = list(enumeration.up_to(8))
    assert [max(sizes) for sizes in listed] == sorted(max(sizes) for sizes in listed)
    assert len(listed) == len(set(listed))
    assert sum(P * D for _, P, D in listed) == enumeration.pairs_up_to(8)


def test_the_right_planner_passes_every_enumeration() -> None:
    subjects = emitted.subjects_of(emitted.load(emitted.TEXT))
    assert enumeration.first_failure(subjects, enumeration.up_to(6)) is None
    assert list(vectorised.suspects(vectorised.formulas_as_arrays(), enumeration.up_to(16))) == []


@pytest.mark.parametrize(
    "name", [name for name in SAMPLE if emitted.is_emitted(MUTANTS[name].formula)]
)
def test_arrays_and_plain_python_judge_alike(name: str) -> None:
    mutant = MUTANTS[name]
    text = emitted.with_mutant(mutant, FORMULAS[mutant.formula])
    subjects = emitted.subjects_of(emitted.load(text))
    sizes = list(enumeration.up_to(4))
    plain = [one for one in sizes if enumeration.violated(subjects, one)]
    module = vectorised.formulas_as_arrays(mutant)
    try:
        arrays = list(vectorised.suspects(module, sizes))
    except FloatingPointError:
        # A division by zero stops all of an array; plain Python has to meet it too.
        assert plain
        return
    assert arrays == plain


@pytest.mark.parametrize("compare", [False, True])
@pytest.mark.parametrize("where", [gate.BOTH, gate.PRODUCERS])
def test_the_gate_lets_a_right_planner_through(where: str, compare: bool) -> None:
    for sizes in [(4, 8, 1), (2, 1, 4), (6, 3, 2), (8, 8, 16)]:
        assert gate.run(gate.Case(sizes, compare)) == gate.RIGHT
        assert gate.run(gate.Case(sizes, compare), RIGHT, where) == gate.RIGHT
