# SPDX-License-Identifier: Apache-2.0
"""What makes a formula safe in 64-bit integers, of which arrays are made.

Under its legal ranges and the bounds of `spec.int64` every integer that the formula computes fits,
what the formulas it applies return included; and these get arguments within their bounds. That they
get legal ones is their definedness. The solver settles it from the definitions, without lemmas.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import z3

from kvreshard.spec.formula import FORMULAS, Formula, Truth
from kvreshard.spec.int64 import INT64_BOUNDS, fits_int64, int64_bounds_for

if TYPE_CHECKING:
    from collections.abc import Iterator


def int64_formulas() -> tuple[Formula, ...]:
    """Return the formulas whose parameters all have bounds: all but those of the byte layout."""
    return tuple(
        made
        for _, made in sorted(FORMULAS.items())
        if INT64_BOUNDS.keys() >= set(made.parameter_names)
    )


def does_not_overflow(made: Formula) -> Truth:
    """Return that each integer the formula computes fits, and each argument is within bounds."""
    return z3.And(*_fits(made.body, z3.BoolVal(True)))


def _fits(expression: z3.ExprRef, path: Truth) -> Iterator[Truth]:
    """Yield it for each integer in an expression and for each application.

    As for divisors, only a conditional guards its branches.
    """
    if z3.is_app_of(expression, z3.Z3_OP_ITE):
        test, then, otherwise = expression.children()
        yield from _fits(test, path)
        yield from _fits(then, z3.And(path, test))
        yield from _fits(otherwise, z3.And(path, z3.Not(test)))
    else:
        for child in expression.children():
            yield from _fits(child, path)
    if z3.is_int(expression):
        yield z3.Implies(path, fits_int64(expression))
    callee = FORMULAS.get(expression.decl().name())
    if callee is not None:
        pairs = list(zip(callee.parameters, expression.children(), strict=True))
        for bound in int64_bounds_for(callee.parameter_names):
            yield z3.Implies(path, z3.substitute(bound.condition, *pairs))
