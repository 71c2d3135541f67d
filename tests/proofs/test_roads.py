# SPDX-License-Identifier: Apache-2.0
"""A bounded statement leaves no legal size out, by whichever road it is settled."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
import z3
from spec_mutants import COVERED, LENGTHS, OVERLAP, PEERS

from kvreshard.proofs.obligations import obligations
from kvreshard.proofs.question import VALUES_PER_QUESTION, refutation
from kvreshard.proofs.roads import DEFAULT_MAXIMUM, Road, bounds
from kvreshard.proofs.solve import answer
from kvreshard.spec.formula import FORMULAS

if TYPE_CHECKING:
    from collections.abc import Callable

    from kvreshard.proofs.obligations import Obligation

MAXIMUM = 5
ON_A_ROAD = [item for item in obligations(MAXIMUM) if item.road and item.road.fixed]
REGIMES = sorted({item.regime or "" for item in ON_A_ROAD})


def in_regime(regime: str, H: int, P: int, D: int) -> bool:
    """Say in plain Python whether a triple is legal and in a regime."""
    producer, _, consumer, divisibility = regime.split("_")

    def sharded(size: int, sharding: str) -> bool:
        return H % size == 0 if sharding == "split" else size > H and size % H == 0

    divisible = P % D == 0 or D % P == 0
    return (
        sharded(P, producer) and sharded(D, consumer) and divisible == (divisibility == "divisible")
    )


def triples(regime: str, maximum: int) -> list[tuple[int, int, int]]:
    """Return every triple of a regime, with all sizes up to a maximum."""
    sizes = range(1, maximum + 1)
    return [(H, P, D) for H in sizes for P in sizes for D in sizes if in_regime(regime, H, P, D)]


def queries(item: Obligation) -> int:
    """Return how many queries settle a statement, which has to hold."""
    answers = [answer(question) for question in refutation(item)]
    assert {one.result for one in answers} == {"unsat"}
    return sum(one.queries for one in answers)


@pytest.mark.parametrize("item", ON_A_ROAD, ids=lambda item: item.name)
def test_a_query_is_put_for_every_value_that_a_legal_triple_has(item: Obligation) -> None:
    assert item.road is not None
    assert item.regime is not None
    fixed = len(item.road.fixed)
    needed = {triple[:fixed] for triple in triples(item.regime, MAXIMUM)}
    # Without the consumer, which may be too large for the range or be ruled out by divisibility.
    producer = item.regime.split("_")[0]
    allowed = {
        (H, P)[:fixed]
        for H in range(1, MAXIMUM + 1)
        for P in range(1, MAXIMUM + 1)
        if fixed == 1 or (H % P == 0 if producer == "split" else P > H and P % H == 0)
    }
    put = queries(item)
    assert len(needed) <= put <= len(allowed)
    if len(needed) == len(allowed):
        assert put == len(needed)


def test_the_count_is_exact_where_every_producer_has_a_consumer() -> None:
    counts = {item.regime: queries(item) for item in ON_A_ROAD if item.part == "at_least_once"}
    # H is a multiple of P: 1, 2, 2, 3 and 2 values of P; P a multiple of H below it: 4, 1, 0, 0, 0.
    assert counts["split_to_split_divisible"] == 10
    assert counts["replicated_to_split_divisible"] == 5


PLANTED = [
    (item.name, triple)
    for item in ON_A_ROAD
    if item.part == "at_least_once"
    for triple in triples(item.regime or "", MAXIMUM)
]


@pytest.mark.parametrize("name", sorted({name for name, _ in PLANTED}))
def test_a_fault_at_a_single_triple_is_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    right = FORMULAS["sends"]
    H, P, _, D, *_ = right.parameters
    for planted, (heads, producers, consumers) in PLANTED:
        if planted != name:
            continue
        here = z3.And(heads == H, producers == P, consumers == D)
        wrong = replace(right, body=z3.And(right.body, z3.Not(here)))
        monkeypatch.setitem(FORMULAS, "sends", wrong)
        (item,) = (item for item in ON_A_ROAD if item.name == name)
        results = [answer(question).result for question in refutation(item)]
        assert "sat" in results, (heads, producers, consumers)


def test_every_regime_with_a_triple_in_range_has_a_fault_planted() -> None:
    assert len(PLANTED) == sum(len(triples(regime, MAXIMUM)) for regime in REGIMES)
    assert len(REGIMES) == 6
    assert len(PLANTED) > 50


@pytest.mark.parametrize("maximum", [1, 7, 8, 9, 20, DEFAULT_MAXIMUM])
def test_the_questions_of_a_road_take_each_first_value_once(maximum: int) -> None:
    name = f"{COVERED}/at_least_once/split_to_split_divisible/bounded"
    (item,) = (item for item in obligations(maximum) if item.name == name)
    questions = refutation(item)
    values = [value for question in questions for value in question.values]
    assert values == list(range(1, maximum + 1))
    assert all(len(question.values) <= VALUES_PER_QUESTION for question in questions)
    assert {question.road for question in questions} == {item.road}


def test_every_bounded_statement_names_its_range() -> None:
    bounded = [item for item in obligations() if item.scope == "bounded"]
    assert bounded
    limits = [hypothesis.name for hypothesis in bounds(DEFAULT_MAXIMUM)]
    for item in bounded:
        assert item.road is not None
        assert item.road.maximum == DEFAULT_MAXIMUM == 256
        # The proof is given all but the last, divisibility.
        assert item.assumed == len(item.hypotheses) - 1
        assert [one.name for one in item.hypotheses[-len(limits) - 1 : -1]] == limits
        assert item.proof.uses == ()
        assert item.proof.closed == frozenset()


def test_a_road_is_told_in_words() -> None:
    assert Road().sentence() == "heads and TP sizes symbolic"
    assert Road(("total_num_kv_heads",)).sentence() == (
        "total_num_kv_heads fixed value by value, the rest symbolic"
    )
    road = Road(("total_num_kv_heads", "producer_tp_size"), "consumer_tp_size", cases=True)
    assert road.sentence() == (
        "total_num_kv_heads and producer_tp_size fixed value by value, "
        "consumer_tp_size split into its values in each query, the rest symbolic"
    )


def symbolic(item: Obligation) -> Obligation:
    """Return the same statement, to be settled with nothing fixed."""
    return replace(item, road=Road(maximum=MAXIMUM))


def results(item: Obligation) -> set[str]:
    return {answer(question).result for question in refutation(item, seeds=(0,))}


# Not "some producer rank": the solver does not settle that with nothing fixed even up to 5.
SETTLED_BOTH_WAYS = [item for item in ON_A_ROAD if item.part != "at_least_once"]


@pytest.mark.parametrize("item", SETTLED_BOTH_WAYS, ids=lambda item: item.name)
def test_a_road_with_values_fixed_and_one_without_agree(item: Obligation) -> None:
    assert results(item) == results(symbolic(item)) == {"unsat"}


FAULTS: dict[str, tuple[str, Callable[[Any], Any]]] = {
    f"{OVERLAP}/bytes/replicated_to_replicated_divisible/bounded": (
        "sends",
        lambda right: right.arg(1),  # whether the heads overlap, without the election
    ),
    f"{PEERS}/each_listed_rank_sends/replicated_to_split_divisible/bounded": (
        "last_sender",
        lambda right: right + 5,  # by at least one set of replicas
    ),
    f"{PEERS}/each_candidate_is_a_rank/replicated_to_replicated_divisible/bounded": (
        "first_receiver_candidate",
        lambda right: right - 1,
    ),
    f"{LENGTHS}/accepted_is_plannable/split_to_split_divisible/bounded": (
        "region_lengths_match",
        lambda right: right.arg(3),  # the product alone
    ),
}


@pytest.mark.parametrize("name", FAULTS)
def test_both_roads_refute_a_fault(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    formula, change = FAULTS[name]
    right = FORMULAS[formula]
    monkeypatch.setitem(FORMULAS, formula, replace(right, body=change(right.body)))
    (item,) = (item for item in SETTLED_BOTH_WAYS if item.name == name)
    assert "sat" in results(item)
    assert "sat" in results(symbolic(item))
