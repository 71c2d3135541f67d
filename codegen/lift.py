# SPDX-License-Identifier: Apache-2.0
"""Lift emitted Python functions back to z3.

The way back from `printer`, written without looking at it: it starts from Python's meaning. Only
a short list of constructs is known; anything else is an `UnsupportedError` with its line. Integers
and truth values are kept apart, so that nothing depends on True being 1.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import z3

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from kvreshard.spec.formula import Formula


class UnsupportedError(Exception):
    """The source has something whose meaning the lifter does not know."""

    def __init__(self, node: ast.AST, what: str) -> None:
        """Keep the line of the node."""
        super().__init__(what)
        self.line: int = getattr(node, "lineno", 1)
        self.what = what


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
        divisions: every division.
        calls: every application of a formula.
        integers: every integer that it computes, from its parameters on.
    """

    parameter_names: tuple[str, ...]
    body: z3.ExprRef
    divisions: tuple[Division, ...]
    calls: tuple[Computed, ...]
    integers: tuple[Computed, ...]


def lift_function(
    node: ast.FunctionDef,
    callees: Mapping[str, Formula],
    lifter: type[Lifter] | None = None,
) -> Lifted:
    """Return the meaning of a function of integers.

    Args:
        node: the definition of the function.
        callees: the formulas that it may call; a call becomes an application of the symbol.
        lifter: what gives each construct its meaning; `Lifter` unless given.

    Raises:
        UnsupportedError: it has a construct outside the known ones.
    """
    kind = lifter or Lifter
    names = _parameters(node, kind.integer)
    lifting = kind(callees, {name: z3.Int(name) for name in names})
    body = lifting.run(_without_docstring(node))
    _check_annotation(node, node.returns, kind.truth if z3.is_bool(body) else kind.integer)
    return Lifted(
        names,
        body,
        tuple(lifting.divisions),
        tuple(lifting.calls),
        tuple(lifting.integers),
    )


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


def _without_docstring(node: ast.FunctionDef) -> list[ast.stmt]:
    return node.body[1:] if ast.get_docstring(node) is not None else node.body


_COMPARISONS: dict[type[ast.cmpop], Callable[[z3.ArithRef, z3.ArithRef], z3.BoolRef]] = {
    ast.Eq: lambda left, right: left == right,
    ast.NotEq: lambda left, right: left != right,
    ast.Lt: lambda left, right: left < right,
    ast.LtE: lambda left, right: left <= right,
    ast.Gt: lambda left, right: left > right,
    ast.GtE: lambda left, right: left >= right,
}


def floor_division(dividend: z3.ArithRef, divisor: z3.ArithRef) -> z3.ArithRef:
    """Return Python's `//`, from z3's Euclidean division; for divisor 0 it means nothing."""
    return z3.If(divisor > 0, dividend / divisor, (-dividend) / (-divisor))


def floor_remainder(dividend: z3.ArithRef, divisor: z3.ArithRef) -> z3.ArithRef:
    """Return Python's `%`, which has the sign of the divisor; for 0 it means nothing."""
    return z3.If(divisor > 0, dividend % divisor, -((-dividend) % (-divisor)))


