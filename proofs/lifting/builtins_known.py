# SPDX-License-Identifier: Apache-2.0
"""The functions of Python that have a meaning here. Keywords are known only where said."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kvreshard.proofs.lifting import numbers
from kvreshard.proofs.lifting.expressions import said, to_integer, truth
from kvreshard.proofs.lifting.values import (
    Builtin,
    Lazily,
    Range,
    Record,
    Value,
    is_integer,
    is_known,
    is_truth,
    kind_of,
)

if TYPE_CHECKING:
    import ast
    from collections.abc import Callable, Iterator, Sequence

    from kvreshard.proofs.lifting.interpreter import Interpreter
    from kvreshard.proofs.lifting.scope import Scope


def _arguments(scope: Scope, node: ast.Call, values: tuple[Value, ...], *legal: int) -> None:
    if len(values) not in legal:
        raise scope.unsupported(node, f"{len(values)} arguments: {said(node)}")


def _integers(scope: Scope, node: ast.Call, values: tuple[Value, ...]) -> list[Value]:
    """Return integers as they are: a truth value would stay one in what is returned."""
    for value in values:
        if not is_integer(value):
            raise scope.unsupported(node, f"a {kind_of(value)} where an integer is: {said(node)}")
    return list(values)


def _extremum(
    choose: Callable[..., Value],
) -> Callable[..., Value]:
    def call(run: Interpreter, scope: Scope, node: ast.Call, *values: Value) -> Value:
        if len(values) == 1:
            values = tuple(run.iterate(scope, values[0], node))
            if not values:
                raise scope.raises("ValueError", node)
        if not values:
            raise scope.raises("TypeError", node)
        return choose(scope.path, _integers(scope, node, values))

    return call


def _absolute(run: Interpreter, scope: Scope, node: ast.Call, *values: Value) -> Value:  # noqa: ARG001 - has the parameters of all
    _arguments(scope, node, values, 1)
    return numbers.absolute(scope.path, to_integer(values[0], scope, node))


def _divmod(run: Interpreter, scope: Scope, node: ast.Call, *values: Value) -> Value:  # noqa: ARG001 - has the parameters of all
    _arguments(scope, node, values, 2)
    left, right = (to_integer(value, scope, node) for value in values)
    return (
        numbers.floor_division(scope.path, left, right, node, scope.file),
        numbers.remainder(scope.path, left, right, node, scope.file),
    )


def _length(run: Interpreter, scope: Scope, node: ast.Call, *values: Value) -> Value:  # noqa: ARG001 - has the parameters of all
    _arguments(scope, node, values, 1)
    value = values[0]
    if isinstance(value, Record) and value.kind.is_tuple:
        return len(value.fields)
    if not isinstance(value, (tuple, list, str)):
        raise scope.unsupported(node, f"the length of a {kind_of(value)}: {said(node)}")
    return len(value)


def _range(run: Interpreter, scope: Scope, node: ast.Call, *values: Value) -> Value:  # noqa: ARG001 - has the parameters of all
    _arguments(scope, node, values, 1, 2, 3)
    given = [to_integer(value, scope, node) for value in values]
    start, stop = (0, given[0]) if len(given) == 1 else (given[0], given[1])
    step = given[2] if len(given) == 3 else 1
    if not is_known(step):
        raise scope.unsupported(node, f"a range whose step is not known: {said(node)}")
    if step == 0:
        raise scope.raises("ValueError", node)
    return Range(start, stop, step)


def _enumerate(run: Interpreter, scope: Scope, node: ast.Call, *values: Value) -> Value:
    _arguments(scope, node, values, 1)
    return Lazily(enumerate(run.iterate(scope, values[0], node)))


def _zip(run: Interpreter, scope: Scope, node: ast.Call, *values: Value) -> Value:
    return Lazily(zip(*(run.iterate(scope, value, node) for value in values), strict=False))


def _reversed(run: Interpreter, scope: Scope, node: ast.Call, *values: Value) -> Value:
    _arguments(scope, node, values, 1)
    over = values[0]
    if isinstance(over, Range) and over.step == 1:
        return Lazily(run.iterate(scope, Range(over.stop - 1, over.start - 1, -1), node))
    if not isinstance(over, (tuple, list)):
        raise scope.unsupported(node, f"a {kind_of(over)} turned round: {said(node)}")
    return Lazily(_down_from(over, len(over) - 1))


def _down_from(items: Sequence[Value], last: int) -> Iterator[Value]:
    """Yield items from a place down to the first; a list may have changed meanwhile."""
    for at in range(last, -1, -1):
        if at >= len(items):
            return
        yield items[at]


def _list(run: Interpreter, scope: Scope, node: ast.Call, *values: Value) -> Value:
    _arguments(scope, node, values, 0, 1)
    return [value for one in values for value in run.iterate(scope, one, node)]


def _tuple(run: Interpreter, scope: Scope, node: ast.Call, *values: Value) -> Value:
    return tuple(_list(run, scope, node, *values))


def _sum(run: Interpreter, scope: Scope, node: ast.Call, *values: Value) -> Value:
    _arguments(scope, node, values, 1, 2)
    total = _integers(scope, node, values[1:])[0] if len(values) == 2 else 0
    for value in run.iterate(scope, values[0], node):
        total = total + to_integer(value, scope, node)
    return total


def _any(run: Interpreter, scope: Scope, node: ast.Call, *values: Value) -> Value:
    return _first_that_is(True, run, scope, node, *values)


def _all(run: Interpreter, scope: Scope, node: ast.Call, *values: Value) -> Value:
    return _first_that_is(False, run, scope, node, *values)


def _first_that_is(
    wanted: bool, run: Interpreter, scope: Scope, node: ast.Call, *values: Value
) -> Value:
    """Look for an item that is, or is not, true; those after it are not computed."""
    _arguments(scope, node, values, 1)
    for value in run.iterate(scope, values[0], node):
        if scope.path.decide(truth(value, scope, node), node) is wanted:
            return wanted
    return not wanted


def _integer(run: Interpreter, scope: Scope, node: ast.Call, *values: Value) -> Value:  # noqa: ARG001 - has the parameters of all
    _arguments(scope, node, values, 1)
    if not is_integer(values[0]) and not is_truth(values[0]):
        raise scope.unsupported(node, f"a {kind_of(values[0])} made an integer: {said(node)}")
    return to_integer(values[0], scope, node)


def _truth(run: Interpreter, scope: Scope, node: ast.Call, *values: Value) -> Value:  # noqa: ARG001 - has the parameters of all
    _arguments(scope, node, values, 0, 1)
    return truth(values[0], scope, node) if values else False


_KNOWN: dict[str, Callable[..., Value]] = {
    "abs": _absolute,
    "all": _all,
    "any": _any,
    "bool": _truth,
    "divmod": _divmod,
    "enumerate": _enumerate,
    "int": _integer,
    "len": _length,
    "list": _list,
    "max": _extremum(numbers.largest),
    "min": _extremum(numbers.smallest),
    "range": _range,
    "reversed": _reversed,
    "sum": _sum,
    "tuple": _tuple,
    "zip": _zip,
}

# Those that take integers only: they may be worked out where they are not called.
_PURE = {"abs", "max", "min"}

BUILTINS: dict[str, Value] = {
    name: Builtin(name, call, is_pure=name in _PURE) for name, call in _KNOWN.items()
}

# What may take a generator expression: it is taken at once, before any name in it changes.
TAKES_ALL = frozenset({"all", "any", "list", "max", "min", "sum", "tuple"})
