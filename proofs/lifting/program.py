# SPDX-License-Identifier: Apache-2.0
"""A module's source: what its names mean, found without running it.

Taken for granted is that the module loads, and that no other module, nor what this one calls as
it is loaded, changes what its names mean. A text that has a plain way to do so, such as `globals`
or an attribute `__code__`, is refused.
"""

from __future__ import annotations

import ast
import builtins
import io
import tokenize
import warnings
from dataclasses import dataclass, field
from functools import cached_property

from kvreshard.proofs.lifting.scope import bound_names
from kvreshard.proofs.lifting.unsupported import UnsupportedError
from kvreshard.proofs.lifting.values import FunctionValue, Imported, Value

# What reaches into a namespace or a function without binding a name.
_REACHING_NAMES = frozenset({"__builtins__", "builtins", "eval", "exec", "globals"})
_REACHING_ATTRIBUTES = frozenset(
    {"__builtins__", "__closure__", "__code__", "__defaults__", "__globals__", "__kwdefaults__"}
)
# These may, where they run as the module is loaded.
_REACHING_AT_THE_TOP = frozenset({"__dict__", "delattr", "locals", "setattr", "vars"})
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


@dataclass(eq=False)
class Program:
    """A parsed module.

    Attributes:
        shown: its path as reports show it.
        tree: its syntax tree.
        bindings: for each name bound at top level, the statements that bind it.
        values: what names were found to mean so far.
        written_into: the names into whose objects something is written, and where.
        reaching: what may change the meaning of names without binding them, or None.
    """

    shown: str
    tree: ast.Module
    bindings: dict[str, list[ast.stmt]] = field(default_factory=dict)
    values: dict[str, Value] = field(default_factory=dict)
    written_into: dict[str, ast.AST] = field(default_factory=dict)
    reaching: ast.AST | None = None

    @staticmethod
    def parse(source: str, shown: str) -> Program:
        """Parse a source text, as Python does that reads it as UTF-8.

        Raises:
            SyntaxError: it is no Python, or declares another encoding.
        """
        program = Program(shown, _parsed(source, shown))
        for statement in program.tree.body:
            for name in _bound(statement):
                program.bindings.setdefault(name, []).append(statement)
        program.written_into = _written_into(program.tree)
        program.reaching = _reaching(program.tree)
        return program

    def function(self, name: str) -> FunctionValue | None:
        """Return the function of a name, or None if the module has none.

        Raises:
            UnsupportedError: the name may mean something else.
        """
        found = [node for node in self.bindings.get(name, ()) if isinstance(node, ast.FunctionDef)]
        if not found:
            return None
        self._check_meaning(name, found[0])
        return FunctionValue(self, found[0])

    def statement(self, name: str, where: ast.AST, file: str) -> ast.stmt | None:
        """Return the one statement that binds a name, or None if none does.

        Raises:
            UnsupportedError: the name is bound more than once, or may be bound anew at run time.
        """
        found = self.bindings.get(name)
        if found is None:
            self._check_nothing_reaches()
            if "*" in self.bindings:
                raise UnsupportedError(where, f"the name {name}, beside an import of *", file)
            return None
        self._check_meaning(name, found[0])
        return found[0]

    def position(self, name: str) -> int:
        """Return where in the module a name that it binds once is bound."""
        return self.tree.body.index(self.bindings[name][0])

    def origin(self, node: ast.expr) -> str:
        """Return what an import or Python says a name is, such as `dataclasses.dataclass`.

        Empty where it is something else, such as a name that the module itself gives.
        """
        if isinstance(node, ast.Attribute):
            owner = self.origin(node.value)
            return f"{owner}.{node.attr}" if owner else ""
        if not isinstance(node, ast.Name):
            return ""
        statement = self.statement(node.id, node, self.shown)
        if statement is None:
            return node.id if hasattr(builtins, node.id) else ""
        if not isinstance(statement, (ast.Import, ast.ImportFrom)):
            return ""
        found = imported(statement, node.id)
        return f"{found.module}.{found.name}" if found.name else found.module

    def _check_meaning(self, name: str, node: ast.AST) -> None:
        self._check_nothing_reaches()
        found = self.bindings[name]
        if len(found) > 1:
            raise UnsupportedError(found[1], f"a second meaning for {name}", self.shown)
        if "*" in self.bindings:
            star = self.bindings["*"][0]
            raise UnsupportedError(star, f"an import of *, which may bind {name}", self.shown)
        if name in self._rebound:
            raise UnsupportedError(node, f"{name}, which a function binds anew", self.shown)
        if name in self.written_into:
            where = self.written_into[name]
            raise UnsupportedError(where, f"{name}, into which something is written", self.shown)

    def _check_nothing_reaches(self) -> None:
        if self.reaching is not None:
            what = f"{ast.unparse(self.reaching)}, which may change what names mean"
            raise UnsupportedError(self.reaching, what, self.shown)

    @cached_property
    def _rebound(self) -> set[str]:
        return {
            name
            for node in ast.walk(self.tree)
            if isinstance(node, ast.Global)
            for name in node.names
        }


