# SPDX-License-Identifier: Apache-2.0
"""Mutants of the specification: how they are made, killed and explained."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
import z3

from kvreshard.proofs.cache import Cache
from kvreshard.proofs.mutation import independence, refute, scenarios
from kvreshard.proofs.mutation import matrix as matrices
from kvreshard.proofs.mutation.answers import Answers
from kvreshard.proofs.mutation.examine import Cell, Examined, examine
from kvreshard.proofs.mutation.independence import Standing, standing
from kvreshard.proofs.mutation.mutants import Generation, Mutant, generate
from kvreshard.proofs.mutation.operators import Place, applied_in, changes
from kvreshard.proofs.mutation.refute import DoesNotReplayError
from kvreshard.proofs.mutation.sites import Site, replaced, sites
from kvreshard.proofs.mutation.statements import (
    Statement,
    claims_about,
    other_statements_about,
)
from kvreshard.proofs.mutation.survivors import Explanation, explain
from kvreshard.spec.canonical import s_expression, spec_formulas
from kvreshard.spec.formula import FORMULAS, Formula, maximum
from kvreshard.spec.invariants import INVARIANTS
from kvreshard.spec.parameters import D, H, P, T

if TYPE_CHECKING:
    from pathlib import Path

CONTENT = "every_written_byte_holds_the_same_head_token_and_position"
LENGTHS = "the_length_check_accepts_exactly_the_plannable_regions"


@pytest.fixture(scope="module")
def generation() -> Generation:
    return generate()


@pytest.fixture(scope="module")
def by_name(generation: Generation) -> dict[str, Mutant]:
    return generation.by_name()


def planted(formula: str, body: z3.ExprRef) -> Mutant:
    """Return a mutant that no operator makes."""
    made = FORMULAS[formula]
    return Mutant(formula, 0, "planted", s_expression(made.body), s_expression(body), body)


# Sites and operators


def test_a_maximum_is_one_site_and_shared_terms_are_not() -> None:
    a, b = z3.Ints("a b")
    body = maximum(a + b, 1) - (a + b)
    found = [(site.number, site.path, s_expression(site.node)) for site in sites(body)]
    assert found == [
        (0, (), "(- (max (+ a b) 1) (+ a b))"),
        (1, (0,), "(max (+ a b) 1)"),
        (2, (0, 0), "(+ a b)"),
        (3, (0, 0, 0), "a"),
        (4, (0, 0, 1), "b"),
        (5, (0, 1), "1"),
        (6, (1,), "(+ a b)"),
        (7, (1, 0), "a"),
        (8, (1, 1), "b"),
    ]


def test_a_term_is_replaced_where_it_stands_and_nowhere_else() -> None:
    a, b = z3.Ints("a b")
    body = maximum(a + b, 1) - (a + b)
    assert s_expression(replaced(body, (0, 0, 1), a)) == "(- (max (+ a a) 1) (+ a b))"
    assert replaced(body, (0, 0, 1), b).eq(body)


def test_every_site_of_every_formula_has_a_mutant(generation: Generation) -> None:
    named = [
        name for mutant in generation.mutants for name in (mutant.name, *mutant.same_as)
    ] + list(generation.unchanged)
    covered = {name.partition(":")[0] for name in named}
    expected = {
        f"{name}@{site.number}"
        for name, made in spec_formulas().items()
        for site in sites(made.body)
    }
    assert len(expected) == sum(generation.sites.values()) > 250
    assert expected <= covered
    assert {place for place in covered - expected if not place.endswith("@all")} == set()


# The kinds of the list, and what this specification has beside them.
KINDS = {
    "constant_plus_1",
    "constant_minus_1",
    "floordiv_to_mod",
    "mod_to_floordiv",
    "min_to_max",
    "max_to_min",
    "max_dropped_for_its_first",
    "max_dropped_for_its_second",
    "min_dropped_for_its_first",
    "min_dropped_for_its_second",
    "lt_to_le",
    "ge_to_gt",
    "eq_to_ne",
    "add_to_sub",
    "sub_to_add",
    "mul_to_add",
    "mul_to_floordiv",
    "sub_operands_swapped",
    "floordiv_operands_swapped",
    "mod_operands_swapped",
    "and_to_or",
    "or_to_and",
    "and_without_0",
    "or_without_1",
    "condition_negated",
    "always_then",
    "always_otherwise",
    "producer_tp_size_to_consumer_tp_size",
    "consumer_tp_rank_to_producer_tp_rank",
    "producer_region_bytes_to_consumer_region_bytes",
    "producer_tp_size_and_consumer_tp_size_exchanged",
    "producer_tp_rank_and_consumer_tp_rank_exchanged",
    "sides_exchanged",
    "ordinal_plus_1",
    "ordinal_minus_1",
    "head_count_to_replica_count",
    "replica_ordinal_to_replica_set",
    "overlap_start_to_overlap_end",
    "value_plus_1",
    "variable_minus_1",
    "application_plus_1",
}


def test_every_kind_of_mistake_occurs(generation: Generation) -> None:
    kinds = {
        name.partition(":")[2]
        for mutant in generation.mutants
        for name in (mutant.name, *mutant.same_as)
    }
    assert kinds >= KINDS


def test_the_mutants_of_one_formula(generation: Generation) -> None:
    listed = [mutant for mutant in generation.mutants if mutant.formula == "replica_ordinal"]
    assert [(mutant.name, mutant.before, mutant.after) for mutant in listed][:8] == [
        (
            "replica_ordinal@0:value_plus_1",
            "(mod tp_rank (replica_count total_num_kv_heads tp_size))",
            "(+ (mod tp_rank (replica_count total_num_kv_heads tp_size)) 1)",
        ),
        (
            "replica_ordinal@0:value_minus_1",
            "(mod tp_rank (replica_count total_num_kv_heads tp_size))",
            "(- (mod tp_rank (replica_count total_num_kv_heads tp_size)) 1)",
        ),
        (
            "replica_ordinal@0:mod_to_floordiv",
            "(mod tp_rank (replica_count total_num_kv_heads tp_size))",
            "(div tp_rank (replica_count total_num_kv_heads tp_size))",
        ),
        (
            "replica_ordinal@0:mod_operands_swapped",
            "(mod tp_rank (replica_count total_num_kv_heads tp_size))",
            "(mod (replica_count total_num_kv_heads tp_size) tp_rank)",
        ),
        ("replica_ordinal@1:variable_plus_1", "tp_rank", "(+ tp_rank 1)"),
        ("replica_ordinal@1:variable_minus_1", "tp_rank", "(- tp_rank 1)"),
        (
            "replica_ordinal@2:application_plus_1",
            "(replica_count total_num_kv_heads tp_size)",
            "(+ (replica_count total_num_kv_heads tp_size) 1)",
        ),
        (
            "replica_ordinal@2:application_minus_1",
            "(replica_count total_num_kv_heads tp_size)",
            "(- (replica_count total_num_kv_heads tp_size) 1)",
        ),
    ]


def test_duplicates_are_named_and_not_judged_twice(generation: Generation) -> None:
    (kept,) = (m for m in generation.mutants if m.name == "dst_head_offset@0:value_plus_1")
    assert kept.same_as == (
        "dst_head_offset@1:application_plus_1",
        "dst_head_offset@7:application_minus_1",
    )
    judged = set(generation.by_name())
    assert judged.isdisjoint(name for mutant in generation.mutants for name in mutant.same_as)
    assert judged.isdisjoint(generation.unchanged)
    assert generation.duplicates > 0


def test_every_mutant_has_the_sort_and_the_parameters_of_its_formula(
    generation: Generation,
) -> None:
    for mutant in generation.mutants:
        made = FORMULAS[mutant.formula]
        assert mutant.body.sort() == made.body.sort()
        # No formula applies itself in a circle: unfolding would not end.
        assert mutant.formula not in applied_in(mutant.body)
        names = {str(constant) for constant in z3.z3util.get_vars(mutant.body)}
        assert names <= set(made.parameter_names)


def test_a_site_that_no_operator_knows_is_refused() -> None:
    a = z3.Int("a")
    node = z3.Not(a == 0)
    made = Formula("odd", (a,), node, z3.Function("odd", z3.IntSort(), z3.BoolSort()), "")
    with pytest.raises(ValueError, match=r"no mutation operator for \(not \(= a 0\)\) at site 0"):
        list(changes(Place(Site(0, (), node), made, None)))


def test_comparisons_that_the_specification_does_not_use_are_mutated_too() -> None:
    a = z3.Int("a")
    made = FORMULAS["head_count"]
    kinds = [
        kind
        for node in (a > 1, a <= 1)
        for kind, _ in changes(Place(Site(0, (), node), made, None))
    ]
    assert kinds == ["gt_to_ge", "le_to_lt"]


# Kills


def test_a_kill_names_the_claim_and_the_smallest_sizes(by_name: dict[str, Mutant]) -> None:
    seen = examine(by_name["src_head_offset@0:value_plus_1"])
    assert seen.killed
    assert {name: cell.result for name, cell in seen.cells.items()} == {
        "every_read_is_inside_the_producer_block": "killed",
        CONTENT: "killed",
    }
    cell = seen.cells["every_read_is_inside_the_producer_block"]
    assert cell.statement == "every_read_is_inside_the_producer_block/bytes"
    assert cell.model is not None
    sizes = ("total_num_kv_heads", "producer_tp_size", "consumer_tp_size")
    assert [cell.model[name] for name in sizes] == [1, 1, 1]
    assert seen.enumerated == ("every_read_is_inside_the_producer_block", CONTENT)


def test_what_a_mutant_breaks_elsewhere_is_named(by_name: dict[str, Mutant]) -> None:
    out_of_range = examine(by_name["elect_lowest@0:constant_plus_1"])
    assert out_of_range.cells == {}
    assert out_of_range.elsewhere is not None
    assert out_of_range.elsewhere.statement == "lowest/the_elected_ordinal_is_in_range"
    a_lemma = examine(by_name["replica_set@0:value_plus_1"])
    assert a_lemma.elsewhere is not None
    assert a_lemma.elsewhere.statement == "lemma/sets_of_replicas"
    undefined = examine(by_name["replica_set@4:variable_minus_1"])
    assert undefined.elsewhere is not None
    assert undefined.elsewhere.statement == "replica_set/is_defined"


def test_a_scenario_that_becomes_impossible_kills(by_name: dict[str, Mutant]) -> None:
    found = scenarios.ruled_out_scenario(by_name["group_is_legal@0:or_without_1"])
    assert found is not None
    name, witness = found
    assert name == "one_producer_feeds_eight_replicas/split_to_replicated_divisible"
    assert witness == {
        "total_num_kv_heads": 4,
        "producer_tp_size": 1,
        "consumer_tp_size": 8,
        "consumer_tp_rank": 7,
        "elected_ordinal": 0,
        "producer_tp_rank": 0,
    }
    assert scenarios.ruled_out_scenario(by_name["holds@4:lt_to_le"]) is None


def test_a_lost_witness_that_python_keeps_is_an_error(
    by_name: dict[str, Mutant], monkeypatch: pytest.MonkeyPatch
) -> None:
    mutant = by_name["group_is_legal@0:or_without_1"]
    monkeypatch.setattr(scenarios, "_holds", lambda *_: True)
    with pytest.raises(DoesNotReplayError, match="keeps the witness"):
        scenarios.ruled_out_scenario(mutant)
    monkeypatch.setattr(scenarios, "_holds", lambda *_: False)
    monkeypatch.setattr(scenarios, "LARGEST", 1)
    with pytest.raises(DoesNotReplayError, match="has no witness with sizes up to 1"):
        scenarios.ruled_out_scenario(mutant)


def statement(*given: Any, goal: Any) -> Statement:
    return Statement("planted/claim", "invariant", "planted", given, goal)


def test_a_statement_that_holds_on_its_range_is_not_refuted() -> None:
    found = refute.refute(statement(H >= 1, goal=H <= 6))
    assert (found.result, found.model) == ("holds", None)


def test_the_smallest_sizes_are_found_first() -> None:
    found = refute.refute(statement(H >= 1, P >= 1, D >= 1, goal=H + P * D < 9))
    assert found.model is not None
    assert [found.model[str(size)] for size in (H, P, D)] == [1, 2, 4]


def test_a_division_by_0_is_no_counterexample() -> None:
    # Without the condition on divisors z3 chooses what H // 0 is.
    found = refute.refute(statement(H >= 1, T == 0, goal=H // T == 0))
    assert found.result == "holds"
    guarded = z3.If(T == 1, H // T, z3.IntVal(0))
    assert refute.refute(statement(H >= 1, goal=guarded == 0)).result == "refuted"


def test_some_rank_is_looked_for_among_the_ranks() -> None:
    p = z3.Int("producer_tp_rank")
    exists = z3.Exists([p], z3.And(0 <= p, p < P, 2 * p == P))
    found = refute.refute(statement(P >= 2, goal=exists))
    assert found.model == {"producer_tp_size": 3}


def test_unknown_is_undecided_and_kills_nothing(
    by_name: dict[str, Mutant], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(refute, "RLIMIT", 1)
    with by_name["region_lengths_match@13:constant_plus_1"].applied():
        found = [refute.refute(claim) for claim in claims_about("region_lengths_match")]
    assert {one.result for one in found} == {"undecided"}
    seen = Examined("planted", {LENGTHS: Cell("undecided")})
    assert not seen.killed
    assert seen.undecided


@pytest.mark.parametrize(
    ("model", "complaint"),
    [
        ({"total_num_kv_heads": 2, "tp_size": 1}, "the goal holds"),
        ({"total_num_kv_heads": 0, "tp_size": 1}, "total_num_kv_heads is not in 1 to 6"),
        ({"total_num_kv_heads": 4, "tp_size": 3}, "the hypothesis .* fails"),
        ({"total_num_kv_heads": 4}, "KeyError"),
    ],
)
def test_a_model_that_does_not_replay_is_an_error(
    model: dict[str, int], complaint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    claim = statement(H >= 1, H % T == 0, goal=H // T >= 1)
    monkeypatch.setattr(refute, "_search", lambda *_: ("sat", model))
    with pytest.raises(DoesNotReplayError, match=complaint):
        refute.refute(claim)


def test_a_replay_that_divides_by_0_is_an_error() -> None:
    with pytest.raises(DoesNotReplayError, match="ZeroDivisionError"):
        refute.replay(statement(goal=H // z3.Int("zero") == 1), {str(H): 1, "zero": 0})


def test_kept_answers_are_replayed_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    claim = statement(H >= 1, goal=H >= 3)
    answers = Answers(tmp_path)
    first = refute.refute(claim, answers)
    assert first.model == {"total_num_kv_heads": 1}
    monkeypatch.setattr(refute, "_search", lambda *_: pytest.fail("the answer is kept"))
    assert refute.refute(claim, answers) == first
    (kept,) = tmp_path.rglob("*.json")
    kept.write_text('["sat", {"total_num_kv_heads": 5}]', encoding="utf-8")
    with pytest.raises(DoesNotReplayError, match="the goal holds"):
        refute.refute(claim, answers)


def test_a_mutant_is_gone_afterwards(by_name: dict[str, Mutant]) -> None:
    right = FORMULAS["first_head"]
    with by_name["first_head@0:floordiv_to_mod"].applied():
        assert FORMULAS["first_head"] is not right
    assert FORMULAS["first_head"] is right
    with pytest.raises(ZeroDivisionError), by_name["first_head@0:floordiv_to_mod"].applied():
        _ = 1 // 0
    assert FORMULAS["first_head"] is right


def test_a_formula_is_judged_by_all_that_speaks_of_it() -> None:
    assert {claim.column for claim in claims_about("first_head")} == set(INVARIANTS) - {LENGTHS}
    assert claims_about("is_paired") == []
    assert {one.kind for one in other_statements_about("replica_set")} == {"definedness", "lemma"}
    kinds = {one.kind for one in other_statements_about("group_is_legal")}
    assert kinds == {"election", "exhaustive", "definedness"}


# Survivors


@pytest.mark.parametrize(
    ("name", "outcome", "reason"),
    [
        (
            "overlap_start@all:sides_exchanged",
            "equivalent",
            "equal to overlap_start for all integers",
        ),
        (
            "holds@0:and_without_0",
            "equivalent",
            "equal to holds for legal sizes and ranks, whatever the other arguments are",
        ),
        (
            "head_slot_at@all:block_size_and_token_bytes_exchanged",
            "equivalent",
            "equal to head_slot_at on its legal inputs",
        ),
        (
            "elect_spread@1:variable_plus_1",
            "right",
            "each of the 2 obligations that speak of elect_spread holds",
        ),
    ],
)
def test_why_a_mutant_is_no_fault(
    name: str, outcome: str, reason: str, by_name: dict[str, Mutant]
) -> None:
    found = explain(by_name[name], jobs=1, cache=Cache(None))
    assert (found.outcome, found.reason, found.open) == (outcome, reason, ())
    assert found.proved >= 1


def test_a_fault_beyond_the_range_is_a_survivor_and_fails_the_run() -> None:
    heads = z3.Int("total_num_kv_heads")
    wrong = planted("elect_lowest", z3.If(heads >= 100, z3.IntVal(1), z3.IntVal(0)))
    seen = examine(wrong)
    assert not seen.killed
    assert not seen.undecided
    explanation = explain(wrong, jobs=1, cache=Cache(None))
    assert explanation.outcome == "survivor"
    assert explanation.open == ("lowest/the_elected_ordinal_is_in_range",)
    row = matrices.row(wrong, seen, explanation)
    assert row["outcome"] == "survivor"
    assert matrices.exit_code([row]) == 1


def test_a_plan_that_enumeration_finds_wrong_is_no_right_planner(
    by_name: dict[str, Mutant],
) -> None:
    mutant = by_name["elect_spread@1:variable_plus_1"]
    seen = Examined(mutant.name, {}, Cell("holds"), ("no_two_writes_overlap",))
    assert matrices.row(mutant, seen, Explanation("right", "proved"))["outcome"] == "survivor"
    agreeing = replace(seen, enumerated=())
    assert matrices.row(mutant, agreeing, Explanation("right", "proved"))["outcome"] == "right"


@pytest.mark.parametrize(
    ("outcomes", "code"),
    [
        ([], 1),
        (["killed", "equivalent", "right"], 0),
        (["killed", "survivor", "undecided"], 1),
        (["killed", "undecided"], 3),
    ],
)
def test_the_exit_code_tells_survivors_from_what_is_open(outcomes: list[str], code: int) -> None:
    assert matrices.exit_code([{"outcome": outcome} for outcome in outcomes]) == code


def test_what_is_left_open_is_undecided_only_where_nothing_else_is_known(
    by_name: dict[str, Mutant],
) -> None:
    mutant = by_name["holds@4:lt_to_le"]
    unproved = Explanation("survivor", "not proved")
    open_cell = Examined(mutant.name, {LENGTHS: Cell("undecided")})
    assert matrices.row(mutant, open_cell, unproved)["outcome"] == "undecided"
    assert matrices.row(mutant, open_cell, Explanation("right", ""))["outcome"] == "right"
    both = Examined(
        mutant.name, {LENGTHS: Cell("undecided"), CONTENT: Cell("killed", "x", {"B": 1})}
    )
    assert matrices.row(mutant, both, None)["outcome"] == "killed"
    assert matrices.row(mutant, Examined(mutant.name), unproved)["outcome"] == "survivor"


# Whether an invariant is needed


def test_a_table_breaks_an_invariant_alone_where_it_is_needed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(independence, "LARGEST", 2)
    name = "every_write_is_inside_the_consumer_block"
    assert standing(name) == Standing(name, (2, 1, 2), ())


def test_an_invariant_that_the_others_imply_has_no_such_table(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(independence, "LARGEST", 2)
    name = "every_read_is_inside_the_producer_block"
    implied_by = (CONTENT, "only_a_holder_of_the_head_sends_it")
    assert standing(name) == Standing(name, None, implied_by)


def test_a_table_that_plain_python_judges_otherwise_is_an_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(independence, "judge", lambda *_: [])
    with pytest.raises(DoesNotReplayError, match=r"a table for \(1, 1, 1\) breaks \[\]"):
        standing(LENGTHS)
