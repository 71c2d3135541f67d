# SPDX-License-Identifier: Apache-2.0
"""What a function needs of its own file: helpers, classes, constants and imports. Nothing is run.

A name that stands in annotations alone is not needed: the parts are compiled with annotations
kept as text. Of imports, one that a class body's annotations name is needed where it is a marker
that `dataclass` looks for there, such as ClassVar.
"""

from __future__ import annotations

import ast
import builtins
import symtable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kvreshard.proofs.audit.model import Part

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

_NAMED = (
    ast.FunctionDef,
    ast.AsyncFunctionDef,
    ast.ClassDef,
    ast.ExceptHandler,
    ast.MatchAs,
    ast.MatchStar,
)
# Modules whose names mean something within a field's annotation, even as text.
_MARKERS = ("dataclasses", "typing", "typing_extensions")


@dataclass(frozen=True)
class Import:
    """One name that an import statement binds.

    Attributes:
        module: with leading dots where it is relative.
        name: what is taken from the module; empty for the module itself.
        bound: the name that the file uses for it.
        line: from 1.
    """

    module: str
    name: str
    bound: str
    line: int


@dataclass(frozen=True)
class Extract:
    """What some functions need of their file.

    Attributes:
        functions: the functions asked for.
        needs: helpers, classes and constants, in source order.
        imports: what is needed of other modules, in source order.
        kept: the positions in the module's body of all statements but those imports.
        unknown: names that nothing binds: neither the file nor Python.
    """

    functions: tuple[Part, ...]
    needs: tuple[Part, ...]
    imports: tuple[Import, ...]
    kept: tuple[int, ...]
    unknown: tuple[str, ...]


def extract(tree: ast.Module, names: Sequence[str]) -> Extract:
    """Return what functions need.

    Args:
        tree: the module.
        names: functions at its top level.

    Raises:
        ValueError: there is no such function.
    """
    binding = _bindings(tree)
    for name in names:
        if name not in binding:
            raise ValueError(f"names={name}; legal: names bound at the top level of the file")
    kept: set[int] = set()
    imported: set[str] = set()
    unknown: set[str] = set()
    pending = list(names)
    seen = set(names)
    while pending:
        name = pending.pop()
        if name not in binding:
            if not hasattr(builtins, name) and not name.startswith("__"):
                unknown.add(name)
            continue
        for position in binding[name]:
            statement = tree.body[position]
            if isinstance(statement, (ast.Import, ast.ImportFrom)):
                imported.add(name)
            elif position not in kept:
                kept.add(position)
                fresh = _names(statement) - seen
                # A marker counts only where the file imports it from the right module.
                fresh |= _markers(statement, tree, binding) - seen
                seen |= fresh
                pending += sorted(fresh)
    statements = [each for each in tree.body if isinstance(each, (ast.Import, ast.ImportFrom))]
    parts = [part for position in sorted(kept) for part in _parts(tree.body[position])]
    return Extract(
        functions=tuple(part for part in parts if part.name in names),
        needs=tuple(part for part in parts if part.name not in names),
        imports=tuple(each for each in _imports(statements) if each.bound in imported),
        kept=tuple(sorted(kept)),
        unknown=tuple(sorted(unknown)),
    )


def _bindings(tree: ast.Module) -> dict[str, list[int]]:
    """Return the positions of the statements that bind each name, or change what it is bound to."""
    found: dict[str, list[int]] = {}
    assigned = {
        name
        for statement in tree.body
        if not isinstance(statement, (ast.Import, ast.ImportFrom, ast.FunctionDef))
        for name in _bound(statement)
    }
    for position, statement in enumerate(tree.body):
        for name in _bound(statement) | (_changed(statement) & assigned):
            found.setdefault(name, []).append(position)
    return found


def _bound(statement: ast.stmt) -> set[str]:
    if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return {statement.name}
    names = {each.bound for each in _imports([statement])}
    for node in _outside_functions(statement):
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            names.add(node.id)
        elif isinstance(node, _NAMED):
            if node.name:
                names.add(node.name)
        elif isinstance(node, ast.MatchMapping) and node.rest:
            names.add(node.rest)
    return names


