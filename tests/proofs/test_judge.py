# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import broken_planners as broken
import pytest
from spec_mutants import CONTENT, COVERED, HOLDER, LENGTHS, OVERLAP, PEERS, READ, WRITE

from kvreshard.proofs.counterexample import enumerate_planner, specified
from kvreshard.proofs.judge import Copy, Subject, Violation, held_heads, is_legal, judge
from kvreshard.spec.election import POLICIES, Policy
from kvreshard.spec.invariants import INVARIANTS

# A planner, the sizes it is judged at, and every invariant that it breaks there.
CASES = {
    "vllm_52516_ratio_of_replicas": (broken.RATIO, (4, 8, 1), {COVERED}),
    "vllm_52516_ratio_of_an_indivisible_pair": (
        broken.RATIO,
        (6, 3, 2),
        {COVERED, CONTENT, HOLDER},
    ),
    "sglang_23746_modulo_head_map": (broken.MODULO, (2, 1, 4), {CONTENT}),
    "heads_rebuilt_from_the_local_ones": (
        broken.REBUILT,
        (2, 4, 1),
        {WRITE, CONTENT, HOLDER},
    ),
    "every_replica_sends": (broken.EVERY_REPLICA, (2, 4, 1), {COVERED, OVERLAP}),
    "a_read_past_the_block": (broken.READS_PAST_THE_BLOCK, (2, 1, 1), {READ, CONTENT}),
    "a_read_before_the_block": (broken.READS_BEFORE_THE_BLOCK, (2, 1, 1), {READ, CONTENT}),
    "a_write_past_the_block": (broken.WRITES_PAST_THE_BLOCK, (2, 1, 1), {WRITE, COVERED, CONTENT}),
    "a_head_too_many": (broken.COPIES_TOO_MUCH, (1, 1, 1), {READ, WRITE}),
    "a_copy_of_zero_heads": (broken.COPIES_NOTHING, (2, 2, 2), {HOLDER}),
    "a_rank_that_lacks_the_head": (broken.WRONG_RANK, (2, 2, 2), {HOLDER, CONTENT}),
    "it_waits_for_ranks_that_stay_silent": (broken.WAITS_FOR_ALL, (1, 2, 1), {PEERS}),
    "it_waits_for_nobody": (broken.WAITS_FOR_NONE, (1, 1, 1), {PEERS}),
    "it_waits_for_a_rank_twice": (broken.WAITS_TWICE, (1, 1, 1), {PEERS}),
    "it_counts_consumers_that_get_nothing": (broken.COUNTS_ALL_CONSUMERS, (2, 2, 2), {PEERS}),
    "the_product_of_lengths_alone": (broken.LENGTHS_BY_PRODUCT, (4, 2, 1), {LENGTHS}),
    "any_lengths": (broken.LENGTHS_UNCHECKED, (1, 1, 1), {LENGTHS}),
    "no_lengths": (broken.LENGTHS_REFUSED, (1, 1, 1), {LENGTHS}),
}


def found_at(subject: Subject, H: int, P: int, D: int) -> list[Violation]:
    return list(judge(subject, H, P, D))


@pytest.mark.parametrize("case", CASES)
def test_a_broken_planner_is_charged_with_what_it_breaks_and_no_more(case: str) -> None:
    subject, sizes, invariants = CASES[case]
    assert {violation.invariant for violation in found_at(subject, *sizes)} == invariants


def test_every_invariant_is_named_for_some_planner() -> None:
    assert set().union(*(invariants for *_, invariants in CASES.values())) == set(INVARIANTS)


@pytest.mark.parametrize("policy", POLICIES, ids=lambda policy: policy.name)
def test_nothing_is_wrong_with_the_specified_plan(policy: Policy) -> None:
    subject = specified(policy)
    judged = 0
    for H in range(1, 9):
        sizes = [size for size in range(1, 9) if H % size == 0 or size % H == 0]
        for P in sizes:
            for D in sizes:
                if policy.needs_divisible_pair and P % D and D % P:
                    continue
                judged += 1
                assert found_at(subject, H, P, D) == []
    assert judged > 100


