# SPDX-License-Identifier: Apache-2.0
"""Run a source by CPython and by the lifter, with numbers and with symbols, and compare."""

from __future__ import annotations

import dataclasses
import sys
import warnings
from dataclasses import dataclass
from functools import cached_property
from types import ModuleType
from typing import TYPE_CHECKING, Any

import z3

from kvreshard.proofs.lifting.path import Meaning, Path, Way, all_ways
from kvreshard.proofs.lifting.program import Program
from kvreshard.proofs.lifting.run import RaisedAt, Returned, run_along, run_on_numbers
from kvreshard.proofs.lifting.values import Record

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

FILE = "lifted.py"


@dataclass(frozen=True)
class Raised:
    """An exception of a kind, at a line."""

    kind: str
    line: int


@dataclass(frozen=True)
class Made:
    """An object of a class, with its fields."""

    kind: str
    fields: tuple[Any, ...]


def by_cpython(source: str, name: str, arguments: Sequence[Any]) -> Any:
    """Return what a function of a source returns, or what it raises."""
    module = ModuleType("lifted_by_cpython")
    # A dataclass looks its module up there.
    sys.modules[module.__name__] = module
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SyntaxWarning)
        exec(compile(source, FILE, "exec", dont_inherit=True), module.__dict__)
    try:
        return _plain(getattr(module, name)(*arguments))
    except Exception as error:
        line, frame = 0, error.__traceback__
        while frame is not None:
            if frame.tb_frame.f_code.co_filename == FILE:
                line = frame.tb_lineno
            frame = frame.tb_next
        return Raised(type(error).__name__, line)


def _plain(value: Any) -> Any:
    """Return a value in which objects are told by class and fields, and a bool is no integer."""
    if hasattr(value, "_fields"):
        return Made(type(value).__name__, tuple(map(_plain, value)))
    if dataclasses.is_dataclass(value):
        fields = tuple(_plain(getattr(value, one.name)) for one in dataclasses.fields(value))
        return Made(type(value).__name__, fields)
    if isinstance(value, (list, tuple)):
        return type(value)(map(_plain, value))
    return (type(value).__name__, value)


def _with_numbers(value: Any, numbers: Mapping[str, int]) -> Any:
    """Return a lifted value as `_plain` does, symbols replaced by numbers."""
    if isinstance(value, z3.ExprRef):
        value = _number(value, numbers)
    if isinstance(value, Record):
        fields = tuple(_with_numbers(one, numbers) for one in value.fields.values())
        return Made(value.kind.name, fields)
    if isinstance(value, (list, tuple)):
        return type(value)(_with_numbers(one, numbers) for one in value)
    return (type(value).__name__, value)


def _number(value: z3.ExprRef, numbers: Mapping[str, int]) -> int | bool:
    pairs = [(z3.Int(name), z3.IntVal(number)) for name, number in numbers.items()]
    found = z3.simplify(z3.substitute(value, *pairs))
    if z3.is_int_value(found):
        return int(found.as_long())
    assert z3.is_true(found) or z3.is_false(found), f"{value} is {found} for {numbers}"
    return bool(z3.is_true(found))


def _outcome(outcome: Returned | RaisedAt, numbers: Mapping[str, int]) -> Any:
    if isinstance(outcome, RaisedAt):
        assert outcome.file == FILE
        return Raised(outcome.kind, outcome.line)
    return _with_numbers(outcome.value, numbers)


class Solved(Meaning):
    """Leaves out the ways of which the solver sees that they cannot be gone."""

    def known(self, path: Path, condition: z3.BoolRef) -> bool | None:
        """Return whether a condition holds on this way, or None if that is not known."""
        for answer, excluded in ((True, z3.Not(condition)), (False, condition)):
            solver = z3.Solver()
            solver.set("rlimit", 100_000)
            solver.add(*path.conditions, *path.under, excluded)
            if solver.check() == z3.unsat:
                return answer
        return None


class SolvedApart(Solved):
    """Puts no two branches together as one expression."""

    merges = False


MEANINGS = (Meaning, Solved, SolvedApart)


@dataclass
class Compared:
    """A function of a source whose parameters are integers.

    Attributes:
        source: of the module.
        parameters: the names of the function's parameters.
        name: of the function.
        meaning: what decides about numbers that are not known.
    """

    source: str
    parameters: Sequence[str]
    name: str = "f"
    meaning: type[Meaning] = Meaning

    @cached_property
    def program(self) -> Program:
        """The parsed module."""
        return Program.parse(self.source, FILE)

    @cached_property
    def ways(self) -> list[Way]:
        """Every way through the function, its parameters unknown."""
        function = self.program.function(self.name)
        assert function is not None
        symbols = [z3.Int(name) for name in self.parameters]
        return all_ways(lambda path: run_along(path, function, symbols), self.meaning)

    def with_numbers(self, *numbers: int) -> Any:
        """Return what the lifter makes of the function on numbers."""
        function = self.program.function(self.name)
        assert function is not None
        return _outcome(run_on_numbers(function, *numbers), {})

    def with_symbols(self, *numbers: int) -> Any:
        """Return what the one way gives whose conditions hold for the numbers."""
        named = dict(zip(self.parameters, numbers, strict=True))
        held = [way for way in self.ways if all(_number(one, named) for one in way.conditions)]
        assert len(held) == 1, f"{len(held)} ways for {named} in\n{self.source}"
        return _outcome(held[0].outcome, named)

    def check(self, *numbers: int, symbols: bool = True) -> Any:
        """Check that the lifter and CPython agree, and return what they agree on."""
        expected = by_cpython(self.source, self.name, numbers)
        found = self.with_numbers(*numbers)
        assert found == expected, f"{found}, not {expected}, for {numbers} in\n{self.source}"
        if symbols:
            found = self.with_symbols(*numbers)
            what = f"symbols give {found}, not {expected}, for {numbers} in\n{self.source}"
            assert found == expected, what
        return expected
