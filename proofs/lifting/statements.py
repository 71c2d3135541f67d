# SPDX-License-Identifier: Apache-2.0
"""The meaning of statements. A statement that leaves its block says so by an exception."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from kvreshard.proofs.lifting.expressions import apply, index, said, truth
from kvreshard.proofs.lifting.unsupported import PythonRaises
from kvreshard.proofs.lifting.values import Logger, Value, kind_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from kvreshard.proofs.lifting.interpreter import Interpreter
    from kvreshard.proofs.lifting.scope import Scope


class ReturnsError(Exception):
    """The function ends here, with a value."""

    def __init__(self, value: Value) -> None:
        """Keep the value."""
        super().__init__()
        self.value = value


class BreakError(Exception):
    """The innermost loop ends here."""


class ContinueError(Exception):
    """The innermost loop goes on with its next item."""


def run_block(run: Interpreter, scope: Scope, block: Sequence[ast.stmt]) -> None:
    """Run statements one after the other."""
    for statement in block:
        known = STATEMENTS.get(type(statement))
        if known is None:
            kind = type(statement).__name__.lower()
            raise scope.unsupported(statement, f"a {kind} statement")
        known(run, scope, statement)


def assign(run: Interpreter, scope: Scope, node: ast.Assign) -> None:
    """Give a value to one target or more."""
    value = run.evaluate(scope, node.value)
    for target in node.targets:
        bind(run, scope, target, value)


def annotated(run: Interpreter, scope: Scope, node: ast.AnnAssign) -> None:
    """Give a value to a target with an annotation, which says nothing here."""
    if node.value is not None:
        bind(run, scope, node.target, run.evaluate(scope, node.value))


def augmented(run: Interpreter, scope: Scope, node: ast.AugAssign) -> None:
    """Change a variable by an operator; a list grows in its place."""
    if not isinstance(node.target, ast.Name):
        raise scope.unsupported(node, f"a change of {said(node.target)}")
    load = ast.copy_location(ast.Name(node.target.id, ast.Load()), node.target)
    old, change = run.evaluate(scope, load), run.evaluate(scope, node.value)
    if isinstance(old, list):
        if not isinstance(node.op, ast.Add) or not isinstance(change, (list, tuple)):
            raise scope.unsupported(node, f"a change of a list: {said(node)}")
        old.extend(change)
        return
    scope.local[node.target.id] = apply(run, scope, node.op, old, change, node)


def bind(run: Interpreter, scope: Scope, target: ast.expr, value: Value) -> None:
    """Give a value to a name, to names in a tuple or list, or to a place in a list."""
    if isinstance(target, ast.Name):
        scope.local[target.id] = value
    elif isinstance(target, (ast.Tuple, ast.List)):
        if any(isinstance(one, ast.Starred) for one in target.elts):
            raise scope.unsupported(target, f"a starred target: {said(target)}")
        values = list(run.iterate(scope, value, target))
        if len(values) != len(target.elts):
            raise scope.raises("ValueError", target)
        for one, item in zip(target.elts, values, strict=True):
            bind(run, scope, one, item)
    elif isinstance(target, ast.Subscript) and not isinstance(target.slice, ast.Slice):
        items = run.evaluate(scope, target.value)
        if not isinstance(items, list):
            raise scope.unsupported(target, f"a change of a {kind_of(items)}: {said(target)}")
        items[index(run, scope, len(items), target.slice)] = value
    else:
        raise scope.unsupported(target, f"an assignment to {said(target)}")


def branch(run: Interpreter, scope: Scope, node: ast.If) -> None:
    """Run one of two blocks."""
    taken = _decided(run, scope, node.test)
    run_block(run, scope, node.body if taken else node.orelse)


def _decided(run: Interpreter, scope: Scope, test: ast.expr) -> bool:
    if scope.path.meaning.elementwise:
        raise scope.unsupported(test, f"the truth of an array: {said(test)}")
    taken = scope.path.decide(truth(run.evaluate(scope, test), scope, test), test)
    said_of = "the condition holds" if taken else "the condition does not hold"
    scope.path.taken.append((scope.file, test.lineno, said_of))
    return taken


def loop(run: Interpreter, scope: Scope, node: ast.For) -> None:
    """Run a block for each item."""
    for value in run.iterate(scope, run.evaluate(scope, node.iter), node.iter):
        bind(run, scope, node.target, value)
        try:
            run_block(run, scope, node.body)
        except ContinueError:
            continue
        except BreakError:
            return
    run_block(run, scope, node.orelse)


def returned(run: Interpreter, scope: Scope, node: ast.Return) -> None:
    """End the function."""
    value = None if node.value is None else run.evaluate(scope, node.value)
    scope.path.taken.append((scope.file, node.lineno, "returns"))
    raise ReturnsError(value)


def asserted(run: Interpreter, scope: Scope, node: ast.Assert) -> None:
    """Raise unless a condition holds. The message is not computed: it raises either way."""
    if not scope.path.decide(truth(run.evaluate(scope, node.test), scope, node.test), node.test):
        scope.path.taken.append((scope.file, node.lineno, "the assertion fails"))
        raise scope.raises("AssertionError", node)


def raised(run: Interpreter, scope: Scope, node: ast.Raise) -> None:  # noqa: ARG001 - has the parameters of all
    """Raise an exception. What it is made of is not computed: it raises either way."""
    made = node.exc.func if isinstance(node.exc, ast.Call) else node.exc
    kind = ast.unparse(made) if made is not None else "RuntimeError"
    scope.path.taken.append((scope.file, node.lineno, f"raises {kind}"))
    raise PythonRaises(kind, node, scope.file)


def expression(run: Interpreter, scope: Scope, node: ast.Expr) -> None:
    """Compute an expression for its effect: a text has none, and neither has a call of a logger."""
    if isinstance(node.value, ast.Constant):
        return
    if isinstance(node.value, ast.Call) and isinstance(node.value.func, ast.Attribute):
        owner = node.value.func.value
        if isinstance(owner, ast.Name) and isinstance(run.evaluate(scope, owner), Logger):
            scope.path.assumed.append((scope.file, node.lineno, "a call of a logger"))
            return
    run.evaluate(scope, node.value)


def nothing(run: Interpreter, scope: Scope, node: ast.Pass) -> None:
    """Do nothing."""


def broken(run: Interpreter, scope: Scope, node: ast.Break) -> None:  # noqa: ARG001 - has the parameters of all
    """Leave the loop."""
    raise BreakError


def continued(run: Interpreter, scope: Scope, node: ast.Continue) -> None:  # noqa: ARG001 - has the parameters of all
    """Go on with the loop's next item."""
    raise ContinueError


STATEMENTS: dict[type[ast.stmt], Callable[..., None]] = {
    ast.Assign: assign,
    ast.AnnAssign: annotated,
    ast.AugAssign: augmented,
    ast.If: branch,
    ast.For: loop,
    ast.Return: returned,
    ast.Assert: asserted,
    ast.Raise: raised,
    ast.Expr: expression,
    ast.Pass: nothing,
    ast.Break: broken,
    ast.Continue: continued,
}
