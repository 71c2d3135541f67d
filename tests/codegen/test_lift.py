# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import ast
from itertools import product

import pytest
import z3
from hypothesis import given, settings
from hypothesis import strategies as st

from kvreshard.codegen.lift import Lifted, lift_function
from kvreshard.proofs.lifting.unsupported import UnsupportedError
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
    values = (z3.Int("a"), z3.IntVal(dividend)), (z3.Int("b"), z3.IntVal(divisor))
    for expression, expected in (
        ("a // b", dividend // divisor),
        ("a % b", dividend % divisor),
        (f"{dividend} // b", dividend // divisor),
        (f"a % {divisor}", dividend % divisor),
    ):
        lifted = lift_expression(expression)
        assert z3.simplify(z3.substitute(lifted.body, *values)).as_long() == expected


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


@pytest.mark.parametrize(
    ("expression", "returned"),
    [
        ("(a < b) + 1", "int"),
        ("not a", "bool"),
        ("a if b else 0", "int"),
        ("(a < b) == (b < a)", "bool"),
        ("max(a, b) - (a == b)", "int"),
        ("a << 2 if a < b < 3 else b ** 2", "int"),
        ("a < b and b > 0 and a // b > -2", "bool"),
    ],
)
def test_truth_values_and_integers_are_mixed_as_cpython_does(
    expression: str, returned: str
) -> None:
    lifted = lift_expression(expression, returned)
    for a, b in product(range(-3, 4), repeat=2):
        values = (z3.Int("a"), z3.IntVal(a)), (z3.Int("b"), z3.IntVal(b))
        found = z3.simplify(z3.substitute(lifted.body, *values))
        expected = eval(expression, {"a": a, "b": b})
        assert found.eq(z3.IntVal(expected) if returned == "int" else z3.BoolVal(expected))


def test_a_division_in_a_later_operand_is_computed_only_where_the_first_does_not_decide() -> None:
    for expression in ("b > 0 and a // b > 1", "b <= 0 or a // b > 1", "0 < b < a // b"):
        (division,) = lift_expression(expression, "bool").divisions
        solver = z3.Solver()
        solver.add(division.condition)
        assert solver.check() == z3.sat
        solver.add(division.divisor == 0)
        assert solver.check() == z3.unsat


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
        ("a / b", "int", "the operator Div, which gives a float: a / b"),
        ("a ** b", "int", "an exponent other than 0 to 64"),
        ("a & b", "int", "the operator BitAnd: a & b"),
        ("~a", "int", "the operator Invert"),
        ("a and b", "int", "a condition that decides what else is computed"),
        ("a if a < b else a < b", "int", "a condition that decides what else is computed"),
        ("a if a < b else 1 // 0", "int", "a condition that decides what else is computed"),
        ("1 // 0", "int", "a function that raises ZeroDivisionError"),
        ("None", "int", "a function that returns a NoneType"),
        ("a in b", "bool", "membership in a int: a in b"),
        ("a is b", "bool", "identity with other than None: a is b"),
        ("head_count(a, a < b)", "int", "a bool as an argument of head_count"),
        ("1.5", "int", "the constant 1.5"),
        ("c", "int", "the name c"),
        ("abs(a)", "int", "the name abs"),
        ("max(a)", "int", "a loop over a int"),
        ("max(a, key=b)", "int", "a keyword for max: max(a, key=b)"),
        ("head_count(a)", "int", "1 arguments for head_count"),
        ("head_count(a, tp_size=b)", "int", "a keyword for head_count: head_count(a, tp_size=b)"),
        ("a.real", "int", "a Attribute: a.real"),
        ("[a][0]", "int", "a Subscript: [a][0]"),
        ("(a := b)", "int", "a NamedExpr: (a := b)"),
        ("(lambda x: a)(1)", "int", "a Lambda: lambda x: a"),
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
            "a call of a int: head_count(1, 2)",
        ),
    ],
)
def test_functions_of_another_shape_are_refused(source: str, what: str) -> None:
    with pytest.raises(UnsupportedError) as caught:
        lift(source)
    assert caught.value.what == what