def test_nothing_is_wrong_with_a_right_plan_written_by_hand() -> None:
    judged, found = enumerate_planner(lambda _: broken.RIGHT, 6)
    legal = {
        H: [size for size in range(1, 7) if H % size == 0 or size % H == 0] for H in range(1, 7)
    }
    pairs = [(P, D) for sizes in legal.values() for P in sizes for D in sizes]
    divisible = [(P, D) for P, D in pairs if P % D == 0 or D % P == 0]
    assert judged == 2 * len(pairs) + len(divisible)  # `paired` is for divisible pairs alone
    assert found == []


def test_all_violations_of_a_planner_are_listed_with_the_election() -> None:
    judged, found = enumerate_planner(lambda _: broken.WAITS_FOR_NONE, 1)
    assert judged == len(found) == len(POLICIES)
    assert [one.election for one in found] == [policy.name for policy in POLICIES]


def test_a_planner_that_raises_covers_nothing() -> None:
    def plan(H: int, P: int, p: int, D: int, d: int) -> Copy:  # noqa: ARG001 - as Subject.plan
        return Copy(True, 0, 0, H // (p + d))

    _, found = enumerate_planner(lambda _: broken.subject(plan), 1)
    assert {(one.violation.invariant, one.violation.seen) for one in found} == {
        (
            COVERED,
            "the planner raises ZeroDivisionError: integer division or modulo by zero",
        )
    }


def test_only_rank_0_of_the_ratio_plan_sends() -> None:
    first, *others = (
        violation for violation in found_at(broken.RATIO, 4, 8, 1) if violation.invariant == COVERED
    )
    assert first.seen == "head 1 of consumer rank 0 is written by no producer rank"
    assert len(others) == 2
    assert first.heads == ((0, ((0, 0),)), (1, ()), (2, ()), (3, ()))


def test_the_modulo_head_map_sends_heads_0_1_0_1() -> None:
    heads = [broken.by_modulo(2, 1, 0, 4, d).src_head_offset for d in range(4)]
    assert heads == [0, 1, 0, 1]
    assert [(one.consumer_tp_rank, one.seen) for one in found_at(broken.MODULO, 2, 1, 4)] == [
        (1, "producer rank 0 writes head 1 to the slot of head 0"),
        (2, "producer rank 0 writes head 0 to the slot of head 1"),
    ]


def test_the_product_of_3_and_6_bytes_for_2_and_4_heads_is_refused() -> None:
    assert broken.LENGTHS_BY_PRODUCT.accepts(4, 2, 1, 3, 6)
    assert "lengths of 3 and 6 bytes are accepted; the ranks hold 2 and 4 heads" in [
        one.seen for one in found_at(broken.LENGTHS_BY_PRODUCT, 4, 2, 1)
    ]


def test_both_writers_of_a_head_and_of_its_slot_are_named() -> None:
    seen = [one.seen for one in found_at(broken.EVERY_REPLICA, 2, 4, 1)]
    assert seen == [
        "head 0 of consumer rank 0 is written by producer ranks [0, 1]",
        "head slot 0 of consumer rank 0 is written by producer ranks [0, 1]",
        "head 1 of consumer rank 0 is written by producer ranks [2, 3]",
        "head slot 1 of consumer rank 0 is written by producer ranks [2, 3]",
    ]


def test_peers_are_told_from_both_sides() -> None:
    assert [one.seen for one in found_at(broken.WAITS_FOR_ALL, 1, 2, 1)] == [
        "consumer rank 0 waits for [0, 1], but [0] send to it"
    ]
    assert [one.seen for one in found_at(broken.COUNTS_ALL_CONSUMERS, 2, 2, 2)] == [
        "producer rank 0 counts on [0, 1], but sends to [0]",
        "producer rank 1 counts on [0, 1], but sends to [1]",
    ]


@pytest.mark.parametrize(
    ("sizes", "heads"),
    [
        ((4, 2), [(0, 1), (2, 3)]),
        ((2, 4), [(0,), (0,), (1,), (1,)]),
        ((6, 3), [(0, 1), (2, 3), (4, 5)]),
        ((1, 3), [(0,), (0,), (0,)]),
    ],
)
def test_ownership_by_equal_shares(sizes: tuple[int, int], heads: list[tuple[int, ...]]) -> None:
    assert is_legal(*sizes)
    assert [held_heads(*sizes, rank) for rank in range(sizes[1])] == heads


def test_sizes_that_do_not_divide_are_illegal() -> None:
    assert not is_legal(4, 3)
    assert not is_legal(4, 6)
