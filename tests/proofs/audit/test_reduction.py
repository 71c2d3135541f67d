# SPDX-License-Identifier: Apache-2.0
"""Quotients that are found are floor quotients, and what names stand for products loses nothing."""

from __future__ import annotations

import ast
import math
from typing import TYPE_CHECKING

import z3
from hypothesis import given, settings
from hypothesis import strategies as st
from numbers_put_in import put_in

from kvreshard.proofs.audit.claims import possible_for_any_products, proved, without_products
from kvreshard.proofs.audit.orders import all_orders, compared, index
from kvreshard.proofs.audit.polynomial import polynomial_of, variable
from kvreshard.proofs.audit.reduction import Hypotheses, plain, reduced
from kvreshard.proofs.lifting.path import Path

if TYPE_CHECKING:
    from collections.abc import Mapping

# D < H < P: three factors, a rank of three digits and one of one.
ORDER = next(order for order in all_orders() if str(order) == "D < H < P")
F1, F2, F3 = ORDER.factors
P_RANK, D_RANK = index("p", ORDER.factors), index("d", ORDER.factors[:1])
MEANING = Hypotheses(
    (
        *ORDER.hypotheses,
        *P_RANK.hypotheses,
        *D_RANK.hypotheses,
        *compared((P_RANK, D_RANK), ORDER.factors),
    )
)
ATOMS = (*ORDER.factors, *P_RANK.digits, *D_RANK.digits)
# What a planner makes: ranks and sizes, their sums and multiples.
built = st.recursive(
    st.one_of(
        st.sampled_from((P_RANK.value, D_RANK.value, F1, F1 * F2, F1 * F2 * F3)),
        st.sampled_from(ATOMS),
        st.integers(-3, 5).map(z3.IntVal),
    ),
    lambda inner: st.one_of(
        st.tuples(inner, inner).map(lambda pair: pair[0] + pair[1]),
        st.tuples(inner, inner).map(lambda pair: pair[0] - pair[1]),
        st.tuples(inner, inner).map(lambda pair: pair[0] * pair[1]),
    ),
    max_leaves=5,
)
divisors = st.one_of(
    st.lists(st.sampled_from(ORDER.factors), min_size=1, max_size=3).map(z3.Product),
    st.integers(1, 6).map(z3.IntVal),
    built,
)


@st.composite
def legal_values(draw: st.DrawFn) -> dict[str, int]:
    """Draw factors and digits that the hypotheses allow."""
    values = {
        str(f): draw(st.integers(low, 7)) for f, low in zip(ORDER.factors, (1, 2, 2), strict=True)
    }
    for one in (P_RANK, D_RANK):
        for digit, factor in zip(one.digits, one.factors, strict=True):
            values[str(digit)] = draw(st.integers(0, values[str(factor)] - 1))
    return values


@settings(deadline=None, max_examples=120)
@given(built, divisors, st.lists(legal_values(), min_size=8, max_size=8))
def test_a_quotient_that_is_found_is_the_floor_quotient(
    above: z3.ArithRef, below: z3.ArithRef, samples: list[dict[str, int]]
) -> None:
    found = MEANING._quotient(Path(MEANING), above, below)
    if found is None:
        return
    for values in samples:
        divisor = put_in(below, values)
        assert divisor >= 1
        assert put_in(found, values) == put_in(above, values) // divisor


def test_quotients_of_planners_are_found() -> None:
    path, rank = Path(MEANING), P_RANK.value
    assert MEANING.quotient(path, rank, F3).eq(plain(P_RANK.digits[0] * F2 + P_RANK.digits[1]))
    assert MEANING.remainder(path, rank, F2 * F3).eq(
        plain(P_RANK.digits[1] * F3 + P_RANK.digits[2])
    )
    assert MEANING.quotient(path, F1 * F2 * F3, F1 * F3).eq(F2)
    assert MEANING.quotient(path, P_RANK.digits[2], F3) == 0
    # Not known to be a quotient without a rest: it stays one.
    assert z3.is_app_of(MEANING.quotient(path, F1, F2), z3.Z3_OP_IDIV)


def test_a_quotient_rests_on_the_conditions_of_its_way() -> None:
    x, n = z3.Ints("x n")
    nothing = Hypotheses(())
    assert nothing._quotient(Path(nothing), x, n) is None
    bounded = Path(nothing, conditions=[n >= 1, 0 <= x, x < n])
    assert nothing._quotient(bounded, x, n) == 0
    # One bound of x less, and it may be otherwise.
    for missing in (1, 2):
        given = [one for at, one in enumerate(bounded.conditions) if at != missing]
        assert nothing._quotient(Path(nothing, conditions=given), x, n) is None


