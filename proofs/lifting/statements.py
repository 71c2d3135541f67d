# SPDX-License-Identifier: Apache-2.0
"""The meaning of statements. A statement that leaves its block says so by an exception."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from kvreshard.proofs.lifting.exceptions import exception_name
from kvreshard.proofs.lifting.expressions import apply, check_length, index, said, truth
from kvreshard.proofs.lifting.unsupported import PythonRaises, UnsupportedError
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
    elif not isinstance(node.target, ast.Name):
        raise scope.unsupported(node, f"an annotation of {said(node.target)}")


def augmented(run: Interpreter, scope: Scope, node: ast.AugAssign) -> None:
    """Change a variable by an operator; a list grows in its place."""
    if not isinstance(node.target, ast.Name):
        raise scope.unsupported(node, f"a change of {said(node.target)}")
    load = ast.copy_location(ast.Name(node.target.id, ast.Load()), node.target)
    old, change = run.evaluate(scope, load), run.evaluate(scope, node.value)
    if isinstance(old, list):
        if not isinstance(node.op, ast.Add) or not isinstance(change, (list, tuple)):
            raise scope.unsupported(node, f"a change of a list: {said(node)}")
        check_length(scope, len(old) + len(change), node)
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
    """Raise unless a condition holds."""
    if not scope.path.decide(truth(run.evaluate(scope, node.test), scope, node.test), node.test):
        _compute_message(run, scope, node, [node.msg] if node.msg else [])
        scope.path.taken.append((scope.file, node.lineno, "the assertion fails"))
        raise scope.raises("AssertionError", node)


def raised(run: Interpreter, scope: Scope, node: ast.Raise) -> None:
    """Raise an exception."""
    made = node.exc.func if isinstance(node.exc, ast.Call) else node.exc
    kind = exception_name(scope, made) if made is not None else "RuntimeError"
    if isinstance(node.exc, ast.Call):
        if node.exc.keywords:
            raise scope.unsupported(node, f"an exception made with keywords: {said(node.exc)}")
        _compute_message(run, scope, node, node.exc.args)
    if node.cause is not None and ast.unparse(node.cause) != "None":
        raise scope.unsupported(node.cause, f"a cause that is not None: {said(node.cause)}")
    scope.path.taken.append((scope.file, node.lineno, f"raises {kind}"))
    raise PythonRaises(kind, node, scope.file)


def _compute_message(
    run: Interpreter, scope: Scope, node: ast.stmt, parts: Sequence[ast.expr]
) -> None:
    """Compute what an exception is made of, since that may raise another one.

    What is not known of it is taken to raise none. An exception is raised in either case.
    """
    try:
        for part in parts:
            run.evaluate(scope, part)
    except UnsupportedError:
        scope.path.assumed.append((scope.file, node.lineno, "what an exception is made of"))


# The methods of a logger that write: the standard library's, and vLLM's for a message once.
_WRITING = frozenset(
    {"critical", "debug", "error", "exception", "info", "log", "warning"}
    | {"debug_once", "info_once", "warning_once"}
)


def expression(run: Interpreter, scope: Scope, node: ast.Expr) -> None:
    """Compute an expression for its effect: a text has none, and neither has a call of a logger."""
    if isinstance(node.value, ast.Constant):
        return
    if isinstance(node.value, ast.Call) and isinstance(node.value.func, ast.Attribute):
        owner = node.value.func.value
        writes = node.value.func.attr in _WRITING and isinstance(owner, ast.Name)
        if writes and isinstance(run.evaluate(scope, owner), Logger):
            for argument in (*node.value.args, *(one.value for one in node.value.keywords)):
                run.evaluate(scope, argument)
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
