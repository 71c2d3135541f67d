# SPDX-License-Identifier: Apache-2.0
"""What a formula of the specification is: a named z3 expression over named parameters.

A formula is written as a Python function over z3 integers. Calling it in another formula gives
an application of its symbol, not a copy of its body, so that the emitted Python has the same
calls, and a proof can leave a symbol closed or unfold it.

z3's integer division is Euclidean and total, Python's floors and raises. The two agree for every
dividend where the divisor is at least 1, which is what the definedness obligations show for every
division of every formula. Under that condition `//` and `%` below mean what they mean in Python.
"""

from __future__ import annotations

import inspect
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, TypeAlias

import z3

if TYPE_CHECKING:
    from collections.abc import Callable

# z3py spells integer division `/`; the specification spells it as Python does.
z3.ArithRef.__floordiv__ = z3.ArithRef.__div__

Integer: TypeAlias = z3.ArithRef
Truth: TypeAlias = z3.BoolRef


@dataclass(frozen=True)
class Hypothesis:
    """A named condition that a theorem assumes and its caller has to meet."""

    name: str
    condition: Truth


def maximum(left: Integer | int, right: Integer | int) -> Integer:
    """Return the larger of two integers, as Python's `max` does."""
    return z3.If(left >= right, left, right)


def minimum(left: Integer | int, right: Integer | int) -> Integer:
    """Return the smaller of two integers, as Python's `min` does."""
    return z3.If(left <= right, left, right)


def extremum(condition: z3.ExprRef, then: z3.ExprRef, otherwise: z3.ExprRef) -> str | None:
    """Return `max` or `min` where the conditional is that of its two branches."""
    if not (z3.is_ge(condition) or z3.is_le(condition)):
        return None
    if not (then.eq(condition.arg(0)) and otherwise.eq(condition.arg(1))):
        return None
    return "max" if z3.is_ge(condition) else "min"


@dataclass(frozen=True, eq=False)
class Formula:
    """A named integer or truth-valued formula.

    Attributes:
        name: the name in the specification, the ledger and the generated module.
        parameters: integer constants, in the order of the arguments.
        body: the defining expression over the parameters.
        symbol: the function symbol that stands for the formula in other formulas.
        sentence: what the formula means, with its unit.
    """

    name: str
    parameters: tuple[Integer, ...]
    body: z3.ExprRef
    symbol: z3.FuncDeclRef = field(repr=False)
    sentence: str

    @property
    def parameter_names(self) -> tuple[str, ...]:
        """Return the names of the parameters, in the order of the arguments."""
        return tuple(parameter.decl().name() for parameter in self.parameters)

    def __call__(self, *arguments: Integer | int) -> z3.ExprRef:
        """Apply the formula, without unfolding it."""
        if len(arguments) != len(self.parameters):
            raise TypeError(f"{self.name} takes {self.parameter_names}, got {arguments}")
        return self.symbol(*arguments)

    @cached_property
    def definition(self) -> tuple[z3.FuncDeclRef, z3.ExprRef]:
        """Return the symbol and its body with the parameters as de Bruijn variables."""
        count = len(self.parameters)
        variables = [z3.Var(index, z3.IntSort()) for index in range(count)]
        pairs = list(zip(self.parameters, variables, strict=True))
        return self.symbol, z3.substitute(self.body, *pairs)


FORMULAS: dict[str, Formula] = {}


def formula(define: Callable[..., z3.ExprRef]) -> Formula:
    """Register the formula that a Python function over z3 integers defines."""
    name = define.__name__
    parameters = tuple(z3.Int(parameter) for parameter in inspect.signature(define).parameters)
    body = define(*parameters)
    symbol = z3.Function(name, *[z3.IntSort()] * len(parameters), body.sort())
    made = Formula(name, parameters, body, symbol, inspect.cleandoc(define.__doc__ or ""))
    if name in FORMULAS:
        raise ValueError(f"formula {name} is defined twice")
    FORMULAS[name] = made
    return made


def unfold(expression: z3.ExprRef, keep: frozenset[str] = frozenset()) -> z3.ExprRef:
    """Replace each formula symbol by its body, except those named in `keep`."""
    definitions = [made.definition for made in FORMULAS.values() if made.name not in keep]
    while True:
        opened = z3.substitute_funs(expression, *definitions)
        if opened.eq(expression):
            return opened
        expression = opened
