# SPDX-License-Identifier: Apache-2.0
"""The module over arrays plans what the one over Python's integers plans, or refuses."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pytest
from brute_force import legal_groups
from hypothesis import given, settings
from hypothesis import strategies as st

from kvreshard.generated import planner, planner_numpy
from kvreshard.spec.election import POLICIES
from kvreshard.spec.int64 import HEADS_EXPONENT, REGION_BYTES_EXPONENT, TP_SIZE_EXPONENT

UP_TO = 24
HEADS, TP_SIZE = 2**HEADS_EXPONENT, 2**TP_SIZE_EXPONENT
REGION_BYTES = 2**REGION_BYTES_EXPONENT


def scalar_plan(groups: dict[str, int], producer: int, consumer: int, election: str) -> Any:
    return planner.plan_transfer(
        **groups, producer_tp_rank=producer, consumer_tp_rank=consumer, election=election
    )


def as_tuples(plans: planner_numpy.TransferPlans) -> list[tuple[bool, int, int, int]]:
    assert plans.sends.dtype == np.bool_
    assert {column.dtype for column in plans[1:]} == {np.dtype(np.int64)}
    return list(zip(*(column.ravel().tolist() for column in plans), strict=True))


@pytest.mark.parametrize("policy", [policy.name for policy in POLICIES])
@pytest.mark.parametrize("heads", range(1, UP_TO + 1))
def test_every_matrix_and_range_up_to_24_is_what_the_scalar_module_gives(
    heads: int, policy: str
) -> None:
    for case in legal_groups(heads, UP_TO):
        if policy not in case.elections:
            continue
        groups = {
            "total_num_kv_heads": heads,
            "producer_tp_size": case.producers,
            "consumer_tp_size": case.consumers,
        }
        plans = planner_numpy.transfer_matrix(**groups, election=policy)
        assert {column.shape for column in plans} == {(case.producers, case.consumers)}
        assert as_tuples(plans) == [
            tuple(scalar_plan(groups, producer, consumer, policy))
            for producer in range(case.producers)
            for consumer in range(case.consumers)
        ]
        ranges = planner_numpy.sender_ranges(
            **groups, consumer_tp_rank=np.arange(case.consumers), election=policy
        )
        assert {column.shape for column in ranges} == {(case.consumers,)}
        for consumer, (first, last, step) in enumerate(
            zip(*(column.tolist() for column in ranges), strict=True)
        ):
            listed = planner.expected_senders(**groups, consumer_tp_rank=consumer, election=policy)
            assert tuple(range(first, last + 1, step)) == listed
            assert tuple(np.flatnonzero(plans.sends[:, consumer])) == listed


@pytest.mark.parametrize("policy", ["lowest", "spread"])
def test_arrays_of_different_groups_broadcast(policy: str) -> None:
    cases = [
        (case.heads, case.producers, producer, case.consumers, consumer)
        for heads in range(1, 9)
        for case in legal_groups(heads, 8)
        for producer in range(case.producers)
        for consumer in range(case.consumers)
    ]
    H, P, p, D, d = np.array(cases).T
    plans = planner_numpy.plan_transfer(
        total_num_kv_heads=H,
        producer_tp_size=P,
        producer_tp_rank=p,
        consumer_tp_size=D,
        consumer_tp_rank=d,
        election=policy,
    )
    assert as_tuples(plans) == [
        tuple(
            scalar_plan(
                {
                    "total_num_kv_heads": heads,
                    "producer_tp_size": producers,
                    "consumer_tp_size": consumers,
                },
                producer,
                consumer,
                policy,
            )
        )
        for heads, producers, producer, consumers, consumer in cases
    ]
    assert plans.sends.any()
    assert not plans.sends.all()


def test_one_integer_each_gives_arrays_without_axes() -> None:
    groups: dict[str, Any] = {
        "total_num_kv_heads": 4,
        "producer_tp_size": 8,
        "consumer_tp_size": 1,
    }
    plans = planner_numpy.plan_transfer(**groups, producer_tp_rank=2, consumer_tp_rank=0)
    assert as_tuples(plans) == [(True, 0, 1, 1)]
    ranges = planner_numpy.sender_ranges(**groups, consumer_tp_rank=0)
    valid = planner_numpy.region_lengths_are_valid(
        **groups, producer_region_bytes=65536, consumer_region_bytes=262144
    )
    assert all(isinstance(one, np.ndarray) and one.shape == () for one in (*plans, *ranges, valid))
    assert [int(column) for column in ranges] == [0, 6, 2]
    assert valid


def test_no_elements_give_no_plans() -> None:
    plans = planner_numpy.plan_transfer(
        total_num_kv_heads=4,
        producer_tp_size=8,
        producer_tp_rank=np.array([], np.int64),
        consumer_tp_size=1,
        consumer_tp_rank=0,
    )
    assert {column.shape for column in plans} == {(0,)}


@pytest.mark.parametrize(("empty", "shape"), [([], (0,)), ((), (0,)), ([[], []], (2, 0))])
def test_an_empty_list_is_one_of_integers(empty: Any, shape: tuple[int, ...]) -> None:
    groups: dict[str, Any] = {"producer_tp_size": 8, "consumer_tp_size": 1}
    for plans in (
        planner_numpy.plan_transfer(
            total_num_kv_heads=4, **groups, producer_tp_rank=empty, consumer_tp_rank=0
        ),
        planner_numpy.plan_transfer(
            total_num_kv_heads=empty, **groups, producer_tp_rank=0, consumer_tp_rank=empty
        ),
    ):
        assert {column.shape for column in plans} == {shape}
        assert as_tuples(plans) == []
    ranges = planner_numpy.sender_ranges(total_num_kv_heads=4, **groups, consumer_tp_rank=empty)
    assert {(column.shape, column.dtype) for column in ranges} == {(shape, np.dtype(np.int64))}
    valid = planner_numpy.region_lengths_are_valid(
        total_num_kv_heads=4, **groups, producer_region_bytes=empty, consumer_region_bytes=4
    )
    assert (valid.shape, valid.dtype) == (shape, np.dtype(np.bool_))


def test_a_rank_of_no_group_has_to_fit_all_the_same() -> None:
    for rank in (2**63, 2**70):
        assert refusal(ARGUMENTS | {"consumer_tp_size": [], "consumer_tp_rank": rank}) == (
            f"ValueError: consumer_tp_rank={rank} is not legal in 64-bit arrays; "
            "legal: 0 to 2147483647"
        )


def test_what_is_returned_can_be_written_to() -> None:
    groups: dict[str, Any] = {
        "total_num_kv_heads": 4,
        "producer_tp_size": 8,
        "consumer_tp_size": 2,
    }
    ranges = planner_numpy.sender_ranges(**groups, consumer_tp_rank=[0, 1])
    for column in (*planner_numpy.transfer_matrix(**groups), *ranges):
        column[...] = 0
        assert not column.any()


# Up to the bounds and at them.


@st.composite
def large_groups(draw: st.DrawFn) -> dict[str, int]:
    """Draw two legal groups whose sizes are often the largest that are legal."""
    exponents = st.integers(0, HEADS_EXPONENT)
    heads = draw(st.one_of(st.integers(1, HEADS), exponents.map(lambda bits: 2**bits)))
    divisors = [size for size in range(1, 65) if heads % size == 0]
    divisors += [heads // size for size in divisors]

    def size() -> int:
        multiple = draw(st.one_of(st.integers(1, TP_SIZE // heads), st.just(TP_SIZE // heads)))
        chosen: int = draw(st.one_of(st.sampled_from(divisors), st.just(heads * multiple)))
        return chosen

    return {"total_num_kv_heads": heads, "producer_tp_size": size(), "consumer_tp_size": size()}


def ranks(size: int) -> st.SearchStrategy[int]:
    return st.one_of(st.integers(0, size - 1), st.just(size - 1))


@given(large_groups(), st.data())
@settings(max_examples=300, deadline=None)
def test_large_plans_are_what_the_scalar_module_gives(
    groups: dict[str, int], data: st.DataObject
) -> None:
    P, D = groups["producer_tp_size"], groups["consumer_tp_size"]
    consumers = data.draw(st.lists(ranks(D), min_size=1, max_size=4))
    for policy in POLICIES:
        if policy.needs_divisible_pair and not planner.pair_is_divisible(P, D):
            continue
        ranges = planner_numpy.sender_ranges(
            **groups, consumer_tp_rank=consumers, election=policy.name
        )
        # Senders among the ranks that are tried, or few of them would send.
        producers = [data.draw(ranks(P)), *map(int, ranges.first), *map(int, ranges.last)]
        plans = planner_numpy.plan_transfer(
            **groups,
            producer_tp_rank=np.array(producers)[:, None],
            consumer_tp_rank=consumers,
            election=policy.name,
        )
        assert as_tuples(plans) == [
            tuple(scalar_plan(groups, producer, consumer, policy.name))
            for producer in producers
            for consumer in consumers
        ]
        assert plans.sends.any(axis=0).all()


@given(large_groups(), st.data())
@settings(max_examples=300, deadline=None)
def test_large_lengths_are_valid_where_the_scalar_module_accepts_them(
    groups: dict[str, int], data: st.DataObject
) -> None:
    H, P, D = groups.values()
    held = planner.head_count(H, P), planner.head_count(H, D)
    most = REGION_BYTES // max(held)
    per_head = data.draw(st.one_of(st.integers(1, most), st.just(most)))
    lengths = st.integers(-REGION_BYTES, REGION_BYTES)
    producer_bytes = [held[0] * per_head, data.draw(lengths), REGION_BYTES, -REGION_BYTES, 0]
    consumer_bytes = [held[1] * per_head, data.draw(lengths), REGION_BYTES, -REGION_BYTES, 0]
    valid = planner_numpy.region_lengths_are_valid(
        **groups,
        producer_region_bytes=np.array(producer_bytes)[:, None],
        consumer_region_bytes=consumer_bytes,
    )
    assert valid.dtype == np.bool_
    assert valid.tolist() == [
        [planner.region_lengths_match(H, P, D, left, right) for right in consumer_bytes]
        for left in producer_bytes
    ]
    assert valid[0, 0]


def test_at_the_bounds_the_largest_products_are_right() -> None:
    groups = {
        "total_num_kv_heads": HEADS,
        "producer_tp_size": TP_SIZE,
        "consumer_tp_size": TP_SIZE,
    }
    for policy in POLICIES:
        plans = planner_numpy.plan_transfer(
            **groups,
            producer_tp_rank=[TP_SIZE - 1, TP_SIZE - 2048],
            consumer_tp_rank=TP_SIZE - 1,
            election=policy.name,
        )
        assert as_tuples(plans) == [
            tuple(scalar_plan(groups, rank, TP_SIZE - 1, policy.name))
            for rank in (TP_SIZE - 1, TP_SIZE - 2048)
        ]
        assert plans.sends.any()
    valid = planner_numpy.region_lengths_are_valid(
        total_num_kv_heads=HEADS,
        producer_tp_size=1,
        consumer_tp_size=1,
        producer_region_bytes=[REGION_BYTES, -REGION_BYTES],
        consumer_region_bytes=[[REGION_BYTES], [-REGION_BYTES]],
    )
    assert valid.tolist() == [[True, False], [False, False]]


# What lies beyond the bounds really wraps.


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        # Products of heads and bytes that differ by 2**64.
        ("region_lengths_match", (16 * HEADS, 1, 1, 2**40 + 16 * HEADS, 16 * HEADS)),
        ("region_lengths_match", (HEADS, 1, 1, 4 * REGION_BYTES + HEADS, HEADS)),
        # The last rank of a group whose heads and ranks multiply to 2**64.
        ("first_head", (HEADS, 2**44, 2**44 - 1)),
        ("elect_paired", (1, 3 * TP_SIZE, 3 * TP_SIZE, 3 * TP_SIZE - 1)),
    ],
)
def test_beyond_a_bound_arrays_go_wrong_where_integers_do_not(
    name: str, arguments: tuple[int, ...]
) -> None:
    arrays = (np.array([argument], np.int64) for argument in arguments)
    (wrapped,) = getattr(planner_numpy, name)(*arrays).tolist()
    assert wrapped != getattr(planner, name)(*arguments)


ARGUMENTS: dict[str, Any] = {
    "total_num_kv_heads": HEADS,
    "producer_tp_size": TP_SIZE,
    "producer_tp_rank": 0,
    "consumer_tp_size": TP_SIZE,
    "consumer_tp_rank": 0,
}
LENGTHS: dict[str, Any] = {
    "total_num_kv_heads": HEADS,
    "producer_tp_size": HEADS,
    "consumer_tp_size": HEADS,
    "producer_region_bytes": REGION_BYTES,
    "consumer_region_bytes": REGION_BYTES,
}
BOUNDS = {
    "total_num_kv_heads": "1 to 1048576",
    "producer_tp_size": "1 to 2147483648",
    "consumer_tp_size": "1 to 2147483648",
    "producer_region_bytes": "-4398046511104 to 4398046511104",
    "consumer_region_bytes": "-4398046511104 to 4398046511104",
}
FIELDS = list(ARGUMENTS | LENGTHS)


def call(arguments: dict[str, Any]) -> Any:
    if "producer_region_bytes" in arguments:
        return planner_numpy.region_lengths_are_valid(**arguments)
    return planner_numpy.plan_transfer(**arguments)


def changed(field: str, value: Any) -> dict[str, Any]:
    return (ARGUMENTS if field in ARGUMENTS else LENGTHS) | {field: value}


def refusal(arguments: dict[str, Any]) -> str:
    with pytest.raises((ValueError, TypeError)) as caught:
        call(arguments)
    return f"{caught.type.__name__}: {caught.value}"


def test_the_arguments_that_are_changed_below_are_accepted() -> None:
    assert call(ARGUMENTS).sends
    assert call(LENGTHS)


def told(field: str, value: int) -> str:
    """Return the message for a value that is too small or too large for the field."""
    if "rank" in field:
        why = f" in a group of {TP_SIZE}; legal: 0 <= {field} < {TP_SIZE}"
    elif value < 1 and "region" not in field:
        why = "; legal: 1 or more"
    else:
        why = f" in 64-bit arrays; legal: {BOUNDS[field]}"
    return f"ValueError: {field}={value} is not legal{why}"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ARGUMENTS | {"total_num_kv_heads": 0},
            "total_num_kv_heads=0 is not legal; legal: 1 or more",
        ),
        (
            ARGUMENTS | {"producer_tp_size": -8},
            "producer_tp_size=-8 is not legal; legal: 1 or more",
        ),
        (
            ARGUMENTS | {"consumer_tp_size": HEADS, "consumer_tp_rank": -1},
            (
                "consumer_tp_rank=-1 is not legal in a group of 1048576; "
                "legal: 0 <= consumer_tp_rank < 1048576"
            ),
        ),
        (
            ARGUMENTS | {"producer_tp_size": HEADS, "producer_tp_rank": 2**70},
            (
                "producer_tp_rank=1180591620717411303424 is not legal in a group of 1048576; "
                "legal: 0 <= producer_tp_rank < 1048576"
            ),
        ),
        (
            LENGTHS | {"producer_region_bytes": -(2**43)},
            (
                "producer_region_bytes=-8796093022208 is not legal in 64-bit arrays; "
                "legal: -4398046511104 to 4398046511104"
            ),
        ),
    ],
)
def test_64_bits_are_blamed_only_for_their_own_bounds(
    arguments: dict[str, Any], message: str
) -> None:
    assert refusal(arguments) == f"ValueError: {message}"


def test_what_is_below_the_legal_range_is_told_as_the_scalar_module_tells_it() -> None:
    for field in ARGUMENTS:
        value = -1 if "rank" in field else 0
        with pytest.raises(ValueError, match="is not legal") as caught:
            planner.plan_transfer(**changed(field, value))
        assert refusal(changed(field, [value])) == f"ValueError: {caught.value}"


@pytest.mark.parametrize("field", FIELDS)
def test_one_beyond_a_bound_is_refused_with_the_field_the_value_and_what_is_legal(
    field: str,
) -> None:
    rank_bounds = f"0 to {TP_SIZE - 1}"
    least, most = map(int, BOUNDS.get(field, rank_bounds).split(" to "))
    shapes: list[Any] = [lambda value: value, lambda value: [most, value]]
    shapes += [lambda value: np.array([[value]], np.int64)]
    for beyond in (least - 1, most + 1):
        for shape in shapes:
            assert refusal(changed(field, shape(beyond))) == told(field, beyond)


@pytest.mark.parametrize("field", FIELDS)
@pytest.mark.parametrize("value", [2**63, 2**64 - 1, 2**64, -(2**63) - 1, 2**200])
def test_what_does_not_fit_64_bits_is_refused_not_wrapped(field: str, value: int) -> None:
    expected = told(field, value)
    assert refusal(changed(field, value)) == expected
    assert refusal(changed(field, [value])) == expected
    if 0 <= value < 2**64:
        assert refusal(changed(field, np.array([1, value], np.uint64))) == expected


@pytest.mark.parametrize("field", FIELDS)
@pytest.mark.parametrize(
    ("value", "found"),
    [
        (True, "bool"),
        (np.array([True]), "bool"),
        (1.0, "float64"),
        (np.float32(1), "float32"),
        ([1, 2.5], "float64"),
        ([2**63, -1], "float64"),
        (1j, "complex128"),
        ("1", "<U1"),
        (None, "object"),
        (np.array([2**70, True], object), "bool"),
        (np.array([2**70, np.True_], object), "object"),
        ([1, True], "bool"),
        ((False, 1), "bool"),
        ([[1, 1], [np.int64(1), np.True_]], "bool"),
        ([np.array([1, 1]), np.array([True, True])], "bool"),
        ([2**70, True], "bool"),
        (np.array([1], "m8[s]"), "timedelta64[s]"),
        (np.array([], bool), "bool"),
        (np.array([], "U1"), "<U1"),
    ],
)
def test_what_is_not_made_of_integers_is_refused(field: str, value: Any, found: str) -> None:
    assert refusal(changed(field, value)) == (
        f"TypeError: {field} must be made of integers, got {found}"
    )


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint64])
def test_any_type_of_integers_is_taken_and_computed_in_64_bits(dtype: Any) -> None:
    plans = planner_numpy.plan_transfer(
        total_num_kv_heads=np.array(120, dtype),
        producer_tp_size=np.array([60], dtype),
        producer_tp_rank=np.array([59], dtype),
        consumer_tp_size=np.array([40], dtype),
        consumer_tp_rank=np.array([39], dtype),
    )
    assert as_tuples(plans) == [(True, 0, 1, 2)]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"total_num_kv_heads": [4, 6], "producer_tp_size": [4, 4], "consumer_tp_size": 1},
            (
                "producer_tp_size=4 is not legal for total_num_kv_heads=6; "
                "legal: divisors or multiples of 6"
            ),
        ),
        (
            {"producer_tp_size": 1, "producer_tp_rank": [[0], [1]]},
            "producer_tp_rank=1 is not legal in a group of 1; legal: 0 <= producer_tp_rank < 1",
        ),
        (
            {"consumer_tp_size": [1, 4, 8], "total_num_kv_heads": 4, "consumer_tp_rank": 4},
            "consumer_tp_rank=4 is not legal in a group of 1; legal: 0 <= consumer_tp_rank < 1",
        ),
        (
            {"total_num_kv_heads": 6, "producer_tp_size": [6, 2], "consumer_tp_size": 3}
            | {"election": "paired"},
            (
                "election='paired' is not legal for producer_tp_size=2 and consumer_tp_size=3; "
                "legal: sizes of which one divides the other"
            ),
        ),
        (
            {"election": "highest"},
            "election='highest' is not legal; legal: 'lowest', 'spread', 'paired'",
        ),
        (
            {"producer_tp_size": [1, 1, 1], "total_num_kv_heads": [1, 2]},
            (
                "producer_tp_size of shape (3,) does not broadcast with total_num_kv_heads "
                "of shape (2,)"
            ),
        ),
        (
            {"consumer_tp_size": [1, 1, 1], "consumer_tp_rank": [0, 0]},
            "consumer_tp_rank of shape (2,) does not broadcast with consumer_tp_size of shape (3,)",
        ),
    ],
)
def test_the_first_element_that_is_not_legal_is_named(
    changes: dict[str, Any], message: str
) -> None:
    assert refusal(ARGUMENTS | changes) == f"ValueError: {message}"


@pytest.mark.parametrize("arguments", [ARGUMENTS, LENGTHS], ids=["ranks", "lengths"])
def test_any_two_arguments_that_do_not_broadcast_are_named_with_their_shapes(
    arguments: dict[str, Any],
) -> None:
    for first, second in combinations(arguments, 2):
        shapes = {first: (2,), second: (2, 3)}
        message = refusal(
            arguments | {name: np.full(shape, arguments[name]) for name, shape in shapes.items()}
        )
        assert message in {
            f"ValueError: {one} of shape {shapes[one]} does not broadcast with {other} "
            f"of shape {shapes[other]}"
            for one, other in ((first, second), (second, first))
        }


def test_ranks_and_sizes_that_do_not_broadcast_are_named_for_ranges() -> None:
    with pytest.raises(ValueError, match="broadcast") as caught:
        planner_numpy.sender_ranges(
            total_num_kv_heads=[4, 4],
            producer_tp_size=4,
            consumer_tp_size=4,
            consumer_tp_rank=[0, 0, 0],
        )
    assert str(caught.value) == (
        "consumer_tp_rank of shape (3,) does not broadcast with total_num_kv_heads of shape (2,)"
    )


@pytest.mark.parametrize(
    ("producers", "consumers", "pairs"),
    [
        (2**31, 2**31, 2**62),
        (2**31, 1, 2**31),
        (2**13, 2**13 + 1, 2**26 + 2**13),
        (1, 2**26 + 1, 2**26 + 1),
    ],
)
def test_a_matrix_of_too_many_pairs_is_refused(producers: int, consumers: int, pairs: int) -> None:
    with pytest.raises(ValueError, match="pairs") as caught:
        planner_numpy.transfer_matrix(
            total_num_kv_heads=1, producer_tp_size=producers, consumer_tp_size=consumers
        )
    assert str(caught.value) == (
        f"producer_tp_size={producers} and consumer_tp_size={consumers} are not legal in one "
        f"matrix, of {pairs} pairs of ranks; legal: up to 67108864 pairs"
    )


def test_a_matrix_of_as_many_pairs_as_are_legal_is_planned(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # As many as are legal take too much memory for a test.
    assert planner_numpy._MOST_PAIRS_OF_A_MATRIX == 2**26
    monkeypatch.setattr(planner_numpy, "_MOST_PAIRS_OF_A_MATRIX", 32)
    sizes: dict[str, Any] = {"total_num_kv_heads": 4, "producer_tp_size": 8}
    assert planner_numpy.transfer_matrix(**sizes, consumer_tp_size=4).sends.shape == (8, 4)
    with pytest.raises(ValueError, match="legal: up to 32 pairs"):
        planner_numpy.transfer_matrix(**sizes, consumer_tp_size=8)


@pytest.mark.parametrize("field", ["total_num_kv_heads", "producer_tp_size", "consumer_tp_size"])
def test_a_matrix_is_of_one_pair_of_groups(field: str) -> None:
    groups: dict[str, Any] = dict.fromkeys(
        ("total_num_kv_heads", "producer_tp_size", "consumer_tp_size"), 1
    )
    with pytest.raises(ValueError, match="is not legal here; legal: one integer") as caught:
        planner_numpy.transfer_matrix(**groups | {field: [1]})
    assert str(caught.value).startswith(f"{field} of shape (1,) ")


def test_numpy_is_all_that_is_imported() -> None:
    names = {
        name for name, value in vars(planner_numpy).items() if type(value).__name__ == "module"
    }
    assert names == {"np"}