@dataclass
class Lifter:
    """The state of lifting one function, and what is known: the constructs of Python's integers.

    Attributes:
        integer: the annotation of an integer.
        truth: the annotation of a truth value.
        known: for each construct that has a meaning here, the method that gives it.
        builtins: the names that have a meaning without being a parameter or a formula.
    """

    integer: ClassVar[str] = "int"
    truth: ClassVar[str] = "bool"
    known: ClassVar[Mapping[type[ast.expr], Callable[[Any, Any], z3.ExprRef]]]
    builtins: ClassVar[tuple[str, ...]] = ("max", "min")

    callees: Mapping[str, Formula]
    values: dict[str, z3.ExprRef]
    divisions: list[Division] = field(default_factory=list)
    calls: list[Computed] = field(default_factory=list)
    integers: list[Computed] = field(default_factory=list)
    path: list[z3.BoolRef] = field(default_factory=list)

    def run(self, statements: list[ast.stmt]) -> z3.ExprRef:
        for statement in statements[:-1]:
            self._assign(statement)
        last = statements[-1] if statements else None
        if not isinstance(last, ast.Return) or last.value is None:
            where = last or ast.Pass(lineno=1, col_offset=0)
            raise UnsupportedError(where, "a function that does not end by returning a value")
        return self._value(last.value)

    def _assign(self, statement: ast.stmt) -> None:
        if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
            raise UnsupportedError(statement, f"a {type(statement).__name__} statement")
        target = statement.targets[0]
        if not isinstance(target, ast.Name):
            raise UnsupportedError(statement, f"assignment to a {type(target).__name__}")
        if target.id in self.values or target.id in (*self.callees, *self.builtins):
            raise UnsupportedError(statement, f"a second meaning for {target.id}")
        self.values[target.id] = self._value(statement.value)

    def _value(self, node: ast.expr) -> z3.ExprRef:
        lift = self.known.get(type(node))
        if lift is None:
            raise UnsupportedError(node, f"a {type(node).__name__}: {ast.unparse(node)}")
        value = lift(self, node)
        if z3.is_int(value):
            self.integers.append(Computed(value, node.lineno))
        return value

    def _integer(self, node: ast.expr) -> z3.ArithRef:
        value = self._value(node)
        if not z3.is_int(value):
            raise UnsupportedError(node, f"not an integer: {ast.unparse(node)}")
        return value

    def _truth(self, node: ast.expr) -> z3.BoolRef:
        value = self._value(node)
        if not z3.is_bool(value):
            raise UnsupportedError(node, f"not a truth value: {ast.unparse(node)}")
        return value

    def _name(self, node: ast.Name) -> z3.ExprRef:
        if node.id not in self.values:
            raise UnsupportedError(node, f"the name {node.id}")
        return self.values[node.id]

    def _constant(self, node: ast.Constant) -> z3.ExprRef:
        if isinstance(node.value, bool):
            return z3.BoolVal(node.value)
        if isinstance(node.value, int):
            return z3.IntVal(node.value)
        raise UnsupportedError(node, f"the constant {node.value!r}")

    def _binary(self, node: ast.BinOp) -> z3.ExprRef:
        left, right = self._integer(node.left), self._integer(node.right)
        if isinstance(node.op, ast.Add):
            return left + right
        if isinstance(node.op, ast.Sub):
            return left - right
        if isinstance(node.op, ast.Mult):
            return left * right
        if not isinstance(node.op, (ast.FloorDiv, ast.Mod)):
            raise UnsupportedError(node, f"the operator {type(node.op).__name__}")
        self.divisions.append(Division(right, z3.And(*self.path), node.lineno))
        divide = floor_division if isinstance(node.op, ast.FloorDiv) else floor_remainder
        return divide(left, right)

    def _unary(self, node: ast.UnaryOp) -> z3.ExprRef:
        if isinstance(node.op, ast.USub):
            return -self._integer(node.operand)
        if isinstance(node.op, ast.Not):
            return z3.Not(self._truth(node.operand))
        raise UnsupportedError(node, f"the operator {type(node.op).__name__}")

    def _connective(self, node: ast.BoolOp) -> z3.ExprRef:
        # That the second operand may not be computed matters to divisions only. Theirs are
        # demanded to be defined in any case, which is more than needed.
        values = [self._truth(value) for value in node.values]
        return z3.And(*values) if isinstance(node.op, ast.And) else z3.Or(*values)

    def _comparison(self, node: ast.Compare) -> z3.ExprRef:
        operands = [self._integer(operand) for operand in (node.left, *node.comparators)]
        links = []
        for operator, left, right in zip(node.ops, operands, operands[1:], strict=False):
            if type(operator) not in _COMPARISONS:
                raise UnsupportedError(node, f"the comparison {type(operator).__name__}")
            links.append(_COMPARISONS[type(operator)](left, right))
        return links[0] if len(links) == 1 else z3.And(*links)

    def _conditional(self, node: ast.IfExp) -> z3.ExprRef:
        condition = self._truth(node.test)
        then = self._under(condition, node.body)
        otherwise = self._under(z3.Not(condition), node.orelse)
        if then.sort() != otherwise.sort():
            raise UnsupportedError(node, "branches of different types")
        return z3.If(condition, then, otherwise)

    def _under(self, condition: z3.BoolRef, node: ast.expr) -> z3.ExprRef:
        self.path.append(condition)
        value = self._value(node)
        self.path.pop()
        return value

    def _call(self, node: ast.Call) -> z3.ExprRef:
        if not isinstance(node.func, ast.Name) or node.keywords:
            raise UnsupportedError(node, f"the call {ast.unparse(node)}")
        name = node.func.id
        if name in self.builtins and len(node.args) >= 2:
            arguments = [self._integer(argument) for argument in node.args]
            best = arguments[0]
            for other in arguments[1:]:
                best = z3.If(other > best if name == "max" else other < best, other, best)
            return best
        return self._application(node, name)

    def _application(self, node: ast.Call, name: str) -> z3.ExprRef:
        if name not in self.callees or name in self.values:
            raise UnsupportedError(node, f"a call of {name}")
        arguments = [self._integer(argument) for argument in node.args]
        if len(arguments) != len(self.callees[name].parameters):
            raise UnsupportedError(node, f"{len(arguments)} arguments for {name}")
        value = self.callees[name](*arguments)
        self.calls.append(Computed(value, node.lineno))
        return value


Lifter.known = {
    ast.Name: Lifter._name,
    ast.Constant: Lifter._constant,
    ast.BinOp: Lifter._binary,
    ast.UnaryOp: Lifter._unary,
    ast.BoolOp: Lifter._connective,
    ast.Compare: Lifter._comparison,
    ast.IfExp: Lifter._conditional,
    ast.Call: Lifter._call,
}
