# SPDX-License-Identifier: Apache-2.0
"""The sizes of an audit: what a condition narrows them to, and what is no condition."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from asked import domain_of, heads

from kvreshard.proofs.audit.asking import ContractMismatchError
from kvreshard.proofs.audit.domain import WhereError
from kvreshard.proofs.audit.sweep import sizes_up_to

if TYPE_CHECKING:
    from pathlib import Path

NOTHING = heads("    return []\n")
CONTRACT = '''\
"""A planner."""
UNIT = "heads"
DOMAIN = "some groups"


def plan(planner, producer_tp_rank):
    return planner(producer_tp_rank)


def in_domain(total_num_kv_heads, producer_tp_size, consumer_tp_size):
    return {condition}
'''


@pytest.mark.parametrize(
    ("where", "said"),
    [
        ("P", "gives a int"),
        ("P % D", "gives a int"),
        ("H, P", "gives a tuple"),
        ("None", "gives a NoneType"),
        ("True if H > 1 else 3", "gives a int"),
        ("P %", "such as P % D == 0"),
        ("import os", "such as P % D == 0"),
        ("await H", "such as P % D == 0"),
        ("P % D == 0\n    or True", "such as P % D == 0"),
        ("P % D == 0; H = 1", "one condition"),
        ("P % D == 0\nimport os", "one condition"),
        ("P % D == 0)\nimport os\n(0", "such as P % D == 0"),
        ("x > 1", "has the name x"),
        ("H > 0 and x", "has the name x"),
        ("__import__('os')", "has the name __import__"),
        ("H / P", "gives a float"),
        ("lambda H, P, D: P % D == 0", "has a Lambda"),
        ("(H := 3) == 3", "has in where"),
        ("where(H, P, D)", "deeper than"),
        ("H.real > 1", "has an attribute of a int"),
        ("H // (P - D) > 0", "raises ZeroDivisionError for sizes of the domain"),
        ("[P][3] == 1", "raises IndexError"),
    ],
)
def test_what_is_no_condition_is_named_with_what_is_legal(where: str, said: str) -> None:
    with pytest.raises(WhereError) as wrong:
        [domain_of(NOTHING, where).has(sizes) for sizes in sizes_up_to(2)]
    assert str(wrong.value).startswith(f"where={where}; legal: ")
    assert said in str(wrong.value)


@pytest.mark.parametrize(
    ("where", "divisible", "orders"),
    [
        ("", False, 13),
        ("P % D == 0", True, 8),
        ("P == D", True, 3),
        ("P % D == 0 or D % P == 0", True, 13),
        ("max(H, P) > 2", False, 13),
        ("H > P > D", False, 1),
        ("D > H or P <= H == D", False, 7),
    ],
)
def test_the_orders_of_a_domain_are_all_that_it_has(
    where: str, divisible: bool, orders: int
) -> None:
    domain = domain_of(NOTHING, where)
    assert domain.is_divisible() is divisible
    found = list(domain.orders())
    assert len(found) == orders
    met = {
        tuple(tuple(name for name in "HPD" if named[name] == size) for size in sorted(set(sizes)))
        for sizes in sizes_up_to(12)
        for named in [dict(zip("HPD", sizes, strict=True))]
        if domain.has(sizes) and (sizes[1] % sizes[2] == 0 or sizes[2] % sizes[1] == 0)
        # Sizes of an order divide one another in its sequence.
        if sizes[0] % sizes[1] == 0 or sizes[1] % sizes[0] == 0
    }
    assert met == {
        tuple(tuple(n for n in "HPD" if n in tier) for tier in one.tiers) for one in found
    }


def test_a_condition_narrows_the_sizes_and_is_said() -> None:
    domain = domain_of(NOTHING, "P % D == 0")
    assert all(sizes[1] % sizes[2] == 0 for sizes in sizes_up_to(6) if domain.has(sizes))
    assert domain.has((6, 6, 3))
    assert domain.in_words == "legal groups, where P % D == 0"


def test_a_domain_that_raises_is_a_fault_of_the_contract(tmp_path: Path) -> None:
    contract = tmp_path / "mine.py"
    raising = "total_num_kv_heads // (producer_tp_size - consumer_tp_size) > 0"
    contract.write_text(CONTRACT.format(condition=raising))
    domain = domain_of(NOTHING, contract=contract)
    with pytest.raises(ContractMismatchError, match="line 11 of it raises ZeroDivisionError"):
        domain.has((2, 1, 1))
    assert not domain.is_divisible()


def test_a_condition_that_raises_for_no_sizes_stops_no_audit() -> None:
    # The divisor is at least 1, which takes more than sums to see.
    domain = domain_of(NOTHING, "1 // (P * P - 2 * P + 2) >= 0 and P == D")
    assert [sizes for sizes in sizes_up_to(2) if domain.has(sizes)] == [
        (1, 1, 1),
        (1, 2, 2),
        (2, 1, 1),
        (2, 2, 2),
    ]
    assert not domain.is_divisible()
