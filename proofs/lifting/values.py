# SPDX-License-Identifier: Apache-2.0
"""The values that lifted code computes with.

An integer is a Python int or a z3 integer, a truth value a bool or a z3 truth value; a number
that is known is never a z3 expression. None, str, tuple and list stand for themselves. The rest
has a class here. Integers and truth values are kept apart: nothing rests on True being 1.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import z3

if TYPE_CHECKING:
    import ast
    from collections.abc import Callable, Iterator, Mapping

    from kvreshard.proofs.lifting.program import Program

Integer = Any
Truth = Any
Value = Any


@dataclass(frozen=True)
class Text:
    """A text whose letters are not followed, such as an f-string: it has no known value."""


@dataclass(frozen=True)
class Range:
    """Python's range: integers `start`, `stop`, and a `step` that is known and not 0."""

    start: Integer
    stop: Integer
    step: int


@dataclass(frozen=True, eq=False)
class Lazily:
    """Items that are computed as they are taken, once."""

    items: Iterator[Value]


@dataclass(frozen=True, eq=False)
class FunctionValue:
    """A function of a program; `bound` is the object whose method it is."""

    program: Program
    node: ast.FunctionDef
    bound: Value = None
    is_bound: bool = False


@dataclass(frozen=True, eq=False)
class ClassValue:
    """A named tuple or a dataclass of a program.

    Attributes:
        fields: its fields in order, each with the expression of its default, or None.
        is_tuple: whether its objects are tuples.
        keyword_only: whether its fields are given by keyword only.
    """

    program: Program
    node: ast.ClassDef
    fields: tuple[tuple[str, ast.expr | None], ...]
    is_tuple: bool
    keyword_only: bool = False

    @property
    def name(self) -> str:
        """Its name in its module."""
        return self.node.name


@dataclass(frozen=True, eq=False)
class Record:
    """An object of a named tuple or dataclass."""

    kind: ClassValue
    fields: dict[str, Value] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Builtin:
    """A function that has its meaning here: it is given the call and its evaluated arguments.

    Attributes:
        name: of the function.
        call: gives what a call returns.
        is_pure: whether it changes nothing, takes no items, and gives the same for the same.
        members: what its attributes mean, for a module such as numpy.
    """

    name: str
    call: Callable[..., Value]
    is_pure: bool = False
    members: Mapping[str, Value] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Imported:
    """A name that another module gives: what it is is not known."""

    module: str
    name: str


@dataclass(frozen=True, eq=False)
class Logger:
    """A logger: its calls are taken to have no effect."""


def is_integer(value: Value) -> bool:
    """Whether a value is an integer, known or not, and no truth value."""
    if isinstance(value, z3.ArithRef):
        return bool(value.is_int())
    return isinstance(value, int) and not isinstance(value, bool)


def is_truth(value: Value) -> bool:
    """Whether a value is a truth value, known or not."""
    return isinstance(value, (bool, z3.BoolRef))


def is_known(value: Value) -> bool:
    """Whether an integer or a truth value is a plain Python one."""
    return not isinstance(value, z3.ExprRef)


def is_frozen(value: Value) -> bool:
    """Whether nothing can change a value, so that it may be kept for several calls."""
    if isinstance(value, tuple):
        return all(map(is_frozen, value))
    if isinstance(value, Record):
        return all(map(is_frozen, value.fields.values()))
    if isinstance(value, FunctionValue):
        return is_frozen(value.bound)
    plain = (str, Text, Range, ClassValue, Imported, Logger)
    return is_integer(value) or is_truth(value) or value is None or isinstance(value, plain)


def as_integer(value: Value) -> Integer:
    """Return a truth value as the integer that Python computes with, an integer as it is."""
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, z3.BoolRef):
        return z3.If(value, z3.IntVal(1), z3.IntVal(0))
    return value


def kind_of(value: Value) -> str:
    """Name the type of a value as Python does."""
    if is_truth(value):
        return "bool"
    if is_integer(value):
        return "int"
    if isinstance(value, Text):
        return "str"
    if isinstance(value, Record):
        return value.kind.name
    if value is None:
        return "NoneType"
    return _KINDS.get(type(value), type(value).__name__)


_KINDS = {
    Builtin: "function",
    ClassValue: "type",
    FunctionValue: "function",
    Imported: "value of another module",
    Lazily: "iterator",
    Logger: "logger",
    Range: "range",
}