comparisons = st.tuples(built, built, st.sampled_from(("<", "<=", "==", "!=", ">", ">="))).map(
    lambda made: {
        "<": made[0] < made[1],
        "<=": made[0] <= made[1],
        "==": made[0] == made[1],
        "!=": made[0] != made[1],
        ">": made[0] > made[1],
        ">=": made[0] >= made[1],
    }[made[2]]
)
conditions = st.recursive(
    comparisons,
    lambda inner: st.one_of(
        st.lists(inner, min_size=1, max_size=3).map(lambda some: z3.And(*some)),
        st.lists(inner, min_size=1, max_size=3).map(lambda some: z3.Or(*some)),
        inner.map(z3.Not),
        st.tuples(inner, inner).map(lambda pair: z3.Implies(*pair)),
        st.tuples(inner, inner, inner).map(lambda three: z3.If(*three)),
    ),
    max_leaves=4,
)


@settings(deadline=None, max_examples=150)
@given(st.lists(conditions, min_size=1, max_size=3), legal_values())
def test_what_can_be_given_can_be_given_without_products(
    some: list[z3.BoolRef], values: dict[str, int]
) -> None:
    # Each condition is turned so that the values meet it.
    met = [one if put_in(one, values) else z3.Not(one) for one in some]
    fixed = [z3.Int(name) == value for name, value in values.items()]
    assert possible_for_any_products(met)
    assert possible_for_any_products([*met, *fixed])


@settings(deadline=None, max_examples=100)
@given(conditions, legal_values())
def test_a_condition_without_products_means_the_same(
    condition: z3.BoolRef, values: dict[str, int]
) -> None:
    made = without_products(condition)
    assert put_in(made, _with_products(made, values)) == put_in(condition, values)


def _with_products(made: z3.ExprRef, values: Mapping[str, int]) -> dict[str, int]:
    """Return values for the names of products too."""
    found = dict(values)
    waiting = [made]
    while waiting:
        one = waiting.pop()
        waiting += one.children()
        if z3.is_const(one) and str(one).startswith("("):
            factors = ast.literal_eval(str(one))
            found[str(one)] = math.prod(values[factor] for factor in factors)
    return found


@settings(deadline=None, max_examples=100)
@given(built, legal_values())
def test_a_polynomial_is_what_it_was_made_of(
    expression: z3.ArithRef, values: dict[str, int]
) -> None:
    assert put_in(polynomial_of(expression).expression(), values) == put_in(expression, values)
    assert put_in(plain(expression), values) == put_in(expression, values)


def deep(leaf: z3.ArithRef) -> z3.ArithRef:
    """Return a quotient of quotients, deeper than z3 prints."""
    made = leaf
    for _ in range(30):
        made = (made + 1) / (z3.Int("n") + 2)
    return made


def test_expressions_with_one_text_are_told_apart() -> None:
    one, other = deep(z3.Int("x")), deep(z3.Int("y"))
    assert str(one) == str(other)
    assert not proved([], one == other)
    assert not proved([], one * 2 <= other * 2)
    assert len(polynomial_of(one - other).terms) == 2
    assert proved([], one == deep(z3.Int("x")))
    (name,) = polynomial_of(other).terms
    assert variable(name[0]).eq(other)


def test_a_name_of_a_product_is_no_other_name() -> None:
    a, b, odd = z3.Int("a"), z3.Int("b"), z3.Int("a * b")
    assert not proved([], a * b == odd)
    assert not proved([], a * odd == (a * a) * b)
    assert not proved([], z3.Int("a*b") * 2 == a * b * 2)


def test_a_formula_is_read_with_its_quotients_and_conditions_decided() -> None:
    path = Path(MEANING)
    assert reduced(path, z3.If(F1 >= 1, P_RANK.value / F3, z3.IntVal(0))).eq(
        plain(P_RANK.digits[0] * F2 + P_RANK.digits[1])
    )
    assert not path.conditions
    assert reduced(path, z3.If(F1 == F2, F1, F2)).eq(F1)
    assert [str(one) for one in path.conditions] == ["f1 == f2"]
    # A divisor that may be 0 is left to z3.
    x, y = z3.Ints("x y")
    nothing = Hypotheses(())
    assert reduced(Path(nothing), x % y).eq(x % y)


def test_what_is_known_on_a_way_is_known_there_only() -> None:
    x = z3.Int("x")
    meaning = Hypotheses(())
    inside = Path(meaning, conditions=[x >= 1])
    assert meaning.known(inside, x >= 0) is True
    assert meaning.known(inside, x < 1) is False
    assert meaning.known(inside, x >= 2) is None
    assert meaning.known(Path(meaning), x >= 0) is None
