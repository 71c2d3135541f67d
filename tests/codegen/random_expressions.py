# SPDX-License-Identifier: Apache-2.0
"""Random z3 expressions of the kind that formulas are made of, and their values."""

from __future__ import annotations

import z3
from hypothesis import strategies as st

from kvreshard.spec.formula import maximum, minimum, unfold
from kvreshard.spec.ownership import first_head, head_count

NAMES = ("a", "producer_b", "c")
VARIABLES = z3.Ints(" ".join(NAMES))

values = st.tuples(*[st.integers(-20, 20)] * len(NAMES))


def _positive(expression: z3.ArithRef) -> z3.ArithRef:
    return maximum(expression, 1)


def _integers(truths: st.SearchStrategy[z3.BoolRef]) -> st.SearchStrategy[z3.ArithRef]:
    leaves = st.one_of(
        st.sampled_from(VARIABLES), st.integers(-9, 9).map(z3.IntVal), st.just(z3.IntVal(10**20))
    )

    def grow(inner: st.SearchStrategy[z3.ArithRef]) -> st.SearchStrategy[z3.ArithRef]:
        two = st.tuples(inner, inner)
        return st.one_of(
            two.map(lambda pair: pair[0] + pair[1]),
            two.map(lambda pair: pair[0] - pair[1]),
            two.map(lambda pair: pair[0] * pair[1]),
            two.map(lambda pair: pair[0] / _positive(pair[1])),
            two.map(lambda pair: pair[0] % _positive(pair[1])),
            two.map(lambda pair: maximum(*pair)),
            two.map(lambda pair: minimum(*pair)),
            two.map(lambda pair: z3.Sum(*pair, pair[0])),
            two.map(lambda pair: head_count(pair[0], _positive(pair[1]))),
            st.tuples(two, inner).map(
                lambda args: first_head(args[0][0], _positive(args[0][1]), args[1])
            ),
            inner.map(lambda one: -one),
            st.tuples(truths, two).map(lambda args: z3.If(args[0], *args[1])),
        )

    return st.recursive(leaves, grow, max_leaves=8)


def _comparisons(integers: st.SearchStrategy[z3.ArithRef]) -> st.SearchStrategy[z3.BoolRef]:
    two = st.tuples(integers, integers)
    return st.one_of(
        two.map(lambda pair: pair[0] == pair[1]),
        two.map(lambda pair: pair[0] != pair[1]),
        two.map(lambda pair: pair[0] <= pair[1]),
        two.map(lambda pair: pair[0] < pair[1]),
        two.map(lambda pair: pair[0] >= pair[1]),
        two.map(lambda pair: pair[0] > pair[1]),
    )


def _connected(inner: st.SearchStrategy[z3.BoolRef]) -> st.SearchStrategy[z3.BoolRef]:
    return st.one_of(
        st.tuples(inner, inner).map(lambda pair: z3.And(*pair)),
        st.tuples(inner, inner).map(lambda pair: z3.Or(*pair)),
        st.tuples(inner, inner, inner).map(lambda three: z3.And(*three)),
        st.tuples(inner, inner, inner).map(lambda three: z3.If(*three)),
        inner.map(z3.Not),
    )


_simple = _comparisons(st.sampled_from(VARIABLES))
integers = _integers(_simple)
truths = st.recursive(
    st.one_of(_comparisons(integers), st.booleans().map(z3.BoolVal)), _connected, max_leaves=6
)
expressions = st.one_of(integers, truths)


def value_by_z3(expression: z3.ExprRef, arguments: tuple[int, ...]) -> int | bool:
    """Return the value that z3 gives the expression."""
    pairs = [
        (variable, z3.IntVal(argument))
        for variable, argument in zip(VARIABLES, arguments, strict=True)
    ]
    value = z3.simplify(z3.substitute(unfold(expression), *pairs))
    if z3.is_bool(value):
        assert z3.is_true(value) or z3.is_false(value)
        return bool(z3.is_true(value))
    return int(value.as_long())
