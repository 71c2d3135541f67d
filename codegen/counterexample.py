# SPDX-License-Identifier: Apache-2.0
"""Where an emitted function and its formula differ, for small integers and in plain words."""

from __future__ import annotations

from typing import TYPE_CHECKING

import z3

from kvreshard.codegen.selection import assumed_by
from kvreshard.spec.formula import unfold

if TYPE_CHECKING:
    from kvreshard.spec.formula import Formula, Integer, Truth

_BOUNDS = (1, 2, 3, 4, 6, 8, 12, 16, 32)
_RLIMIT = 20_000_000


def smallest_difference(made: Formula, emitted: z3.ExprRef, defined: list[Truth]) -> str | None:
    """Return a sentence with small arguments for which the two differ, or None.

    Legal arguments are tried first. An answer is one that z3 found and evaluation confirmed.

    Args:
        made: the formula.
        emitted: what the emitted function computes, over the same parameters.
        defined: that every divisor of the formula is at least 1.
    """
    legal = [hypothesis.condition for hypothesis in assumed_by(made)]
    for conditions in ([*legal, *defined], defined):
        for bound in _BOUNDS:
            solver = z3.Solver()
            solver.set("rlimit", _RLIMIT)
            solver.add(*(unfold(condition) for condition in conditions))
            solver.add(unfold(made.body) != unfold(emitted))
            solver.add(*(z3.And(0 <= name, name <= bound) for name in made.parameters))
            if solver.check() == z3.sat:
                return _sentence(made, emitted, _shrink(solver, made.parameters))
    return None


def _shrink(solver: z3.Solver, parameters: tuple[Integer, ...]) -> list[tuple[Integer, z3.ExprRef]]:
    """Return values of the parameters, each the least that the solver finds, first to last."""
    model = solver.model()
    values = []
    for parameter in parameters:
        found = model.eval(parameter, model_completion=True)
        for smaller in range(found.as_long()):
            if solver.check(parameter == smaller) == z3.sat:
                model = solver.model()
                found = z3.IntVal(smaller)
                break
        solver.add(parameter == found)
        values.append((parameter, found))
    return values


def _sentence(made: Formula, emitted: z3.ExprRef, values: list[tuple[Integer, z3.ExprRef]]) -> str:
    arguments = ", ".join(f"{name}={value}" for name, value in values)
    expected = z3.simplify(z3.substitute(unfold(made.body), *values))
    found = z3.simplify(z3.substitute(unfold(emitted), *values))
    return f"for {arguments} the formula gives {expected}, the function {found}"
