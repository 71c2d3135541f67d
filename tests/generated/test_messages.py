# SPDX-License-Identifier: Apache-2.0
"""Illegal input is refused with the field, its value and what is legal: the exact messages."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from kvreshard.generated import planner

PLAN: dict[str, Any] = {
    "total_num_kv_heads": 4,
    "producer_tp_size": 8,
    "producer_tp_rank": 0,
    "consumer_tp_size": 2,
    "consumer_tp_rank": 0,
}
LENGTHS: dict[str, Any] = {
    "total_num_kv_heads": 8,
    "producer_tp_size": 4,
    "consumer_tp_size": 2,
    "producer_region_bytes": 6,
    "consumer_region_bytes": 12,
}
PAIR: dict[str, Any] = {
    "local_tp_rank": 0,
    "local_tp_size": 8,
    "remote_tp_rank": 0,
    "remote_tp_size": 2,
    "local_kv_block_len": 10,
    "remote_kv_block_len": 20,
    "producer_cache_replicated": True,
    "total_num_kv_heads": 4,
}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"total_num_kv_heads": 0}, "total_num_kv_heads=0 is not legal; legal: 1 or more"),
        ({"producer_tp_size": -8}, "producer_tp_size=-8 is not legal; legal: 1 or more"),
        (
            {"total_num_kv_heads": 10, "producer_tp_size": 4},
            (
                "producer_tp_size=4 is not legal for total_num_kv_heads=10; "
                "legal: divisors or multiples of 10, the nearest are 2 and 5"
            ),
        ),
        (
            {"consumer_tp_size": 6},
            (
                "consumer_tp_size=6 is not legal for total_num_kv_heads=4; "
                "legal: divisors or multiples of 4, the nearest are 4 and 8"
            ),
        ),
        (
            {"total_num_kv_heads": 10**12, "producer_tp_size": 3},
            (
                "producer_tp_size=3 is not legal for total_num_kv_heads=1000000000000; "
                "legal: divisors or multiples of 1000000000000"
            ),
        ),
        (
            {"producer_tp_rank": 8},
            "producer_tp_rank=8 is not legal in a group of 8; legal: 0 <= producer_tp_rank < 8",
        ),
        (
            {"consumer_tp_rank": -1},
            "consumer_tp_rank=-1 is not legal in a group of 2; legal: 0 <= consumer_tp_rank < 2",
        ),
        (
            {"election": "highest"},
            "election='highest' is not legal; legal: 'lowest', 'spread', 'paired'",
        ),
        ({"election": None}, "election=None is not legal; legal: 'lowest', 'spread', 'paired'"),
        ({"election": []}, "election=[] is not legal; legal: 'lowest', 'spread', 'paired'"),
        (
            {
                "total_num_kv_heads": 6,
                "producer_tp_size": 3,
                "consumer_tp_size": 2,
                "election": "paired",
            },
            (
                "election='paired' is not legal for producer_tp_size=3 and consumer_tp_size=2; "
                "legal: sizes of which one divides the other"
            ),
        ),
    ],
)
def test_plan_transfer_refuses(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match="legal") as caught:
        planner.plan_transfer(**(PLAN | changes))
    assert str(caught.value) == message


@pytest.mark.parametrize("field", PLAN)
@pytest.mark.parametrize("value", [True, 2.0, "2", None, np.float64(2), np.bool_(True)])
def test_what_is_not_an_integer_is_refused(field: str, value: object) -> None:
    with pytest.raises(TypeError) as caught:
        planner.plan_transfer(**(PLAN | {field: value}))
    assert str(caught.value) == f"{field} must be an integer, got {value!r}"


def test_numpy_integers_are_integers() -> None:
    wrapped: dict[str, Any] = {field: np.int32(value) for field, value in PLAN.items()}
    plan = planner.plan_transfer(**wrapped)
    assert plan == planner.plan_transfer(**PLAN)
    assert [type(value) for value in plan] == [bool, int, int, int]


@pytest.mark.parametrize("function", [planner.expected_senders, planner.expected_receivers])
def test_lists_of_peers_refuse_what_plans_refuse(function: Any) -> None:
    own = "consumer_tp_rank" if function is planner.expected_senders else "producer_tp_rank"
    other = "producer_tp_rank" if own == "consumer_tp_rank" else "consumer_tp_rank"
    arguments = {field: value for field, value in PLAN.items() if field != other}
    function(**arguments)
    illegal = {
        own: 99,
        "total_num_kv_heads": 0,
        "producer_tp_size": 3,
        "consumer_tp_size": 3,
        "election": "best",
    }
    for field, value in illegal.items():
        with pytest.raises(ValueError, match=f"{field}={value!r}"):
            function(**(arguments | {field: value}))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"producer_region_bytes": 3, "consumer_region_bytes": 6},
            (
                "producer_region_bytes=3 and consumer_region_bytes=6 do not match: of 8 heads a "
                "producer rank (TP 4) holds 2 and a consumer rank (TP 2) holds 4; "
                "legal: a producer_region_bytes that is a positive multiple of 2"
            ),
        ),
        (
            {"consumer_region_bytes": 6},
            (
                "producer_region_bytes=6 and consumer_region_bytes=6 do not match: of 8 heads a "
                "producer rank (TP 4) holds 2 and a consumer rank (TP 2) holds 4; "
                "legal: consumer_region_bytes=12"
            ),
        ),
        (
            {"producer_region_bytes": 0, "consumer_region_bytes": 0},
            (
                "producer_region_bytes=0 and consumer_region_bytes=0 do not match: of 8 heads a "
                "producer rank (TP 4) holds 2 and a consumer rank (TP 2) holds 4; "
                "legal: a producer_region_bytes that is a positive multiple of 2"
            ),
        ),
        (
            {"total_num_kv_heads": 4, "consumer_tp_size": 3},
            (
                "consumer_tp_size=3 is not legal for total_num_kv_heads=4; "
                "legal: divisors or multiples of 4, the nearest are 2 and 4"
            ),
        ),
    ],
)
def test_validate_region_lengths_refuses(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match="legal") as caught:
        planner.validate_region_lengths(**(LENGTHS | changes))
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"total_num_kv_heads": None},
            (
                "total_num_kv_heads=None is legal only where nothing has to be split: "
                "producer_cache_replicated=True and equal block lengths; got "
                "producer_cache_replicated=True, local_kv_block_len=10, remote_kv_block_len=20"
            ),
        ),
        (
            {
                "total_num_kv_heads": None,
                "producer_cache_replicated": False,
                "remote_kv_block_len": 10,
            },
            (
                "total_num_kv_heads=None is legal only where nothing has to be split: "
                "producer_cache_replicated=True and equal block lengths; got "
                "producer_cache_replicated=False, local_kv_block_len=10, remote_kv_block_len=10"
            ),
        ),
        (
            {"producer_cache_replicated": False},
            (
                "producer_cache_replicated=False contradicts local_tp_size=8 and "
                "total_num_kv_heads=4; legal: True"
            ),
        ),
        (
            {"local_tp_size": 4},
            (
                "producer_cache_replicated=True contradicts local_tp_size=4 and "
                "total_num_kv_heads=4; legal: False"
            ),
        ),
        (
            {"total_num_kv_heads": 1, "local_tp_size": 1, "remote_kv_block_len": 10},
            (
                "producer_cache_replicated=True contradicts local_tp_size=1 and "
                "total_num_kv_heads=1; legal: False; MLA, which has no heads to split, passes "
                "total_num_kv_heads=None and producer_cache_replicated=True"
            ),
        ),
        (
            {
                "total_num_kv_heads": 1,
                "producer_cache_replicated": False,
                "remote_kv_block_len": 10,
            },
            (
                "producer_cache_replicated=False contradicts local_tp_size=8 and "
                "total_num_kv_heads=1; legal: True; MLA, which has no heads to split, passes "
                "total_num_kv_heads=None and producer_cache_replicated=True"
            ),
        ),
        (
            {"remote_kv_block_len": 40},
            (
                "local_kv_block_len=10 and remote_kv_block_len=40 do not match: of 4 heads a "
                "producer rank (TP 8) holds 1 and a consumer rank (TP 2) holds 2; "
                "legal: remote_kv_block_len=20"
            ),
        ),
        (
            {"local_tp_size": 12, "remote_tp_size": 8, "remote_kv_block_len": 10},
            (
                "election='paired' is not legal for local_tp_size=12 and remote_tp_size=8; "
                "legal: sizes of which one divides the other"
            ),
        ),
        (
            {"local_tp_rank": 8},
            "local_tp_rank=8 is not legal in a group of 8; legal: 0 <= local_tp_rank < 8",
        ),
        (
            {"remote_tp_size": 3},
            (
                "remote_tp_size=3 is not legal for total_num_kv_heads=4; "
                "legal: divisors or multiples of 4, the nearest are 2 and 4"
            ),
        ),
    ],
)
def test_compute_sender_transfer_plan_refuses(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match="legal") as caught:
        planner.compute_sender_transfer_plan(**(PAIR | changes))
    assert str(caught.value) == message


@pytest.mark.parametrize("value", [1, 0, None, "yes"])
def test_a_flag_that_is_no_bool_is_refused(value: object) -> None:
    with pytest.raises(TypeError) as caught:
        planner.compute_sender_transfer_plan(**(PAIR | {"producer_cache_replicated": value}))
    assert str(caught.value) == (f"producer_cache_replicated must be True or False, got {value!r}")


def test_what_the_message_says_of_mla_is_legal() -> None:
    changes = {"total_num_kv_heads": None, "local_tp_size": 1, "remote_kv_block_len": 10}
    plan = planner.compute_sender_transfer_plan(**(PAIR | changes))
    assert plan == (True, 0, 0, 10)
