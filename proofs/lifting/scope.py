# SPDX-License-Identifier: Apache-2.0
"""A function call under way: its local names, and what other names mean to it."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING

from kvreshard.proofs.lifting.unsupported import PythonRaises, UnsupportedError

if TYPE_CHECKING:
    from kvreshard.proofs.lifting.path import Path
    from kvreshard.proofs.lifting.program import Program
    from kvreshard.proofs.lifting.values import Value


@dataclass
class Scope:
    """A call of a function, or a module's top level.

    Attributes:
        path: the way through the code.
        program: the module that the function is of.
        local: the values of local names.
        own: the names that are local, bound yet or not.
        depth: how many calls it is within.
        is_comprehension: whether it is a comprehension's, within that of a function.
    """

    path: Path
    program: Program
    local: dict[str, Value] = field(default_factory=dict)
    own: frozenset[str] = frozenset()
    depth: int = 0
    is_comprehension: bool = False

    @property
    def file(self) -> str:
        """The path of the module as reports show it."""
        return self.program.shown

    def unsupported(self, node: ast.AST, what: str) -> UnsupportedError:
        """Return the error for a construct of this module."""
        return UnsupportedError(node, what, self.file)

    def raises(self, kind: str, node: ast.AST) -> PythonRaises:
        """Return what is raised where the code raises an exception."""
        return PythonRaises(kind, node, self.file)

    def inner(self, names: frozenset[str]) -> Scope:
        """Return the scope of a comprehension, in which some names are its own."""
        local = {name: value for name, value in self.local.items() if name not in names}
        return Scope(self.path, self.program, local, self.own | names, self.depth, True)


_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
# What changes the meaning of a whole function, wherever in it it stands, and whether it is reached.
_FAR_REACHING = (
    *(ast.Global, ast.Nonlocal, ast.NamedExpr),
    *(ast.Yield, ast.YieldFrom, ast.Await, ast.AsyncFor, ast.AsyncWith),
)


@lru_cache(maxsize=1024)
def far_reaching(node: ast.FunctionDef) -> ast.AST | None:
    """Return what in a function's body changes the meaning of all of it, or None."""
    for statement in node.body:
        for child in ast.walk(statement):
            if isinstance(child, _FAR_REACHING):
                return child
    arguments = node.args
    for one in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs):
        if is_hidden(one.arg):
            return one
    return None


def is_hidden(name: str) -> bool:
    """Whether a name means another one within a class."""
    return name.startswith("__") and not name.endswith("__")


@lru_cache(maxsize=1024)
def local_names(node: ast.FunctionDef) -> frozenset[str]:
    """Return the names that are local to a function, whether or not they are bound yet.

    A comprehension's names are its own.
    """
    arguments = node.args
    names = {one.arg for one in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)}
    for statement in node.body:
        names |= bound_names(statement)
    return frozenset(names)


def bound_names(node: ast.AST) -> set[str]:
    """Return the names that a statement or target binds in its own scope.

    What is bound in comprehensions, and within definitions, is left out.
    """
    if isinstance(node, (*_COMPREHENSIONS, ast.Lambda)):
        return set()
    found = _bound_here(node)
    if isinstance(node, _DEFINITIONS):
        return found
    for child in ast.iter_child_nodes(node):
        found |= bound_names(child)
    return found


def _bound_here(node: ast.AST) -> set[str]:
    if isinstance(node, ast.Name):
        return set() if isinstance(node.ctx, ast.Load) else {node.id}
    if isinstance(node, (ast.Import, ast.ImportFrom)):
        return {alias.asname or alias.name.split(".")[0] for alias in node.names}
    if isinstance(node, ast.MatchMapping):
        return {node.rest} if node.rest else set()
    if isinstance(node, (*_DEFINITIONS, ast.ExceptHandler, ast.MatchAs, ast.MatchStar)):
        return {node.name} if node.name else set()
    return set()
