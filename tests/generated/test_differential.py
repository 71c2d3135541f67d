# SPDX-License-Identifier: Apache-2.0
"""Specification = emitted module = brute force: every legal triple up to 32, and large ones.

Brute force lists heads. The specification's values come from z3 for what concerns one group, and
for pairs from a walk over the z3 expressions, which a test here ties to z3.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from brute_force import Groups, heads_of, holders_of, is_legal, legal_groups, legal_sizes
from hypothesis import given, settings
from hypothesis import strategies as st
from spec_values import by_walking, by_z3

from kvreshard.generated import planner as emitted
from kvreshard.spec import election, ownership
from kvreshard.spec import planner as spec

UP_TO = 32
EVERY_H = range(1, UP_TO + 1)


def plan(groups: Groups, elected_by: str, producer: int, consumer: int) -> emitted.TransferPlan:
    return emitted.plan_transfer(
        total_num_kv_heads=groups.heads,
        producer_tp_size=groups.producers,
        producer_tp_rank=producer,
        consumer_tp_size=groups.consumers,
        consumer_tp_rank=consumer,
        election=elected_by,
    )


def senders(groups: Groups, elected_by: str, consumer: int) -> tuple[int, ...]:
    return emitted.expected_senders(
        total_num_kv_heads=groups.heads,
        producer_tp_size=groups.producers,
        consumer_tp_size=groups.consumers,
        consumer_tp_rank=consumer,
        election=elected_by,
    )


def receivers(groups: Groups, elected_by: str, producer: int) -> tuple[int, ...]:
    return emitted.expected_receivers(
        total_num_kv_heads=groups.heads,
        producer_tp_size=groups.producers,
        producer_tp_rank=producer,
        consumer_tp_size=groups.consumers,
        election=elected_by,
    )


def every_case(heads: int, elected_by: str) -> npt.NDArray[np.int64]:
    """Return (P, p, D, d) for each pair of ranks of each pair of legal groups up to 32."""
    cases = [
        (groups.producers, producer, groups.consumers, consumer)
        for groups in legal_groups(heads, UP_TO)
        if elected_by in groups.elections
        for producer in range(groups.producers)
        for consumer in range(groups.consumers)
    ]
    return np.array(cases, dtype=np.int64)


def specified(heads: int, policy: election.Policy, cases: npt.NDArray[np.int64]) -> Any:
    """Return the plans that the specification gives, one a row."""
    H = np.array(heads, dtype=np.int64)
    P, p, D, d = cases.T
    sends = by_walking(spec.sends, H, P, p, D, d, by_walking(policy.elect, H, P, D, d))
    numbers = [
        np.where(sends, by_walking(made, H, P, p, D, d), 0)
        for made in (spec.src_head_offset, spec.dst_head_offset, spec.copied_head_count)
    ]
    return np.column_stack([sends, *numbers])


def listed(heads: int, elected_by: str, cases: npt.NDArray[np.int64]) -> Any:
    """Return the plans that listing heads gives, one a row."""
    plans = []
    nothing = (False, 0, 0, 0)
    groups, senders_of = None, {}
    for P, p, D, d in cases.tolist():
        if groups is None or (groups.producers, groups.consumers) != (P, D):
            groups = Groups(heads, P, D)
            senders_of = {rank: groups.senders(elected_by, rank) for rank in range(D)}
        plans.append(groups.plan(elected_by, p, d) if p in senders_of[d] else nothing)
    return np.array(plans, dtype=np.int64)


@pytest.mark.parametrize("policy", election.POLICIES, ids=lambda policy: policy.name)
@pytest.mark.parametrize("heads", EVERY_H)
def test_every_plan_up_to_32_is_what_the_spec_and_what_listing_heads_gives(
    heads: int, policy: election.Policy
) -> None:
    cases = every_case(heads, policy.name)
    found = np.array(
        [
            emitted.plan_transfer(
                total_num_kv_heads=heads,
                producer_tp_size=P,
                producer_tp_rank=p,
                consumer_tp_size=D,
                consumer_tp_rank=d,
                election=policy.name,
            )
            for P, p, D, d in cases.tolist()
        ],
        dtype=np.int64,
    )
    assert np.array_equal(found, specified(heads, policy, cases))
    assert np.array_equal(found, listed(heads, policy.name, cases))


@pytest.mark.parametrize("heads", EVERY_H)
def test_every_list_of_peers_up_to_32_is_what_listing_heads_gives(heads: int) -> None:
    for groups in legal_groups(heads, UP_TO):
        for elected_by in groups.elections:
            waits_for = [
                senders(groups, elected_by, consumer) for consumer in range(groups.consumers)
            ]
            assert waits_for == [
                groups.senders(elected_by, consumer) for consumer in range(groups.consumers)
            ]
            for producer in range(groups.producers):
                assert receivers(groups, elected_by, producer) == tuple(
                    consumer for consumer, ranks in enumerate(waits_for) if producer in ranks
                )


@pytest.mark.parametrize("heads", EVERY_H)
def test_every_group_up_to_32_is_what_z3_gives(heads: int) -> None:
    for size in range(1, UP_TO + 1):
        legal = by_z3(ownership.group_is_legal, heads, size)
        assert emitted.group_is_legal(heads, size) == legal == is_legal(heads, size)
    for size in legal_sizes(heads, UP_TO):
        count = by_z3(ownership.head_count, heads, size)
        replicas = by_z3(ownership.replica_count, heads, size)
        assert emitted.head_count(heads, size) == count
        assert emitted.replica_count(heads, size) == replicas
        for rank in range(size):
            first = by_z3(ownership.first_head, heads, size, rank)
            ordinal = by_z3(ownership.replica_ordinal, heads, size, rank)
            assert emitted.first_head(heads, size, rank) == first
            assert emitted.replica_ordinal(heads, size, rank) == ordinal
            held = heads_of(heads, size, rank)
            assert held == tuple(range(first, first + count))
            assert all(holders_of(heads, size, head).index(rank) == ordinal for head in held)
            assert all(len(holders_of(heads, size, head)) == replicas for head in held)


@st.composite
def groups_and_ranks(draw: st.DrawFn, most: int) -> tuple[Groups, int, int]:
    """Draw two legal groups, often with sizes that do not divide each other, and ranks."""
    factors = [draw(st.integers(1, most)) for _ in range(3)]
    heads = factors[0] * factors[1] * factors[2]
    divisors = (1, *factors, factors[0] * factors[1], factors[1] * factors[2], heads)

    def size() -> int:
        if draw(st.booleans()):
            return draw(st.sampled_from(divisors))
        return heads * draw(st.integers(1, most))

    groups = Groups(heads, size(), size())
    return (
        groups,
        draw(st.integers(0, groups.producers - 1)),
        draw(st.integers(0, groups.consumers - 1)),
    )


PAIR_FORMULAS = (
    spec.overlap_start,
    spec.overlap_end,
    spec.src_head_offset,
    spec.dst_head_offset,
    spec.copied_head_count,
)


@settings(max_examples=60, deadline=None)
@given(groups_and_ranks(10**4))
def test_large_plans_are_what_z3_gives(drawn: tuple[Groups, int, int]) -> None:
    groups, p, d = drawn
    fixed = (groups.heads, groups.producers, groups.consumers)
    pair = (groups.heads, groups.producers, p, groups.consumers, d)
    numbers = [by_z3(made, *pair) for made in PAIR_FORMULAS]
    assert numbers == [getattr(emitted, made.name)(*pair) for made in PAIR_FORMULAS]
    for policy in election.POLICIES:
        if policy.name in groups.elections:
            ordinal = by_z3(policy.elect, *fixed, d)
            sends = by_z3(spec.sends, *pair, ordinal)
            right = (True, *numbers[2:]) if sends else (False, 0, 0, 0)
            assert plan(groups, policy.name, p, d) == right
            for made in (spec.first_sender, spec.last_sender):
                rank = by_z3(made, *fixed, d, ordinal)
                assert getattr(emitted, made.name)(*fixed, d, ordinal) == rank
    for made in (spec.first_receiver_candidate, spec.last_receiver_candidate):
        arguments = (groups.heads, groups.producers, p, groups.consumers)
        assert getattr(emitted, made.name)(*arguments) == by_z3(made, *arguments)


def range_of_senders(groups: Groups, elected_by: str, consumer: int) -> range:
    """Return `expected_senders` as a range, since there may be too many of them to list."""
    fixed = (groups.heads, groups.producers, groups.consumers, consumer)
    ordinal = emitted._ELECTIONS[elected_by](*fixed)
    first, last = emitted.first_sender(*fixed, ordinal), emitted.last_sender(*fixed, ordinal)
    return range(first, last + 1, emitted.replica_count(groups.heads, groups.producers))


@settings(max_examples=100, deadline=None)
@given(groups_and_ranks(10**4), st.sampled_from(["lowest", "spread", "paired"]), st.data())
def test_large_plans_keep_each_head(
    drawn: tuple[Groups, int, int], elected_by: str, data: st.DataObject
) -> None:
    groups, _, d = drawn
    if elected_by not in groups.elections:
        elected_by = "spread"
    ranks = range_of_senders(groups, elected_by, d)
    position = data.draw(st.integers(0, len(ranks) - 1))
    p = ranks[position]
    found = plan(groups, elected_by, p, d)
    assert found.sends
    source = p * groups.heads // groups.producers + found.src_head_offset
    target = d * groups.heads // groups.consumers + found.dst_head_offset
    assert source == target
    if position == 0:
        assert found.dst_head_offset == 0
    if position == len(ranks) - 1:
        held = max(groups.heads // groups.consumers, 1)
        assert found.dst_head_offset + found.head_count == held


@settings(max_examples=100, deadline=None)
@given(groups_and_ranks(12))
def test_walking_an_expression_gives_what_z3_gives(drawn: tuple[Groups, int, int]) -> None:
    groups, p, d = drawn
    arguments = (groups.heads, groups.producers, p, groups.consumers, d)
    for made in PAIR_FORMULAS:
        walked = by_walking(made, *(np.array([argument]) for argument in arguments))
        assert int(np.broadcast_to(walked, (1,))[0]) == by_z3(made, *arguments)


@settings(max_examples=100, deadline=None)
@given(groups_and_ranks(10**4), st.integers(1, 10**6), st.integers(-3, 3), st.integers(-3, 3))
def test_lengths_are_accepted_exactly_where_z3_accepts_them(
    drawn: tuple[Groups, int, int], bytes_per_head: int, more_p: int, more_d: int
) -> None:
    groups, _, _ = drawn
    held = [max(groups.heads // size, 1) for size in (groups.producers, groups.consumers)]
    lengths = held[0] * bytes_per_head + more_p, held[1] * bytes_per_head + more_d
    arguments = (groups.heads, groups.producers, groups.consumers, *lengths)
    right = (
        lengths[0] >= 1
        and lengths[1] >= 1
        and lengths[0] % held[0] == 0
        and lengths[1] % held[1] == 0
        and lengths[0] // held[0] == lengths[1] // held[1]
    )
    assert emitted.region_lengths_match(*arguments) == right
    assert by_z3(spec.region_lengths_match, *arguments) == right
