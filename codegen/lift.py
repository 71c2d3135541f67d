# SPDX-License-Identifier: Apache-2.0
"""Read emitted Python functions back as z3 expressions.

What each construct means is the lifter's, `proofs.lifting`, which knows nothing of the printer and
is compared with CPython. Added here is what validation needs besides: that a function is one
expression, whose divisions, calls and integers are listed.

The constructs are fewer than the lifter knows: those that the printer writes. Where less is read,
less has to be right. For arrays the list is needed: there a construct may mean something else.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import z3

from kvreshard.proofs.lifting.builtins_known import BUILTINS
from kvreshard.proofs.lifting.path import Meaning, Path, as_condition, as_term
from kvreshard.proofs.lifting.program import Program
from kvreshard.proofs.lifting.run import RaisedAt, run_along
from kvreshard.proofs.lifting.unsupported import UnsupportedError
from kvreshard.proofs.lifting.values import Builtin, FunctionValue, is_integer, is_truth, kind_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kvreshard.proofs.lifting.interpreter import Interpreter
    from kvreshard.proofs.lifting.scope import Scope
    from kvreshard.proofs.lifting.values import Integer, Truth, Value
    from kvreshard.spec.formula import Formula


@dataclass(frozen=True)
class Division:
    """A division: its divisor, the condition under which it is computed, and its line."""

    divisor: z3.ArithRef
    condition: z3.BoolRef
    line: int


@dataclass(frozen=True)
class Computed:
    """An integer that is computed, or an application of a formula, and its line."""

    value: z3.ExprRef
    line: int


@dataclass(frozen=True)
class Lifted:
    """A function as an expression over its parameters, and what it does on the way.

    Attributes:
        parameter_names: in their order.
        body: what it returns.
        divisions: every division whose divisor is not a number.
        calls: every application of a formula.
        integers: every integer that it computes, from its parameters on.
    """

    parameter_names: tuple[str, ...]
    body: z3.ExprRef
    divisions: tuple[Division, ...]
    calls: tuple[Computed, ...]
    integers: tuple[Computed, ...]


@dataclass(frozen=True)
class Reading:
    """How the functions of a module are read.

    Attributes:
        integer: the annotation of an integer.
        truth: the annotation of a truth value.
        expressions: the kinds of expressions that it may have.
        builtins: the names that have a meaning without being a parameter or a formula.
        elementwise: whether a value stands for the elements of an array.
    """

    integer: str
    truth: str
    expressions: tuple[type[ast.expr], ...]
    builtins: Mapping[str, Value]
    elementwise: bool = False


PYTHON = Reading(
    integer="int",
    truth="bool",
    expressions=(
        *(ast.Name, ast.Constant, ast.BinOp, ast.UnaryOp, ast.BoolOp, ast.Compare),
        *(ast.IfExp, ast.Call),
    ),
    builtins={name: BUILTINS[name] for name in ("max", "min")},
)


def lift_function(
    node: ast.FunctionDef, callees: Mapping[str, Formula], reading: Reading = PYTHON
) -> Lifted:
    """Return the meaning of a function of integers.

    Args:
        node: the definition of the function.
        callees: the formulas that it may call; a call becomes an application of the symbol.
        reading: what the function may consist of.

    Raises:
        UnsupportedError: it has a construct outside the known ones.
    """
    names = _parameters(node, reading.integer)
    _check_body(node, {*names, *callees, *reading.builtins}, reading)
    listing = _Listing(reading.elementwise)
    # The module binds nothing here: a name is local, a formula's or a builtin's, or has no meaning.
    function = FunctionValue(Program("", ast.Module([node], [])), node)
    outcome = run_along(
        _OneWay(listing),
        function,
        [z3.Int(name) for name in names],
        builtins={
            **reading.builtins,
            **{name: _applied(formula, listing) for name, formula in callees.items()},
        },
    )
    if isinstance(outcome, RaisedAt):
        where = ast.Pass(lineno=outcome.line, col_offset=0)
        raise UnsupportedError(where, f"a function that raises {outcome.kind}")
    body = _expression(node.body[-1], outcome.value)
    _check_annotation(node, node.returns, reading.truth if z3.is_bool(body) else reading.integer)
    return Lifted(
        names, body, tuple(listing.divisions), tuple(listing.calls), tuple(listing.integers)
    )


@dataclass(eq=False)
class _Listing(Meaning):
    """Python's integers, with a list of what validation has to know of them."""

    elementwise: bool
    divisions: list[Division] = field(default_factory=list)
    calls: list[Computed] = field(default_factory=list)
    integers: list[Computed] = field(default_factory=list)

    def divisor_is_zero(self, path: Path, divisor: z3.ArithRef, node: ast.AST) -> bool:
        """List a division, which is then proved to be defined wherever it is computed."""
        self.divisions.append(Division(divisor, z3.And(*path.under), _line(node)))
        return False

    def computed(self, value: Integer, node: ast.AST) -> None:
        """List an integer."""
        self.integers.append(Computed(as_term(value), _line(node)))


