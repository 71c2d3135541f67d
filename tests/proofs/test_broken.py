# SPDX-License-Identifier: Apache-2.0
"""Each broken planner breaks what it is said to break, where it was reported, and no more."""

from __future__ import annotations

import re

import pytest

from kvreshard.proofs.broken import BROKEN, RIGHT, names
from kvreshard.proofs.broken.ratio import by_ratio
from kvreshard.proofs.broken.right import planner_of
from kvreshard.proofs.judge import Copy, Subject, is_legal, judge
from kvreshard.proofs.smallest import inputs, search
from kvreshard.spec.invariants import INVARIANTS

SEARCHED_TO = 12
REPORTED = {name: planner for name, planner in BROKEN.items() if planner.reported}


def violated(subject: Subject, H: int, P: int, D: int) -> set[str]:
    return {violation.invariant for violation in judge(subject, H, P, D)}


def legal_triples(maximum: int) -> list[tuple[int, int, int]]:
    sizes = range(1, maximum + 1)
    return [
        (H, P, D) for H in sizes for P in sizes for D in sizes if is_legal(H, P) and is_legal(H, D)
    ]


@pytest.mark.parametrize("name", BROKEN)
def test_a_planner_breaks_exactly_its_invariants(name: str) -> None:
    planner = BROKEN[name]
    found = [violated(planner.subject, *sizes) for sizes in inputs(planner, SEARCHED_TO)]
    assert set().union(*found) == set(planner.invariants)


@pytest.mark.parametrize("name", BROKEN)
def test_the_smallest_failure_shows_the_invariant_named_first(name: str) -> None:
    planner = BROKEN[name]
    smallest = min(
        sizes
        for sizes in legal_triples(SEARCHED_TO)
        if planner.in_domain(*sizes) and violated(planner.subject, *sizes)
    )
    assert planner.invariants[0] in violated(planner.subject, *smallest)
    found = search(planner, SEARCHED_TO)
    assert found.failing[0] == smallest
    assert found.tried == sum(planner.in_domain(*sizes) for sizes in legal_triples(SEARCHED_TO))


@pytest.mark.parametrize("name", REPORTED)
def test_the_reported_input_shows_the_invariant_named_first(name: str) -> None:
    planner = REPORTED[name]
    assert planner.reported is not None
    H, P, D = planner.reported
    assert is_legal(H, P)
    assert is_legal(H, D)
    assert planner.in_domain(H, P, D)
    found = violated(planner.subject, H, P, D)
    assert planner.invariants[0] in found
    assert found <= set(planner.invariants)


def test_the_entries_are_well_formed() -> None:
    assert len(BROKEN) >= 30
    for name, planner in BROKEN.items():
        assert planner.name == name
        assert re.fullmatch(r"[a-z][a-z0-9_]*", name)
        assert planner.sentence.endswith(".")
        assert len(set(planner.invariants)) == len(planner.invariants) >= 1
        assert planner.bytes_per_head >= 1
        assert planner.domain
        assert planner.seen_in or planner.reported is None


def test_the_names_of_the_invariants_are_the_specifications() -> None:
    listed = {value for key, value in vars(names).items() if key.isupper()}
    assert listed == set(INVARIANTS)


def test_every_invariant_is_what_some_planner_breaks_first() -> None:
    assert {planner.invariants[0] for planner in BROKEN.values()} == set(INVARIANTS)


def test_the_right_planner_breaks_nothing() -> None:
    triples = legal_triples(SEARCHED_TO)
    assert len(triples) > 300
    assert [sizes for sizes in triples if violated(RIGHT, *sizes)] == []


def sends(name: str, H: int, P: int, D: int) -> dict[tuple[int, int], Copy]:
    plan = BROKEN[name].subject.plan
    copies = {(p, d): plan(H, P, p, D, d) for p in range(P) for d in range(D)}
    return {pair: copy for pair, copy in copies.items() if copy.sends}


# What the reports say of each fault.


