# SPDX-License-Identifier: Apache-2.0
"""Whether the names in an emitted module mean what they seem to.

A function can be proved equal to its formula, and the module still be wrong, if a later line
gives the function's name, or `max`, another meaning. So a module may do little at its top level.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from kvreshard.codegen.lift import UnsupportedError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_IMPORTS = {"__future__", "operator", "typing"}
_BUILTINS = {"max", "min", "int", "bool"}
# Ways to change a name's meaning without binding it.
_REFLECTION = {
    "__builtins__",
    "__import__",
    "delattr",
    "eval",
    "exec",
    "globals",
    "locals",
    "setattr",
    "vars",
}


def check_module(tree: ast.Module, formula_names: Iterable[str]) -> None:
    """Check that each formula's name and each builtin that formulas use has one meaning.

    Raises:
        UnsupportedError: a name is bound twice, or something could rebind one.
    """
    for node in ast.walk(tree):
        _check_no_reflection(node)
        if isinstance(node, (ast.Import, ast.ImportFrom)) and node not in tree.body:
            raise UnsupportedError(node, "an import that is not at the top level")
    bound: set[str] = set()
    protected = {*formula_names}
    for statement in tree.body:
        for name in _bound_by(statement):
            if name in _BUILTINS or (name in protected and name in bound):
                raise UnsupportedError(statement, f"another meaning for {name}")
            if name in protected and not isinstance(statement, ast.FunctionDef):
                raise UnsupportedError(statement, f"{name} is not a function")
            bound.add(name)


def _check_no_reflection(node: ast.AST) -> None:
    if isinstance(node, (ast.Global, ast.Nonlocal, ast.NamedExpr, ast.Delete)):
        raise UnsupportedError(node, f"a {type(node).__name__}")
    if isinstance(node, ast.Name) and node.id in _REFLECTION:
        raise UnsupportedError(node, f"a use of {node.id}")
    if isinstance(node, ast.Attribute) and node.attr.startswith("__"):
        raise UnsupportedError(node, f"a use of {node.attr}")
    if isinstance(node, (ast.Attribute, ast.Subscript)) and not isinstance(node.ctx, ast.Load):
        raise UnsupportedError(node, f"assignment to {ast.unparse(node)}")


def _bound_by(statement: ast.stmt) -> Iterator[str]:
    if isinstance(statement, (ast.FunctionDef, ast.ClassDef)):
        yield statement.name
    elif isinstance(statement, (ast.Import, ast.ImportFrom)):
        yield from _imported(statement)
    elif isinstance(statement, ast.Assign):
        for target in statement.targets:
            yield _plain_name(target)
    elif isinstance(statement, ast.AnnAssign):
        yield _plain_name(statement.target)
    elif not (isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)):
        raise UnsupportedError(statement, f"a {type(statement).__name__} at the top level")


def _imported(statement: ast.Import | ast.ImportFrom) -> Iterator[str]:
    if isinstance(statement, ast.Import) or statement.module not in _IMPORTS:
        raise UnsupportedError(statement, f"the import {ast.unparse(statement)}")
    for alias in statement.names:
        if alias.name == "*":
            raise UnsupportedError(statement, f"the import {ast.unparse(statement)}")
        yield alias.asname or alias.name


def _plain_name(target: ast.expr) -> str:
    if not isinstance(target, ast.Name):
        raise UnsupportedError(target, f"assignment to {ast.unparse(target)}")
    return target.id
