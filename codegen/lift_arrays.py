# SPDX-License-Identifier: Apache-2.0
"""Lift emitted functions over numpy arrays back to z3.

An array stands for each of its elements: every construct that is known here takes element by
element, after broadcasting, so the meaning of a function is the meaning for one of each. That
64-bit integers compute what integers do is not taken for granted: `integers` of what is lifted
lists what has to fit.

Nothing is computed conditionally. `and`, `or`, `not`, a conditional and a chain of comparisons
ask an array for its truth value, and Python's `max` and `min` do so too: they are not known here.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any, ClassVar

import z3

from kvreshard.codegen.lift import Lifter, UnsupportedError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

NUMPY = "np"


class ArrayLifter(Lifter):
    """What is known of numpy: arithmetic, one comparison at a time, and a few functions."""

    integer: ClassVar[str] = "NDArray[np.int64]"
    truth: ClassVar[str] = "NDArray[np.bool_]"
    builtins: ClassVar[tuple[str, ...]] = (NUMPY,)
    functions: ClassVar[Mapping[str, Callable[[Any, ast.Call], z3.ExprRef]]]

    def _integer_constant(self, node: ast.Constant) -> z3.ExprRef:
        if isinstance(node.value, bool):
            raise UnsupportedError(node, f"the constant {node.value!r}")
        return self._constant(node)

    def _negation(self, node: ast.UnaryOp) -> z3.ExprRef:
        if not isinstance(node.op, ast.USub):
            raise UnsupportedError(node, f"the operator {type(node.op).__name__}")
        return self._unary(node)

    def _one_comparison(self, node: ast.Compare) -> z3.ExprRef:
        if len(node.ops) != 1:
            raise UnsupportedError(node, f"a chain of comparisons: {ast.unparse(node)}")
        return self._comparison(node)

    def _array_call(self, node: ast.Call) -> z3.ExprRef:
        if node.keywords:
            raise UnsupportedError(node, f"the call {ast.unparse(node)}")
        if isinstance(node.func, ast.Name):
            return self._application(node, node.func.id)
        lift = self.functions.get(ast.unparse(node.func))
        if lift is None or NUMPY in self.values:
            raise UnsupportedError(node, f"a call of {ast.unparse(node.func)}")
        return lift(self, node)

    def _two(self, node: ast.Call) -> tuple[ast.expr, ast.expr]:
        if len(node.args) != 2:
            raise UnsupportedError(node, f"{len(node.args)} arguments: {ast.unparse(node)}")
        return node.args[0], node.args[1]

    def _maximum(self, node: ast.Call) -> z3.ExprRef:
        left, right = map(self._integer, self._two(node))
        return z3.If(right > left, right, left)

    def _minimum(self, node: ast.Call) -> z3.ExprRef:
        left, right = map(self._integer, self._two(node))
        return z3.If(right < left, right, left)

    def _logical_and(self, node: ast.Call) -> z3.ExprRef:
        return z3.And(*map(self._truth, self._two(node)))

    def _logical_or(self, node: ast.Call) -> z3.ExprRef:
        return z3.Or(*map(self._truth, self._two(node)))

    def _logical_not(self, node: ast.Call) -> z3.ExprRef:
        if len(node.args) != 1:
            raise UnsupportedError(node, f"{len(node.args)} arguments: {ast.unparse(node)}")
        return z3.Not(self._truth(node.args[0]))

    def _array(self, node: ast.Call) -> z3.ExprRef:
        number, dtype = self._two(node)
        if not isinstance(number, ast.Constant) or ast.unparse(dtype) != "np.int64":
            raise UnsupportedError(node, f"an array that is not one integer: {ast.unparse(node)}")
        return self._integer(number)


ArrayLifter.known = {
    ast.Name: ArrayLifter._name,
    ast.Constant: ArrayLifter._integer_constant,
    ast.BinOp: ArrayLifter._binary,
    ast.UnaryOp: ArrayLifter._negation,
    ast.Compare: ArrayLifter._one_comparison,
    ast.Call: ArrayLifter._array_call,
}
ArrayLifter.functions = {
    "np.maximum": ArrayLifter._maximum,
    "np.minimum": ArrayLifter._minimum,
    "np.logical_and": ArrayLifter._logical_and,
    "np.logical_or": ArrayLifter._logical_or,
    "np.logical_not": ArrayLifter._logical_not,
    "np.array": ArrayLifter._array,
}