def _parsed(source: str, shown: str) -> ast.Module:
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(source.encode()).readline)
        with warnings.catch_warnings():
            # What Python warns of, it reads all the same.
            warnings.simplefilter("ignore")
            tree = ast.parse(source, shown)
            # The parser lets pass what the compiler refuses, such as a return outside a function.
            compile(source, shown, "exec", dont_inherit=True)
    except (UnicodeError, ValueError) as error:
        raise SyntaxError(f"{error}") from error
    except (RecursionError, MemoryError) as error:
        raise SyntaxError("nested too deeply") from error
    if encoding not in ("utf-8", "utf-8-sig"):
        raise SyntaxError(f"the encoding {encoding}")
    return tree


def _bound(statement: ast.stmt) -> list[str]:
    """Return the names that a top-level statement binds, at any depth but in functions."""
    if isinstance(statement, (ast.Import, ast.ImportFrom)):
        return [alias.asname or alias.name.split(".")[0] for alias in statement.names]
    names = sorted(bound_names(statement))
    # A comprehension, a default or a decorator binds by := only, and does so here.
    for node in _outside_functions(statement):
        if isinstance(node, ast.NamedExpr):
            names.append(node.target.id)
    return names


def _outside_functions(node: ast.AST) -> list[ast.AST]:
    """Return what runs as the module is loaded: all but the bodies of functions."""
    found: list[ast.AST] = []
    pending = [node]
    while pending:
        one = pending.pop()
        found.append(one)
        inner = one.body if isinstance(one, (*_DEFINITIONS, ast.Lambda)) else []
        body = inner if isinstance(inner, list) else [inner]
        pending += [child for child in ast.iter_child_nodes(one) if child not in body]
    return found


def _written_into(tree: ast.Module) -> dict[str, ast.AST]:
    """Return the names to whose items or attributes something is assigned, wherever that is."""
    found: dict[str, ast.AST] = {}
    for node in ast.walk(tree):
        if isinstance(node, (ast.Attribute, ast.Subscript)) and not isinstance(node.ctx, ast.Load):
            root: ast.expr = node
            while isinstance(root, (ast.Attribute, ast.Subscript)):
                root = root.value
            if isinstance(root, ast.Name):
                found.setdefault(root.id, node)
    return found


def _reaching(tree: ast.Module) -> ast.AST | None:
    loaded = {id(node) for statement in tree.body for node in _outside_functions(statement)}
    for node in ast.walk(tree):
        names: set[str] = set()
        if isinstance(node, ast.Name):
            names = {node.id}
        elif isinstance(node, ast.Attribute):
            names = {node.attr}
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            names = {alias.name for alias in node.names} | {getattr(node, "module", "") or ""}
            names &= {"builtins"}
        reaches = _REACHING_ATTRIBUTES if isinstance(node, ast.Attribute) else _REACHING_NAMES
        if names & reaches or (id(node) in loaded and names & _REACHING_AT_THE_TOP):
            return node
    return None


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
