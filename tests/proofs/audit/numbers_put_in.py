# SPDX-License-Identifier: Apache-2.0
"""Read z3 expressions with numbers in place of their unknowns, in plain Python."""

from __future__ import annotations

import math
import operator
from typing import TYPE_CHECKING, Any

import z3

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


def put_in(expression: Any, values: Mapping[str, int]) -> Any:
    """Return what an expression is, a number or a truth value, for values of its unknowns."""
    if not isinstance(expression, z3.ExprRef):
        return expression
    if z3.is_int_value(expression):
        return expression.as_long()
    if z3.is_true(expression) or z3.is_false(expression):
        return z3.is_true(expression)
    if z3.is_const(expression):
        return values[str(expression)]
    operands = [put_in(child, values) for child in expression.children()]
    return _OPERATORS[expression.decl().kind()](*operands)


def _euclid(dividend: int, divisor: int) -> tuple[int, int]:
    """Divide as z3 does, with a remainder of at least 0."""
    remainder = dividend % abs(divisor)
    return (dividend - remainder) // divisor, remainder


_OPERATORS: dict[int, Callable[..., Any]] = {
    z3.Z3_OP_ADD: lambda *operands: sum(operands),
    z3.Z3_OP_SUB: operator.sub,
    z3.Z3_OP_MUL: lambda *operands: math.prod(operands),
    z3.Z3_OP_UMINUS: operator.neg,
    z3.Z3_OP_IDIV: lambda dividend, divisor: _euclid(dividend, divisor)[0],
    z3.Z3_OP_MOD: lambda dividend, divisor: _euclid(dividend, divisor)[1],
    z3.Z3_OP_ITE: lambda condition, then, otherwise: then if condition else otherwise,
    z3.Z3_OP_LE: operator.le,
    z3.Z3_OP_LT: operator.lt,
    z3.Z3_OP_GE: operator.ge,
    z3.Z3_OP_GT: operator.gt,
    z3.Z3_OP_EQ: operator.eq,
    z3.Z3_OP_DISTINCT: operator.ne,
    z3.Z3_OP_AND: lambda *operands: all(operands),
    z3.Z3_OP_OR: lambda *operands: any(operands),
    z3.Z3_OP_NOT: operator.not_,
    z3.Z3_OP_IMPLIES: lambda given, then: not given or then,
}
