# SPDX-License-Identifier: Apache-2.0
"""Sizes in factors and ranks in digits: nothing is left out, and what is assumed is true."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import product
from math import prod
from typing import TYPE_CHECKING

import pytest
import z3
from numbers_put_in import put_in

from kvreshard.proofs.audit.orders import (
    D,
    H,
    Index,
    P,
    all_orders,
    claims_of_coverage,
    compared,
    index,
)
from kvreshard.proofs.audit.reduction import rules_of_quotients
from kvreshard.proofs.audit.sweep import sizes_up_to

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kvreshard.proofs.audit.claims import Claim
    from kvreshard.proofs.audit.orders import Order

CLAIMS = (*claims_of_coverage(), *rules_of_quotients())


def settings_of(order: Order, maximum: int) -> Iterator[dict[str, int]]:
    """Yield factors whose product is within a bound: the first at least 1, others at least 2."""
    names = [str(factor) for factor in order.factors]
    ranges = [range(1 if at == 0 else 2, maximum + 1) for at in range(len(names))]
    for values in product(*ranges):
        if prod(values) <= maximum:
            yield dict(zip(names, values, strict=True))


def test_every_divisible_size_stands_in_exactly_one_order() -> None:
    maximum = 64
    made = Counter(
        tuple(put_in(order.size(name), values) for name in (H, P, D))
        for order in all_orders()
        for values in settings_of(order, maximum)
    )
    divisible = {(h, p, d) for h, p, d in sizes_up_to(maximum) if p % d == 0 or d % p == 0}
    assert set(made) == divisible
    assert set(made.values()) == {1}


def digits_of(one: Index, values: dict[str, int]) -> Iterator[dict[str, int]]:
    """Yield every choice of an index's digits that its factors allow."""
    ranges = [range(put_in(factor, values)) for factor in one.factors]
    for digits in product(*ranges):
        yield {str(name): digit for name, digit in zip(one.digits, digits, strict=True)}


@pytest.mark.parametrize("order", all_orders(), ids=str)
def test_digits_make_each_rank_exactly_once(order: Order) -> None:
    one = index("p", order.factors_of(P))
    for values in settings_of(order, 12):
        made = [put_in(one.value, {**values, **digits}) for digits in digits_of(one, values)]
        assert sorted(made) == list(range(put_in(order.size(P), values)))


@pytest.mark.parametrize("order", all_orders(), ids=str)
def test_what_is_assumed_of_factors_and_digits_is_true(order: Order) -> None:
    p, d = (index(name, order.factors_of(size)) for name, size in (("p", P), ("d", D)))
    assumed = [
        *order.hypotheses,
        *p.hypotheses,
        *d.hypotheses,
        *compared((p, d), order.factors),
    ]
    seen = 0
    for values in settings_of(order, 6):
        for mine, theirs in product(digits_of(p, values), digits_of(d, values)):
            seen += 1
            for fact in assumed:
                assert put_in(fact, {**values, **mine, **theirs}), (fact, values, mine, theirs)
    assert seen


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim.name)
def test_what_an_audit_rests_on_is_proved(claim: Claim) -> None:
    assert claim.holds


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim.name)
def test_a_claim_that_is_false_or_empty_is_not_proved(claim: Claim) -> None:
    assert not replace(claim, then=z3.Not(claim.then)).holds
    # What follows from nothing that can be is no claim.
    assert not replace(claim, given=(*claim.given, z3.BoolVal(False))).holds


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim.name)
def test_a_claim_needs_its_hypotheses(claim: Claim) -> None:
    assert not replace(claim, given=()).holds
