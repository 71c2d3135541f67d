# SPDX-License-Identifier: Apache-2.0
"""Faults put into the specification: each is found, and named by the invariant that it breaks."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
import z3
from spec_mutants import (
    CONTENT,
    COVERED,
    FOUND_BY_THE_SOLVER_ALONE,
    HOLDER,
    LENGTHS,
    MUTANTS,
    OVERLAP,
    PEERS,
    READ,
    WRITE,
    Mutant,
)

from kvreshard.proofs.cache import Cache
from kvreshard.proofs.counterexample import smallest_counterexamples
from kvreshard.proofs.judge import is_legal
from kvreshard.proofs.obligations import obligations
from kvreshard.proofs.question import refutation
from kvreshard.proofs.run import prove
from kvreshard.proofs.solve import answer
from kvreshard.spec.canonical import spec_formulas
from kvreshard.spec.formula import FORMULAS
from kvreshard.spec.invariants import INVARIANTS
from kvreshard.spec.ownership import head_count, replica_count, replica_set

if TYPE_CHECKING:
    from collections.abc import Callable

    from kvreshard.proofs.obligations import Obligation

BY_NAME = {mutant.name: mutant for mutant in (*MUTANTS, *FOUND_BY_THE_SOLVER_ALONE)}

# Which mutant the solver refutes in which invariant. The regime is that of the smallest failure.
REFUTED = (
    ("first_head_modulo_heads", COVERED),
    ("every_replica_sends", COVERED),
    ("one_head_too_few", COVERED),
    ("ordinal_is_the_set", OVERLAP),
    ("one_head_too_many", OVERLAP),
    ("overlap_start_is_the_consumers", READ),
    ("source_offset_plus_1", READ),
    ("overlap_end_is_the_producers", WRITE),
    ("target_offset_minus_1", WRITE),
    ("source_offset_is_zero", CONTENT),
    ("source_offset_of_swapped_ranks", CONTENT),
    ("touching_heads_count_as_overlap", HOLDER),
    ("target_offset_is_zero", HOLDER),
    ("first_sender_plus_1", PEERS),
    ("last_sender_one_head_on", PEERS),
    ("last_candidate_is_the_lowest_replica", PEERS),
    ("lengths_by_product_alone", LENGTHS),
    ("bytes_of_a_token_lie_apart", CONTENT),
    ("head_slot_counts_tokens", CONTENT),
    ("token_runs_over_heads", CONTENT),
    ("position_plus_1", CONTENT),
    ("lengths_may_be_zero", LENGTHS),
)


def regime_of(H: int, P: int, D: int) -> str:
    """Return the name of the regime that a legal triple is in."""
    assert is_legal(H, P)
    assert is_legal(H, D)
    producer, consumer = ("split" if H % size == 0 else "replicated" for size in (P, D))
    divisible = "divisible" if P % D == 0 or D % P == 0 else "indivisible"
    return f"{producer}_to_{consumer}_{divisible}"


def solver_results(item: Obligation) -> set[str]:
    """Return what the solver says to the negation of an obligation."""
    return {answer(question).result for question in refutation(item, seeds=(0,))}


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_the_replay_finds_the_smallest_failure_of_each_broken_invariant(mutant: Mutant) -> None:
    with mutant.applied():
        found = smallest_counterexamples(maximum=4)
    seen = [one.violation for one in found]
    assert mutant.smallest
    assert {
        one.invariant: (one.total_num_kv_heads, one.producer_tp_size, one.consumer_tp_size)
        for one in seen
    } == mutant.smallest


@pytest.mark.parametrize(("name", "invariant"), REFUTED)
def test_the_solver_refutes_the_broken_invariant_in_the_regime(name: str, invariant: str) -> None:
    sizes = BY_NAME[name].smallest[invariant]
    wanted = f"/{regime_of(*sizes)}/bounded"
    with BY_NAME[name].applied():
        chosen = [
            item
            for item in obligations(maximum=4)
            if item.invariant == invariant and item.name.endswith(wanted)
        ]
        results = {item.name: solver_results(item) for item in chosen}
    assert any("sat" in result for result in results.values()), results


def test_the_solver_refutes_every_invariant_for_some_mutant() -> None:
    assert {invariant for _, invariant in REFUTED} == set(INVARIANTS)


@pytest.mark.parametrize("mutant", FOUND_BY_THE_SOLVER_ALONE, ids=lambda mutant: mutant.name)
def test_the_solver_refutes_what_breaks_no_plan(mutant: Mutant) -> None:
    (right,) = (item for item in obligations(maximum=4) if item.name == mutant.shows)
    assert solver_results(right) == {"unsat"}
    with mutant.applied():
        (wrong,) = (item for item in obligations(maximum=4) if item.name == mutant.shows)
        assert "sat" in solver_results(wrong)
        assert smallest_counterexamples(maximum=2) == []


def test_every_formula_has_a_mutant() -> None:
    assert {mutant.formula for mutant in BY_NAME.values()} == set(spec_formulas())
    assert len(BY_NAME) == len(MUTANTS) + len(FOUND_BY_THE_SOLVER_ALONE)


def test_a_mutant_is_gone_afterwards() -> None:
    right = FORMULAS["first_head"]
    with BY_NAME["first_head_plus_1"].applied():
        assert FORMULAS["first_head"] is not right
    assert FORMULAS["first_head"] is right
    assert smallest_counterexamples(maximum=4) == []


def test_a_run_calls_a_mutant_refuted() -> None:
    name = f"{WRITE}/bytes/split_to_split_divisible/bounded"
    with BY_NAME["target_offset_plus_1"].applied():
        chosen = [item for item in obligations(maximum=4) if item.name == name]
        (verdict,) = prove(chosen, jobs=1, cache=Cache(None))
    assert (verdict.result, verdict.holds) == ("refuted", False)
    assert verdict.reason == "the solver has a counterexample"


# Changes that are no faults: any ordinal in range makes a right plan, and on legal groups the
# closed form of `first_head` and a division of exact quotients have the same values.
EQUIVALENT: dict[str, tuple[str, Callable[..., Any]]] = {
    "the highest replica sends": (
        "elect_lowest",
        lambda H, P, D, d: replica_count(H, P) - 1,  # noqa: ARG005
    ),
    "the turn starts one rank later": (
        "elect_spread",
        lambda H, P, D, d: (d + 1) % replica_count(H, P),  # noqa: ARG005
    ),
    "the first head by sets": (
        "first_head",
        lambda H, T, r: replica_set(H, T, r) * head_count(H, T),
    ),
    "the heads rounded up": (
        "head_count",
        lambda H, T: z3.If(H >= T, (H + T - 1) / T, z3.IntVal(1)),
    ),
}


@pytest.mark.parametrize("change", EQUIVALENT)
def test_a_change_that_is_no_fault_breaks_nothing(
    change: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    name, body = EQUIVALENT[change]
    made = FORMULAS[name]
    monkeypatch.setitem(FORMULAS, name, replace(made, body=body(*made.parameters)))
    assert smallest_counterexamples(maximum=6) == []
