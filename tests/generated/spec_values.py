# SPDX-License-Identifier: Apache-2.0
"""Values of the specification's formulas: by z3 itself, and by walking the z3 expression.

z3 takes about a tenth of a millisecond for each value. The walk computes a formula for many
arguments at once, and a test ties it to z3. It knows z3's meaning of each operator, and refuses a
divisor below 1, for which the meanings of z3 and of Python part.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
import z3

from kvreshard.spec.formula import FORMULAS, Formula, unfold

Values = npt.NDArray[np.int64]


def by_z3(made: Formula, *arguments: int) -> int | bool:
    """Return the value that z3 gives the formula."""
    pairs = [
        (parameter, z3.IntVal(argument))
        for parameter, argument in zip(made.parameters, arguments, strict=True)
    ]
    value = z3.simplify(z3.substitute(_unfolded(made), *pairs))
    return bool(z3.is_true(value)) if z3.is_bool(value) else int(value.as_long())


@cache
def _unfolded(made: Formula) -> z3.ExprRef:
    return unfold(made.body)


def by_walking(made: Formula, *arguments: Values) -> Any:
    """Return the formula's values for arrays of arguments."""
    return _walk(made.body, dict(zip(made.parameter_names, arguments, strict=True)))


def _walk(expression: z3.ExprRef, values: dict[str, Values]) -> Any:
    if z3.is_int_value(expression):
        return np.int64(expression.as_long())
    kind, name = expression.decl().kind(), expression.decl().name()
    if kind == z3.Z3_OP_UNINTERPRETED and name in values:
        return values[name]
    children = [_walk(child, values) for child in expression.children()]
    if kind == z3.Z3_OP_UNINTERPRETED:
        return by_walking(FORMULAS[name], *children)
    if kind in (z3.Z3_OP_IDIV, z3.Z3_OP_MOD):
        assert np.all(children[1] >= 1), f"a divisor below 1 in {expression}"
    return _OPERATORS[kind](*children)


_OPERATORS: dict[int, Any] = {
    z3.Z3_OP_ADD: lambda a, b: a + b,
    z3.Z3_OP_SUB: lambda a, b: a - b,
    z3.Z3_OP_MUL: lambda a, b: a * b,
    z3.Z3_OP_IDIV: np.floor_divide,
    z3.Z3_OP_MOD: np.mod,
    z3.Z3_OP_EQ: np.equal,
    z3.Z3_OP_LE: np.less_equal,
    z3.Z3_OP_LT: np.less,
    z3.Z3_OP_GE: np.greater_equal,
    z3.Z3_OP_GT: np.greater,
    z3.Z3_OP_AND: lambda *all_of: np.logical_and.reduce(np.broadcast_arrays(*all_of)),
    z3.Z3_OP_OR: lambda *any_of: np.logical_or.reduce(np.broadcast_arrays(*any_of)),
    z3.Z3_OP_ITE: np.where,
}
