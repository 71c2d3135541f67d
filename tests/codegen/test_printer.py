# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import ast
from typing import Any

import pytest
import random_expressions as given_by
import z3
from hypothesis import HealthCheck, given, settings

from kvreshard.codegen.lift import lift_function
from kvreshard.codegen.printer import (
    LINE_LENGTH,
    UnprintableError,
    print_body,
    print_expression,
)
from kvreshard.generated import planner
from kvreshard.spec.formula import maximum, minimum
from kvreshard.spec.ownership import first_head, head_count

a, b, c = z3.Ints("a b c")
p, q = z3.Bools("p q")
a_long, b_long, c_long = z3.Ints(" ".join(f"a_name_of_about_thirty_letters_{i}" for i in "abc"))
FUNCTIONS: dict[str, Any] = {
    "first_head": planner.first_head,
    "head_count": planner.head_count,
}
quick = settings(max_examples=250, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def as_function(expression: z3.ExprRef) -> str:
    """Return a function that returns the expression, of the variables used in these tests."""
    returned = "bool" if z3.is_bool(expression) else "int"
    parameters = ", ".join(f"{name}: int" for name in given_by.NAMES)
    body = print_body(expression, taken={*given_by.NAMES, *FUNCTIONS})
    return "\n".join([f"def printed({parameters}) -> {returned}:", *body, ""])


@quick
@given(given_by.expressions, given_by.values)
def test_python_computes_what_z3_computes(
    expression: z3.ExprRef, arguments: tuple[int, ...]
) -> None:
    expected = given_by.value_by_z3(expression, arguments)
    text = print_expression(expression)
    names = dict(zip(given_by.NAMES, arguments, strict=True))
    assert eval(text, FUNCTIONS | names) == expected
    space = dict(FUNCTIONS)
    exec(as_function(expression), space)
    assert space["printed"](*arguments) == expected


@quick
@given(given_by.expressions, given_by.values)
def test_what_is_printed_is_lifted_to_the_same_value(
    expression: z3.ExprRef, arguments: tuple[int, ...]
) -> None:
    (node,) = ast.parse(as_function(expression)).body
    assert isinstance(node, ast.FunctionDef)
    lifted = lift_function(node, {"first_head": first_head, "head_count": head_count})
    assert given_by.value_by_z3(lifted.body, arguments) == given_by.value_by_z3(
        expression, arguments
    )


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        (a - (b - c), "a - (b - c)"),
        (a - b - c, "a - b - c"),
        (a + b + c, "a + b + c"),
        ((a + b) * c, "(a + b) * c"),
        (a * b / c, "a * b // c"),
        (a * (b / c), "a * (b // c)"),
        (a / b % c, "a // b % c"),
        (a % (b * c), "a % (b * c)"),
        (-(a + b), "-(a + b)"),
        (-a * b, "-a * b"),
        (a - z3.IntVal(-3), "a - -3"),
        (z3.Sum(a, b, c), "a + b + c"),
        (maximum(a / b, 1), "max(a // b, 1)"),
        (minimum(a, b + c), "min(a, b + c)"),
        (z3.If(a >= b, b, a), "b if a >= b else a"),
        (z3.If(a > b, a, b), "a if a > b else b"),
        (z3.If(p, z3.If(q, a, b), c), "(a if q else b) if p else c"),
        (z3.If(p, a, z3.If(q, b, c)), "a if p else b if q else c"),
        (z3.If(p, a, b) + 1, "(a if p else b) + 1"),
        (z3.And(p, z3.Or(q, a < b)), "p and (q or a < b)"),
        (z3.Or(p, z3.And(q, a < b)), "p or (q and a < b)"),
        (z3.Not(z3.And(p, q)), "not (p and q)"),
        (z3.Not(a == b), "a != b"),
        (z3.Not(a < b), "not a < b"),
        (z3.Distinct(a, b), "a != b"),
        (z3.Not(a != b), "a == b"),
        (z3.IntVal(1) <= a, "a >= 1"),
        (first_head(a, b + 1, c) - head_count(a, b), "first_head(a, b + 1, c) - head_count(a, b)"),
        (z3.BoolVal(True), "True"),
    ],
)
def test_parentheses_are_where_they_are_needed(expression: z3.ExprRef, text: str) -> None:
    assert print_expression(expression) == text


@pytest.mark.parametrize(
    ("expression", "operator"),
    [
        (z3.Implies(p, q), "=>"),
        (p == q, "="),
        (z3.Xor(p, q), "xor"),
        (z3.ToReal(a) / 2 > 1, ">"),
        (z3.Distinct(a, b, c), "distinct"),
        (a**b, "**"),
        (z3.ForAll([a], a > 0), "QuantifierRef"),
        (z3.BitVec("v", 8) + 1, "bvadd"),
        (z3.Abs(a), None),  # a conditional, which can be printed
        (z3.Select(z3.Array("m", z3.IntSort(), z3.IntSort()), a), "select"),
        (a % z3.ToInt(z3.Real("x")), "to_int"),
    ],
)
def test_what_is_not_known_is_refused_by_name(expression: z3.ExprRef, operator: str | None) -> None:
    if operator is None:
        assert print_expression(expression) == "a if a > 0 else -a"
        return
    with pytest.raises(UnprintableError, match=r"cannot print") as caught:
        print_expression(expression)
    assert operator in str(caught.value)


def test_a_long_formula_names_what_it_calls() -> None:
    h, s, r = z3.Ints("total_num_kv_heads consumer_tp_size consumer_tp_rank")
    first = first_head(h, s, r)
    body = print_body(
        (first + head_count(h, s) - 1) / (first + r) + z3.If(r > 0, head_count(h, r), 0),
        taken={"consumer_head_count"},
    )
    assert body == [
        "    consumer_first_head = first_head(",
        "        total_num_kv_heads, consumer_tp_size, consumer_tp_rank",
        "    )",
        "    consumer_head_count_2 = head_count(total_num_kv_heads, consumer_tp_size)",
        "    return (",
        "        (consumer_first_head + consumer_head_count_2 - 1)",
        "        // (consumer_first_head + consumer_tp_rank)",
        "        + (",
        "            head_count(total_num_kv_heads, consumer_tp_rank)",
        "            if consumer_tp_rank > 0",
        "            else 0",
        "        )",
        "    )",
    ]


@pytest.mark.parametrize(
    "expression",
    [
        z3.Not(z3.And(a_long > b_long, a_long > c_long, b_long > c_long)),
        z3.Not(a_long > b_long + c_long),
        -(a_long + b_long * c_long),
        maximum(a_long + b_long, b_long + c_long * a_long),
        z3.If(a_long > b_long, a_long, b_long),
    ],
)
def test_broken_lines_are_one_expression(expression: z3.ExprRef) -> None:
    source = "def f():\n" + "\n".join(print_body(expression))
    (function,) = ast.parse(source).body
    assert isinstance(function, ast.FunctionDef)
    (returned,) = function.body
    assert isinstance(returned, ast.Return)
    assert returned.value is not None
    plain = ast.parse(print_expression(expression), mode="eval").body
    assert ast.dump(returned.value) == ast.dump(plain)
    assert max(map(len, source.splitlines())) <= LINE_LENGTH


def test_what_only_one_branch_computes_stays_in_it() -> None:
    """Computed before the conditional, the division by zero would not be avoided."""
    body = print_body(z3.If(a_long > 0, head_count(b_long, a_long), c_long + b_long))
    assert body[0].strip() == "return ("
    assert not any(" = " in line for line in body)