def _changed(statement: ast.stmt) -> set[str]:
    """Return the names of objects that a statement writes into, or calls a method of."""
    names = set()
    for node in _outside_functions(statement):
        if isinstance(node, (ast.Subscript, ast.Attribute)) and not isinstance(node.ctx, ast.Load):
            names |= _root(node)
        elif (
            isinstance(node, ast.Expr)
            and isinstance(node.value, ast.Call)
            and isinstance(node.value.func, ast.Attribute)
        ):
            names |= _root(node.value.func)
    return names


def _root(node: ast.expr) -> set[str]:
    while isinstance(node, (ast.Subscript, ast.Attribute)):
        node = node.value
    return {node.id} if isinstance(node, ast.Name) else set()


def _outside_functions(statement: ast.stmt) -> Iterator[ast.AST]:
    """Walk a statement, but not into the bodies of functions and classes."""
    pending: list[ast.AST] = [statement]
    while pending:
        node = pending.pop()
        yield node
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
            pending += ast.iter_child_nodes(node)


def _imports(statements: Iterable[ast.stmt]) -> list[Import]:
    """Return what import statements bind, at any depth but in functions, in source order."""
    found = []
    for statement in statements:
        for node in _outside_functions(statement):
            if isinstance(node, ast.Import):
                for alias in node.names:
                    # `import a.b` binds a; `import a.b as c` binds a.b.
                    bound = alias.asname or alias.name.split(".")[0]
                    found.append(Import(alias.name, "", bound, node.lineno))
            elif isinstance(node, ast.ImportFrom) and node.module != "__future__":
                module = "." * node.level + (node.module or "")
                for alias in node.names:
                    bound = alias.asname or alias.name
                    found.append(Import(module, alias.name, bound, node.lineno))
    return sorted(found, key=lambda each: each.line)


class _WithoutAnnotations(ast.NodeTransformer):
    def visit_arg(self, node: ast.arg) -> ast.arg:
        return ast.arg(node.arg)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        node.returns = None
        return self.generic_visit(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.AST:
        node.returns = None
        return self.generic_visit(node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        node.annotation = ast.Constant(None)
        return self.generic_visit(node)


def _names(statement: ast.stmt) -> set[str]:
    """Return the names of the module or of Python that a statement uses when it runs.

    Scopes are told apart as CPython does, so that a local variable is no need of a constant that
    has its name.
    """
    bare = _WithoutAnnotations().visit(ast.parse(ast.unparse(statement)))
    table = symtable.symtable(ast.unparse(bare), "<part>", "exec")
    return set(_global_names(table))


def _global_names(table: symtable.SymbolTable) -> Iterator[str]:
    for symbol in table.get_symbols():
        # At the top level, and in a class body, a name may be the module's even if it is assigned.
        own = table.get_type() != "function"
        if symbol.is_global() or symbol.is_declared_global() or (own and symbol.is_referenced()):
            yield symbol.get_name()
    for child in table.get_children():
        yield from _global_names(child)


def _markers(statement: ast.stmt, tree: ast.Module, binding: dict[str, list[int]]) -> set[str]:
    named = {
        name.id
        for each in ast.walk(statement)
        if isinstance(each, ast.ClassDef)
        for field in each.body
        if isinstance(field, ast.AnnAssign)
        for name in ast.walk(field.annotation)
        if isinstance(name, ast.Name)
    }
    return {
        name
        for name in named & binding.keys()
        if any(
            each.bound == name and each.module in _MARKERS
            for each in _imports([tree.body[position] for position in binding[name]])
        )
    }


def _parts(statement: ast.stmt) -> Iterator[Part]:
    first = statement.lineno
    if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        first = min([first, *(decorator.lineno for decorator in statement.decorator_list)])
    name = ", ".join(sorted(_bound(statement) or _changed(statement)))
    yield Part(name, first, statement.end_lineno or statement.lineno)
