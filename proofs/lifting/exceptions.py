# SPDX-License-Identifier: Apache-2.0
"""The names of exceptions that lifted code raises."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from kvreshard.proofs.lifting.expressions import said

if TYPE_CHECKING:
    from kvreshard.proofs.lifting.program import Program
    from kvreshard.proofs.lifting.scope import Scope


# Those of Python that take any arguments and that nothing turns into another on its way.
_KNOWN = frozenset(
    {
        *("ArithmeticError", "AssertionError", "AttributeError", "Exception", "IndexError"),
        *("KeyError", "LookupError", "NotImplementedError", "OverflowError", "RuntimeError"),
        *("TypeError", "ValueError", "ZeroDivisionError"),
    }
)


def exception_name(scope: Scope, node: ast.expr) -> str:
    """Return the name of an exception's class that is raised.

    Raises:
        UnsupportedError: it is not known to be one.
    """
    name = said(node)
    local = isinstance(node, ast.Name) and node.id in scope.own
    if local or not _is_exception(scope.program, node):
        raise scope.unsupported(node, f"an exception that is not known: {name}")
    return name


def _is_exception(program: Program, node: ast.expr) -> bool:
    """Whether an expression is one of Python's exceptions, or a plain class made from one."""
    if not isinstance(node, ast.Name):
        return False
    statement = program.statement(node.id, node, program.shown)
    if statement is None:
        return node.id in _KNOWN
    if not isinstance(statement, ast.ClassDef):
        return False
    plain = all(_is_nothing(one) for one in statement.body)
    bare = not (statement.decorator_list or statement.keywords)
    above = [base for base in statement.bases if not _is_exception(program, base)]
    return plain and bare and len(statement.bases) == 1 and not above


def _is_nothing(statement: ast.stmt) -> bool:
    if isinstance(statement, ast.Expr):
        return isinstance(statement.value, ast.Constant)
    return isinstance(statement, ast.Pass)
