# SPDX-License-Identifier: Apache-2.0
"""Run formulas and statements of the specification in plain Python, with its own `//` and `%`.

This neither uses the solver nor the printer of the code generator, so a counterexample replayed
with it rests on neither.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping

import z3

from kvreshard.spec.formula import FORMULAS, Formula, Truth

Value = int | bool
_Step = Callable[[Mapping[str, int]], Value]
_Function = Callable[..., Value]


def _all(*values: Value) -> bool:
    return all(values)


def _any(*values: Value) -> bool:
    return any(values)


_OPERATORS: dict[int, Callable[..., Value]] = {
    z3.Z3_OP_ADD: lambda *values: sum(values),
    z3.Z3_OP_SUB: operator.sub,
    z3.Z3_OP_MUL: lambda *values: math.prod(values),
    z3.Z3_OP_UMINUS: operator.neg,
    z3.Z3_OP_IDIV: operator.floordiv,
    z3.Z3_OP_MOD: operator.mod,
    z3.Z3_OP_EQ: operator.eq,
    z3.Z3_OP_LE: operator.le,
    z3.Z3_OP_LT: operator.lt,
    z3.Z3_OP_GE: operator.ge,
    z3.Z3_OP_GT: operator.gt,
    z3.Z3_OP_NOT: operator.not_,
    z3.Z3_OP_AND: _all,
    z3.Z3_OP_OR: _any,
    z3.Z3_OP_IMPLIES: lambda given, then: not given or then,
    z3.Z3_OP_DISTINCT: lambda *values: len(set(values)) == len(values),
    z3.Z3_OP_TRUE: lambda: True,
    z3.Z3_OP_FALSE: lambda: False,
}


def executable(formula: Formula) -> _Function:
    """Return a Python function of the formula's parameters, in their order.

    The formula is looked up by its name, as those that it applies are.
    """
    return _callee(formula.name, {})


def executable_truth(statement: Truth, ranks: range) -> Callable[[Mapping[str, int]], bool]:
    """Return a Python function from the values of a statement's constants to whether it holds.

    Every operand of `and`, `or` and an implication is computed, so a division by 0 raises
    ZeroDivisionError wherever it stands, but for the branch of a conditional not taken.

    Args:
        statement: may say that some integer exists.
        ranks: where that integer is looked for.
    """
    step = _compile(statement, ranks, {})
    return lambda values: bool(step(values))


def _callee(name: str, known: dict[str, _Function]) -> _Function:
    """Return the function of a formula, compiled once however often it is applied."""
    if name not in known:
        names = FORMULAS[name].parameter_names
        step = _compile(FORMULAS[name].body, range(0), known)
        known[name] = lambda *arguments: step(dict(zip(names, arguments, strict=True)))
    return known[name]


def _compile(expression: z3.ExprRef, ranks: range, known: dict[str, _Function]) -> _Step:
    if z3.is_quantifier(expression):
        return _search(expression, ranks, known)
    if z3.is_int_value(expression):
        constant = expression.as_long()
        return lambda _: constant
    name = expression.decl().name()
    steps = [_compile(child, ranks, known) for child in expression.children()]
    if name in FORMULAS:
        callee = _callee(name, known)
        return lambda values: callee(*[step(values) for step in steps])
    if z3.is_const(expression) and expression.decl().kind() == z3.Z3_OP_UNINTERPRETED:
        return lambda values: values[name]
    if z3.is_app_of(expression, z3.Z3_OP_ITE):
        test, then, otherwise = steps
        return lambda values: then(values) if test(values) else otherwise(values)
    apply = _OPERATORS.get(expression.decl().kind())
    if apply is None:
        raise ValueError(f"{name} has no meaning in Python here: {expression}")
    return lambda values: apply(*[step(values) for step in steps])


def _search(expression: z3.QuantifierRef, ranks: range, known: dict[str, _Function]) -> _Step:
    if not expression.is_exists() or expression.num_vars() != 1:
        raise ValueError(f"not the existence of one integer: {expression}")
    # A name of its own: a constant of the statement may have the variable's.
    name = f"{expression.var_name(0)}!{expression.get_id()}"
    body = _compile(z3.substitute_vars(expression.body(), z3.Int(name)), ranks, known)

    def search(values: Mapping[str, int]) -> bool:
        found = [body({**values, name: rank}) for rank in ranks]
        return any(found)

    return search
