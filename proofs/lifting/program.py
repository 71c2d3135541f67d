# SPDX-License-Identifier: Apache-2.0
"""A module's source: what its names mean, found without running it."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from functools import cached_property

from kvreshard.proofs.lifting.unsupported import UnsupportedError
from kvreshard.proofs.lifting.values import ClassValue, FunctionValue, Imported, Value

_DATACLASS = {"dataclass", "dataclasses.dataclass"}
_NAMED_TUPLE = {"NamedTuple", "typing.NamedTuple"}


@dataclass(eq=False)
class Program:
    """A parsed module.

    Attributes:
        shown: its path as reports show it.
        tree: its syntax tree.
        bindings: for each name bound at top level, the statements that bind it.
        values: what names were found to mean so far.
    """

    shown: str
    tree: ast.Module
    bindings: dict[str, list[ast.stmt]] = field(default_factory=dict)
    values: dict[str, Value] = field(default_factory=dict)

    @staticmethod
    def parse(source: str, shown: str) -> Program:
        """Parse a source text.

        Raises:
            SyntaxError: it is no Python.
        """
        program = Program(shown, ast.parse(source, shown))
        for statement in program.tree.body:
            for name in _bound(statement):
                program.bindings.setdefault(name, []).append(statement)
        return program

    def function(self, name: str) -> FunctionValue | None:
        """Return the function of a name, or None if the module has none."""
        found = [node for node in self.bindings.get(name, ()) if isinstance(node, ast.FunctionDef)]
        if not found:
            return None
        self._check_bound_once(name, found[0])
        return FunctionValue(self, found[0])

    def statement(self, name: str, where: ast.AST, file: str) -> ast.stmt | None:
        """Return the one statement that binds a name, or None if none does.

        Raises:
            UnsupportedError: the name is bound more than once, or may be bound anew at run time.
        """
        found = self.bindings.get(name)
        if found is None:
            if "*" in self.bindings:
                raise UnsupportedError(where, f"the name {name}, beside an import of *", file)
            return None
        self._check_bound_once(name, found[0])
        return found[0]

    def _check_bound_once(self, name: str, node: ast.stmt) -> None:
        if len(self.bindings[name]) > 1:
            raise UnsupportedError(
                self.bindings[name][1], f"a second meaning for {name}", self.shown
            )
        if name in self._rebound:
            raise UnsupportedError(node, f"{name}, which a function binds anew", self.shown)

    @cached_property
    def _rebound(self) -> set[str]:
        return {
            name
            for node in ast.walk(self.tree)
            if isinstance(node, ast.Global)
            for name in node.names
        }


def _bound(statement: ast.stmt) -> list[str]:
    """Return the names that a top-level statement binds, at any depth but in functions."""
    if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return [statement.name]
    if isinstance(statement, (ast.Import, ast.ImportFrom)):
        return [alias.asname or alias.name.split(".")[0] for alias in statement.names]
    names = []
    for node in ast.walk(statement):
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            names.append(node.id)
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            names += [alias.asname or alias.name.split(".")[0] for alias in node.names]
        elif isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            names.append(node.name)
    return names


def imported(statement: ast.Import | ast.ImportFrom, name: str) -> Imported:
    """Return what an import statement says about one of the names that it binds."""
    if isinstance(statement, ast.ImportFrom):
        module = "." * statement.level + (statement.module or "")
        for alias in statement.names:
            if (alias.asname or alias.name) == name:
                return Imported(module, alias.name)
    for alias in statement.names:
        if (alias.asname or alias.name.split(".")[0]) == name:
            return Imported(alias.name if alias.asname else name, "")
    raise ValueError(f"name={name}; legal: one that the statement binds")


def class_value(program: Program, node: ast.ClassDef) -> ClassValue:
    """Return a named tuple or a dataclass.

    Raises:
        UnsupportedError: it is another kind of class.
    """
    bases = [ast.unparse(base) for base in node.bases]
    is_tuple = bases != [] and set(bases) <= _NAMED_TUPLE
    decorators = [_decorator_name(program, one) for one in node.decorator_list]
    is_data = bool(decorators) and set(decorators) <= _DATACLASS and not bases
    if node.keywords or is_tuple == is_data or (is_tuple and decorators):
        raise UnsupportedError(node, f"the class {node.name}", program.shown)
    fields = []
    for statement in node.body:
        if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
            fields.append((statement.target.id, statement.value))
        elif not isinstance(statement, (ast.FunctionDef, ast.Pass)) and not _is_text(statement):
            raise UnsupportedError(statement, f"in the class {node.name}", program.shown)
    return ClassValue(program, node, tuple(fields), is_tuple)


# Options of a dataclass that change no value computed here.
_HARMLESS_OPTIONS = {"frozen", "slots", "kw_only"}


def _decorator_name(program: Program, node: ast.expr) -> str:
    if isinstance(node, ast.Call):
        for keyword in node.keywords:
            if keyword.arg not in _HARMLESS_OPTIONS:
                raise UnsupportedError(node, f"the decorator {ast.unparse(node)}", program.shown)
        if node.args:
            raise UnsupportedError(node, f"the decorator {ast.unparse(node)}", program.shown)
        return ast.unparse(node.func)
    return ast.unparse(node)


def _is_text(statement: ast.stmt) -> bool:
    return (
        isinstance(statement, ast.Expr)
        and isinstance(statement.value, ast.Constant)
        and isinstance(statement.value.value, str)
    )
