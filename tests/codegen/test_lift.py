# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import ast

import pytest
import z3
from hypothesis import given, settings
from hypothesis import strategies as st

from kvreshard.codegen.lift import (
    Lifted,
    UnsupportedError,
    floor_division,
    floor_remainder,
    lift_function,
)
from kvreshard.spec.ownership import head_count

CALLEES = {"head_count": head_count}


def lift(source: str) -> Lifted:
    (node,) = ast.parse(source).body
    assert isinstance(node, ast.FunctionDef)
    return lift_function(node, CALLEES)


def lift_expression(expression: str, returned: str = "int") -> Lifted:
    return lift(f"def f(a: int, b: int) -> {returned}:\n    return {expression}\n")


@given(st.integers(), st.integers().filter(bool))
def test_division_is_pythons_for_any_sign(dividend: int, divisor: int) -> None:
    n, d = z3.IntVal(dividend), z3.IntVal(divisor)
    assert z3.simplify(floor_division(n, d)).as_long() == dividend // divisor
    assert z3.simplify(floor_remainder(n, d)).as_long() == dividend % divisor


operators = st.sampled_from(["+", "-", "*", "//", "%"])
operands = st.sampled_from(["a", "b", "-a", "3", "-2", "max(a, b)", "min(a, 4, b)"])


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.tuples(operators, operands), min_size=1, max_size=4),
    operands,
    st.integers(-9, 9),
    st.integers(-9, 9),
)
def test_expressions_mean_what_cpython_computes(
    steps: list[tuple[str, str]], text: str, a: int, b: int
) -> None:
    for operator, operand in steps:
        text = f"({text} {operator} {operand})"
    text = f"{text} if a < b <= 5 and not a == -1 else {text} + 1"
    lifted = lift_expression(text)
    values = (z3.Int("a"), z3.IntVal(a)), (z3.Int("b"), z3.IntVal(b))
    divisors = [
        z3.simplify(z3.substitute(division.divisor, *values)).as_long()
        for division in lifted.divisions
    ]
    try:
        expected = eval(text, {"a": a, "b": b})
    except ZeroDivisionError:
        assert 0 in divisors
    else:
        assert z3.simplify(z3.substitute(lifted.body, *values)).as_long() == expected


def test_a_division_in_a_branch_is_computed_only_there() -> None:
    (division,) = lift_expression("a // b if b > 0 else a").divisions
    solver = z3.Solver()
    solver.add(division.condition, division.divisor == 0)
    assert solver.check() == z3.unsat


def test_local_variables_are_looked_through() -> None:
    lifted = lift("def f(a: int) -> int:\n    x = a + 1\n    y = x * x\n    return y - x\n")
    value = z3.simplify(z3.substitute(lifted.body, (z3.Int("a"), z3.IntVal(4))))
    assert value.as_long() == 20


@pytest.mark.parametrize(
    ("expression", "returned", "what"),
    [
        ("a / b", "int", "the operator Div"),
        ("a ** b", "int", "the operator Pow"),
        ("a & b", "int", "the operator BitAnd"),
        ("~a", "int", "the operator Invert"),
        ("(a < b) + 1", "int", "not an integer: a < b"),
        ("a and b", "int", "not a truth value: a"),
        ("not a", "bool", "not a truth value: a"),
        ("a if b else 0", "int", "not a truth value: b"),
        ("a if a < b else a < b", "int", "branches of different types"),
        ("a in b", "bool", "the comparison In"),
        ("a is b", "bool", "the comparison Is"),
        ("(a < b) == (b < a)", "bool", "not an integer: a < b"),
        ("1.5", "int", "the constant 1.5"),
        ("c", "int", "the name c"),
        ("abs(a)", "int", "a call of abs"),
        ("max(a)", "int", "a call of max"),
        ("max(a, key=b)", "int", "the call max(a, key=b)"),
        ("head_count(a)", "int", "1 arguments for head_count"),
        ("head_count(a, tp_size=b)", "int", "the call head_count(a, tp_size=b)"),
        ("a.real", "int", "a Attribute: a.real"),
        ("[a][0]", "int", "a Subscript: [a][0]"),
        ("(a := b)", "int", "a NamedExpr: (a := b)"),
        ("(lambda: a)()", "int", "the call (lambda: a)()"),
        ("a < b", "int", "the annotation should be bool, found int"),
        ("a + b", "bool", "the annotation should be int, found bool"),
    ],
)
def test_what_is_not_known_is_refused(expression: str, returned: str, what: str) -> None:
    with pytest.raises(UnsupportedError) as caught:
        lift_expression(expression, returned)
    assert caught.value.what == what
    assert caught.value.line == (1 if "annotation" in what else 2)


@pytest.mark.parametrize(
    ("source", "what"),
    [
        ("def f(a: int) -> int:\n    a = 1\n    return a", "a second meaning for a"),
        ("def f(a: int) -> int:\n    max = a\n    return max", "a second meaning for max"),
        (
            "def f(a: int) -> int:\n    head_count = a\n    return a",
            "a second meaning for head_count",
        ),
        ("def f(a: int) -> int:\n    x, y = 1, 2\n    return a", "assignment to a Tuple"),
        ("def f(a: int) -> int:\n    if a:\n        return 1\n    return a", "a If statement"),
        ("def f(a: int) -> int:\n    return", "a function that does not end by returning a value"),
        ("def f(a: int) -> int:\n    'text'", "a function that does not end by returning a value"),
        ("def f(a: int = 1) -> int:\n    return a", "a default value"),
        ("def f(a) -> int:\n    return a", "the annotation should be int, found none"),
        ("def f(*a: int) -> int:\n    return 1", "parameters that are not plain"),
        ("def f(*, a: int) -> int:\n    return a", "parameters that are not plain"),
        ("@cache\ndef f(a: int) -> int:\n    return a", "a decorator or type parameter"),
        (
            "def f(head_count: int) -> int:\n    return head_count(1, 2)",
            "a call of head_count",
        ),
    ],
)
def test_functions_of_another_shape_are_refused(source: str, what: str) -> None:
    with pytest.raises(UnsupportedError) as caught:
        lift(source)
    assert caught.value.what == what
