# SPDX-License-Identifier: Apache-2.0
"""Read emitted functions over numpy arrays back as z3 expressions.

An array stands for each of its elements: every construct that is known here takes element by
element, after broadcasting, so the meaning of a function is the meaning for one of each. That
64-bit integers compute what integers do is not taken for granted: `integers` of what is lifted
lists what has to fit.

Nothing is computed conditionally. `and`, `or`, `not`, a conditional and a chain of comparisons
ask an array for its truth value, and Python's `max` and `min` do so too: they are not known here.
Neither does a truth value count as 0 or 1, since numpy adds two of them to one.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from kvreshard.codegen.lift import Reading
from kvreshard.proofs.lifting import numbers
from kvreshard.proofs.lifting.values import Builtin, is_integer, is_known, is_truth, kind_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from kvreshard.proofs.lifting.interpreter import Interpreter
    from kvreshard.proofs.lifting.scope import Scope
    from kvreshard.proofs.lifting.values import Truth, Value


def _no_function(run: Interpreter, scope: Scope, node: ast.Call, *values: Value) -> Value:  # noqa: ARG001 - has the parameters of all
    raise scope.unsupported(node, f"the call {ast.unparse(node)}")


def _function(
    name: str, count: int, is_kind: Callable[[Value], bool], compute: Callable[..., Value]
) -> Builtin:
    """Return a function of numpy's of so many arguments, each of a kind."""

    def call(run: Interpreter, scope: Scope, node: ast.Call, *values: Value) -> Value:  # noqa: ARG001 - has the parameters of all
        if len(values) != count:
            raise scope.unsupported(node, f"{len(values)} arguments: {ast.unparse(node)}")
        for value in values:
            if not is_kind(value):
                what = f"a {kind_of(value)} as an argument: {ast.unparse(node)}"
                raise scope.unsupported(node, what)
        return compute(scope, *values)

    return Builtin(name, call, is_pure=True)


def _maximum(scope: Scope, left: Value, right: Value) -> Value:
    return numbers.largest(scope.path, [left, right])


def _minimum(scope: Scope, left: Value, right: Value) -> Value:
    return numbers.smallest(scope.path, [left, right])


def _logical_and(scope: Scope, left: Truth, right: Truth) -> Truth:  # noqa: ARG001 - has the parameters of all
    return numbers.both(left, right)


def _logical_or(scope: Scope, left: Truth, right: Truth) -> Truth:  # noqa: ARG001 - has the parameters of all
    return numbers.either(left, right)


def _logical_not(scope: Scope, value: Truth) -> Truth:  # noqa: ARG001 - has the parameters of all
    return numbers.opposite(value)


_INT64 = Builtin("int64", _no_function)


def _array(run: Interpreter, scope: Scope, node: ast.Call, *values: Value) -> Value:  # noqa: ARG001 - has the parameters of all
    """Return an array of one integer, which is a number in the text."""
    if len(values) != 2:
        raise scope.unsupported(node, f"{len(values)} arguments: {ast.unparse(node)}")
    number, dtype = values
    if dtype is not _INT64 or not (is_integer(number) and is_known(number)):
        raise scope.unsupported(node, f"an array that is not one integer: {ast.unparse(node)}")
    return number


_FUNCTIONS = (
    _function("maximum", 2, is_integer, _maximum),
    _function("minimum", 2, is_integer, _minimum),
    _function("logical_and", 2, is_truth, _logical_and),
    _function("logical_or", 2, is_truth, _logical_or),
    _function("logical_not", 1, is_truth, _logical_not),
    Builtin("array", _array, is_pure=True),
)
_NUMPY = Builtin(
    "np", _no_function, members={**{one.name: one for one in _FUNCTIONS}, "int64": _INT64}
)

ARRAYS = Reading(
    integer="NDArray[np.int64]",
    truth="NDArray[np.bool_]",
    expressions=(
        *(ast.Name, ast.Constant, ast.BinOp, ast.UnaryOp, ast.Compare, ast.Call),
        ast.Attribute,
    ),
    builtins={"np": _NUMPY},
    elementwise=True,
)