class _OneWay(Path):
    """A way that does not part, so that what is gone along it is all that the function does."""

    def decide(self, condition: Truth, node: ast.AST) -> bool:
        """Return whether a condition holds, if that is plain."""
        if self.known(condition) is None and not self.under:
            raise UnsupportedError(node, "a condition that decides what else is computed")
        return super().decide(condition, node)


def _applied(formula: Formula, listing: _Listing) -> Builtin:
    """Return what a call of a formula's function means: the formula, closed."""

    def call(run: Interpreter, scope: Scope, node: ast.Call, *values: Value) -> Value:  # noqa: ARG001 - has the parameters of all
        if len(values) != len(formula.parameters):
            raise scope.unsupported(node, f"{len(values)} arguments for {formula.name}")
        for value in values:
            if not is_integer(value):
                what = f"a {kind_of(value)} as an argument of {formula.name}"
                raise scope.unsupported(node, what)
        applied = formula(*map(as_term, values))
        listing.calls.append(Computed(applied, node.lineno))
        return applied

    return Builtin(formula.name, call, is_pure=True)


def _expression(node: ast.stmt, value: Value) -> z3.ExprRef:
    if is_truth(value):
        return as_condition(value)
    if is_integer(value):
        return as_term(value)
    raise UnsupportedError(node, f"a function that returns a {kind_of(value)}")


def _line(node: ast.AST) -> int:
    return getattr(node, "lineno", 1)


def _parameters(node: ast.FunctionDef, integer: str) -> tuple[str, ...]:
    arguments = node.args
    if node.decorator_list or getattr(node, "type_params", None):
        raise UnsupportedError(node, "a decorator or type parameter")
    if arguments.posonlyargs or arguments.kwonlyargs or arguments.vararg or arguments.kwarg:
        raise UnsupportedError(node, "parameters that are not plain")
    if arguments.defaults:
        raise UnsupportedError(node, "a default value")
    for argument in arguments.args:
        _check_annotation(argument, argument.annotation, integer)
    return tuple(argument.arg for argument in arguments.args)


def _check_annotation(node: ast.AST, annotation: ast.expr | None, expected: str) -> None:
    found = ast.unparse(annotation) if annotation else "none"
    if found != expected:
        raise UnsupportedError(node, f"the annotation should be {expected}, found {found}")


def _check_body(node: ast.FunctionDef, taken: set[str], reading: Reading) -> None:
    """Check that a function gives names to expressions, each name one, and returns one."""
    statements = node.body[1:] if ast.get_docstring(node) is not None else node.body
    for statement in statements[:-1]:
        if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
            raise UnsupportedError(statement, f"a {type(statement).__name__} statement")
        target = statement.targets[0]
        if not isinstance(target, ast.Name):
            raise UnsupportedError(statement, f"assignment to a {type(target).__name__}")
        if target.id in taken:
            raise UnsupportedError(statement, f"a second meaning for {target.id}")
        taken.add(target.id)
        _check_expression(statement.value, reading)
    last = statements[-1] if statements else None
    if not isinstance(last, ast.Return) or last.value is None:
        where = last or ast.Pass(lineno=1, col_offset=0)
        raise UnsupportedError(where, "a function that does not end by returning a value")
    _check_expression(last.value, reading)


def _check_expression(expression: ast.expr, reading: Reading) -> None:
    for node in ast.walk(expression):
        if isinstance(node, ast.expr) and not isinstance(node, reading.expressions):
            raise UnsupportedError(node, f"a {type(node).__name__}: {ast.unparse(node)}")
