# SPDX-License-Identifier: Apache-2.0
"""Run a function of a program on values, along one path or along all."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from kvreshard.proofs.lifting.interpreter import Interpreter
from kvreshard.proofs.lifting.path import Meaning, Path
from kvreshard.proofs.lifting.scope import Scope
from kvreshard.proofs.lifting.unsupported import PythonRaises, UnsupportedError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from kvreshard.proofs.lifting.values import FunctionValue, Value


@dataclass(frozen=True)
class Returned:
    """The function returned a value."""

    value: Value


@dataclass(frozen=True)
class RaisedAt:
    """The function raised an exception of a kind, at a line of a file."""

    kind: str
    file: str
    line: int


def run_along(
    path: Path,
    function: FunctionValue,
    arguments: Sequence[Value] = (),
    keywords: Mapping[str, Value] | None = None,
    builtins: Mapping[str, Value] | None = None,
) -> Returned | RaisedAt:
    """Run a function along a path.

    Raises:
        UnsupportedError: it has a construct whose meaning is not known.
    """
    interpreter = Interpreter(path, builtins)
    scope = Scope(path, function.program)
    try:
        value = interpreter.run_function(
            scope, function.node, function, arguments, dict(keywords or {})
        )
    except PythonRaises as raised:
        return RaisedAt(raised.kind, raised.file, raised.line)
    except RecursionError as error:
        what = "expressions or calls nested too deeply"
        raise UnsupportedError(function.node, what, function.program.shown) from error
    return Returned(value)


def run_on_numbers(function: FunctionValue, *arguments: Value) -> Returned | RaisedAt:
    """Run a function on known values.

    Raises:
        UnsupportedError: it has a construct whose meaning is not known.
    """
    return run_along(Path(Meaning()), function, arguments)