def test_vllm_52516_is_wrong_for_86_of_376_inputs_up_to_16() -> None:
    """60 have P <= H < D and would fail the length check first; 26 have P > H > D."""
    divisible = [one for one in legal_triples(16) if one[1] % one[2] == 0 or one[2] % one[1] == 0]
    wrong = [one for one in divisible if violated(planner_of(by_ratio), *one)]
    assert (len(divisible), len(wrong)) == (376, 86)
    assert sum(P <= H < D for H, P, D in wrong) == 60
    assert sum(P > H > D for H, P, D in wrong) == 26


def test_vllm_52516_sends_one_of_four_heads() -> None:
    assert sends("the_lowest_rank_alone_sends", 4, 8, 1) == {(0, 0): Copy(True, 0, 0, 1)}


def test_vllm_52516_reads_a_head_for_each_rank() -> None:
    copies = sends("the_source_offset_follows_the_tp_ratio", 4, 1, 8)
    assert [copies[0, d].src_head_offset for d in range(8)] == list(range(8))


@pytest.mark.parametrize(("sizes", "lengths"), [((8, 8, 16), (4096, 4096)), ((4, 2, 8), (2, 1))])
def test_vllm_45330_refuses_lengths_that_fit(
    sizes: tuple[int, int, int], lengths: tuple[int, int]
) -> None:
    broken = BROKEN["region_lengths_are_taken_to_scale_with_tp"].subject
    assert not broken.accepts(*sizes, *lengths)
    assert RIGHT.accepts(*sizes, *lengths)


def test_the_product_of_3_and_6_bytes_for_2_and_4_heads_is_refused() -> None:
    """The lengths are in the ratio of the heads, and 3 bytes are not two heads."""
    assert BROKEN["region_lengths_are_compared_by_their_product"].subject.accepts(4, 2, 1, 3, 6)
    assert not RIGHT.accepts(4, 2, 1, 3, 6)


def test_sglang_19086_takes_two_heads_for_four() -> None:
    copies = sends("the_head_count_is_rebuilt_from_local_heads", 2, 4, 1)
    assert {p: copy.dst_head_offset for (p, _), copy in copies.items()} == {0: 0, 1: 1, 2: 2, 3: 3}


def test_sglang_23746_gives_the_consumers_heads_0_1_0_1() -> None:
    copies = sends("consumer_heads_are_taken_modulo", 2, 1, 4)
    assert [copies[0, d].src_head_offset for d in range(4)] == [0, 1, 0, 1]


def test_sglang_31295_lists_twice_as_many_slices_as_the_block_has() -> None:
    copies = sends("each_consumer_has_a_source_slice_of_its_own", 2, 1, 4)
    assert [copies[0, d].src_head_offset for d in range(4)] == [0, 1, 2, 3]


def test_all_replicas_send() -> None:
    assert sorted(sends("every_replica_sends", 2, 4, 1)) == [(0, 0), (1, 0), (2, 0), (3, 0)]


def test_an_indivisible_pair_leaves_out_a_producer_or_writes_over_itself() -> None:
    down = sends("an_indivisible_ratio_is_rounded_down", 6, 3, 2)
    assert {p for p, _ in down} == {0, 1}
    up = sends("an_indivisible_ratio_is_rounded_up", 6, 3, 2)
    assert up[0, 0] == Copy(True, 0, 0, 2)
    assert up[1, 0] == Copy(True, 0, 1, 2)


def test_vllm_ascend_11885_copies_one_head_of_eight() -> None:
    copies = sends("local_heads_are_taken_as_the_models", 16, 8, 2)
    assert {pair: copy.head_count for pair, copy in copies.items()} == {(0, 0): 1, (4, 1): 1}


def test_vllm_ascend_5846_leaves_consumers_without_a_head() -> None:
    served = {d for _, d in sends("only_one_consumer_of_a_head_is_served", 2, 1, 8)}
    assert served == {0, 4}
