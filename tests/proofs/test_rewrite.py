# SPDX-License-Identifier: Apache-2.0
"""The rewrites keep the meaning of what they rewrite."""

from __future__ import annotations

import pytest
import z3
from hypothesis import given, settings
from hypothesis import strategies as st

from kvreshard.proofs.rewrite import name_terms, split_comparisons, write_out
from kvreshard.spec.formula import maximum, minimum

a, b, D = z3.Ints("a b consumer_tp_size")
k = z3.Var(0, z3.IntSort())
NAMES = ("a", "b", "consumer_tp_size")
values = st.tuples(*[st.integers(-9, 9)] * 4)


def _grown(inner: st.SearchStrategy[z3.ArithRef]) -> st.SearchStrategy[z3.ArithRef]:
    two = st.tuples(inner, inner)
    return st.one_of(
        two.map(lambda pair: pair[0] + pair[1]),
        two.map(lambda pair: pair[0] - pair[1]),
        two.map(lambda pair: pair[0] * pair[1]),
        two.map(lambda pair: pair[0] / maximum(pair[1], 1)),
        two.map(lambda pair: maximum(*pair)),
        two.map(lambda pair: minimum(*pair)),
        st.tuples(two, two).map(lambda four: z3.If(four[0][0] < four[0][1], *four[1])),
    )


leaves = st.one_of(st.sampled_from([a, b, D, k]), st.integers(-3, 3).map(z3.IntVal))
integers = st.recursive(leaves, _grown, max_leaves=6)
comparisons = st.tuples(integers, integers, st.integers(0, 5)).map(
    lambda it: (
        it[0] < it[1],
        it[0] <= it[1],
        it[0] > it[1],
        it[0] >= it[1],
        it[0] == it[1],
        it[0] != it[1],
    )[it[2]]
)
truths = st.recursive(
    comparisons,
    lambda inner: st.one_of(
        st.tuples(inner, inner).map(lambda pair: z3.And(*pair)),
        st.tuples(inner, inner).map(lambda pair: z3.Or(*pair)),
        st.tuples(inner, inner, inner).map(lambda three: z3.If(*three)),
        inner.map(z3.Not),
    ),
    max_leaves=4,
)
quick = settings(max_examples=150, deadline=None)


def value(expression: z3.ExprRef, at: tuple[int, ...]) -> bool:
    """Return the truth value for a, b, the parameter and the bound variable."""
    bound = z3.substitute_vars(expression, z3.IntVal(at[3]))
    pairs = [(z3.Int(name), z3.IntVal(one)) for name, one in zip(NAMES, at, strict=False)]
    result = z3.simplify(z3.substitute(bound, *pairs))
    assert z3.is_true(result) or z3.is_false(result)
    return bool(z3.is_true(result))


def comparisons_in(expression: z3.ExprRef) -> list[z3.ExprRef]:
    if z3.is_app(expression) and expression.num_args() and z3.is_int(expression.arg(0)):
        return [expression]
    return [found for child in expression.children() for found in comparisons_in(child)]


def has_conditional(expression: z3.ExprRef) -> bool:
    return bool(z3.is_app_of(expression, z3.Z3_OP_ITE)) or any(
        map(has_conditional, expression.children())
    )


@quick
@given(truths, values)
def test_splitting_comparisons_keeps_the_value(expression: z3.BoolRef, at: tuple[int, ...]) -> None:
    assert value(split_comparisons(expression), at) == value(expression, at)


@quick
@given(truths)
def test_no_comparison_is_left_with_a_conditional(expression: z3.BoolRef) -> None:
    simple = z3.simplify(expression)  # without `distinct`, as the bodies that are split
    for comparison in comparisons_in(split_comparisons(simple)):
        assert not has_conditional(comparison)


@quick
@given(truths, values)
def test_naming_terms_keeps_the_value(expression: z3.BoolRef, at: tuple[int, ...]) -> None:
    renamed, named = name_terms(expression, D, first=3)
    assert value(z3.substitute(renamed, *named), at) == value(expression, at)
    assert [str(name) for name, _ in named] == [f"term!{3 + n}" for n in range(len(named))]


@quick
@given(truths)
def test_the_parameter_is_left_in_named_terms_alone(expression: z3.BoolRef) -> None:
    renamed, named = name_terms(expression, D)
    assert "consumer_tp_size" not in renamed.sexpr()
    assert all("consumer_tp_size" in term.sexpr() for _, term in named)
    assert all("(:var" not in term.sexpr() for _, term in named)
    assert len({term.get_id() for _, term in named}) == len(named)


def test_a_split_and_named_comparison_is_proved_equal() -> None:
    body = maximum(a * D, b) + k < minimum(D + 1, k * b)
    renamed, named = name_terms(body, D)
    back = z3.substitute(split_comparisons(renamed), *named)
    solver = z3.Solver()
    solver.add(z3.substitute_vars(back, z3.Int("k")) != z3.substitute_vars(body, z3.Int("k")))
    assert solver.check() == z3.unsat
    assert len(named) == 2
    assert named[0][1].eq(maximum(a * D, b))
    assert named[1][1].eq(D + 1)


def test_an_alternative_is_written_out_value_by_value() -> None:
    first, second, third = write_out(z3.And(0 <= k, k < 3, a == k * 2), 3)
    for fails, wanted in ((first, 0), (second, 2), (third, 4)):
        solver = z3.Solver()
        solver.add(fails != (a != wanted))
        assert solver.check() == z3.unsat


@pytest.mark.parametrize(
    "body",
    [
        z3.And(0 <= k, k <= 3, a == k),
        z3.And(-1 <= k, k < 3, a == k),
        a == k,
        z3.And(0 <= k, a == k),
        z3.And(k < 3, a == k),
    ],
    ids=["one_more", "one_less", "everywhere", "no_end", "no_start"],
)
def test_an_alternative_that_is_not_limited_to_the_values_is_refused(body: z3.BoolRef) -> None:
    with pytest.raises(ValueError, match="not limited to the values written out"):
        write_out(body, 3)
