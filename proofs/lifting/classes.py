# SPDX-License-Identifier: Apache-2.0
"""Classes that have a meaning here: named tuples and dataclasses of plain fields."""

from __future__ import annotations

import ast
import builtins
from functools import lru_cache
from typing import TYPE_CHECKING

from kvreshard.proofs.lifting.unsupported import UnsupportedError
from kvreshard.proofs.lifting.values import ClassValue

if TYPE_CHECKING:
    from kvreshard.proofs.lifting.program import Program

_DATACLASS = "dataclasses.dataclass"
_NAMED_TUPLE = "typing.NamedTuple"
# Options of a dataclass that change no value computed here.
_HARMLESS_OPTIONS = {"frozen", "slots"}
# What a named tuple may not define itself.
_OF_NAMED_TUPLES = {"_asdict", "_field_defaults", "_fields", "_make", "_replace", "_source"}
# Modules whose names are read in an annotation, and those of them that make no field.
_ANNOTATING = ("typing", "typing_extensions", "collections.abc", "dataclasses")
_NO_FIELD = {"ClassVar", "InitVar", "KW_ONLY"}


def class_value(program: Program, node: ast.ClassDef) -> ClassValue:
    """Return a named tuple or a dataclass.

    Raises:
        UnsupportedError: it is another kind of class, or has more than fields and methods.
    """
    bases = [program.origin(base) for base in node.bases]
    is_tuple = bases == [_NAMED_TUPLE] and not node.decorator_list
    is_data = not bases and len(node.decorator_list) == 1
    if node.keywords or is_tuple == is_data or getattr(node, "type_params", None):
        raise UnsupportedError(node, f"the class {node.name}", program.shown)
    keyword_only = is_data and _keyword_only(program, node.decorator_list[0])
    fields = []
    for statement in node.body:
        if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
            if not _is_plain_field(program, statement.annotation):
                what = f"a field of the class {node.name} with the annotation"
                what = f"{what} {ast.unparse(statement.annotation)}"
                raise UnsupportedError(statement, what, program.shown)
            fields.append((statement.target.id, statement.value))
        elif not isinstance(statement, (ast.FunctionDef, ast.Pass)) and not _is_text(statement):
            raise UnsupportedError(statement, f"in the class {node.name}", program.shown)
    made = ClassValue(program, node, tuple(fields), is_tuple, keyword_only)
    _check_names(made)
    _check_defaults(made)
    return made


@lru_cache(maxsize=1024)
def methods(kind: ClassValue) -> dict[str, ast.FunctionDef]:
    """Return the methods of a class, properties too."""
    return {one.name: one for one in kind.node.body if isinstance(one, ast.FunctionDef)}


def _keyword_only(program: Program, node: ast.expr) -> bool:
    """Return whether a dataclass takes its fields by keyword only, once its options are known."""
    called = node.func if isinstance(node, ast.Call) else node
    unknown = UnsupportedError(node, f"the decorator {ast.unparse(node)}", program.shown)
    if program.origin(called) != _DATACLASS:
        raise unknown
    if not isinstance(node, ast.Call):
        return False
    options = {}
    for keyword in node.keywords:
        value = keyword.value
        if not isinstance(value, ast.Constant) or not isinstance(value.value, bool):
            raise unknown
        options[keyword.arg] = value.value
    if node.args or not set(options) <= {*_HARMLESS_OPTIONS, "kw_only"}:
        raise unknown
    return options.get("kw_only", False)


def _is_plain_field(program: Program, annotation: ast.expr) -> bool:
    """Whether an annotation is known not to be one of those that make no field, or another kind."""
    node = annotation
    while isinstance(node, (ast.Subscript, ast.BinOp)):
        node = node.value if isinstance(node, ast.Subscript) else node.left
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        try:
            return _is_plain_field(program, ast.parse(node.value.strip(), mode="eval").body)
        except SyntaxError:
            return False
    if isinstance(node, ast.Constant):
        return node.value is None
    if isinstance(node, ast.Name):
        statement = program.statement(node.id, node, program.shown)
        if isinstance(statement, ast.ClassDef):
            return True
        if statement is None:
            return isinstance(getattr(builtins, node.id, None), type)
    module, _, name = program.origin(node).rpartition(".")
    return module in _ANNOTATING and name not in _NO_FIELD


def _check_names(kind: ClassValue) -> None:
    """Refuse names that mean more than they say, or two things."""
    seen: set[str] = set()
    for statement in kind.node.body:
        name = ""
        if isinstance(statement, ast.FunctionDef):
            name = statement.name
        elif isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
            name = statement.target.id
        is_field = isinstance(statement, ast.AnnAssign)
        hidden = name.startswith("__") and (is_field or name != "__post_init__")
        of_tuples = name in _OF_NAMED_TUPLES or (is_field and name.startswith("_"))
        if hidden or (kind.is_tuple and of_tuples):
            raise _unsupported(kind, statement, f"the name {name} in the class {kind.node.name}")
        if name and name in seen:
            raise _unsupported(kind, statement, f"a second {name} in the class {kind.node.name}")
        seen.add(name)


def _check_defaults(kind: ClassValue) -> None:
    """Refuse what Python refuses, and what a name of the class body enters into as it is made."""
    defaults = [default for _, default in kind.fields]
    first = next((at for at, default in enumerate(defaults) if default is not None), len(defaults))
    if not kind.keyword_only and None in defaults[first:]:
        raise _unsupported(kind, kind.node, f"a field without default after one with, {kind.name}")
    own = {name for name, _ in kind.fields} | set(methods(kind))
    computed: list[ast.expr | None] = [*defaults]
    for statement in kind.node.body:
        if isinstance(statement, ast.FunctionDef):
            arguments = statement.args
            computed += [*arguments.defaults, *arguments.kw_defaults, *statement.decorator_list]
        elif isinstance(statement, ast.AnnAssign):
            computed.append(statement.annotation)
    for expression in computed:
        for node in ast.walk(expression) if expression is not None else ():
            if isinstance(node, ast.Name) and node.id in own:
                what = f"in the class {kind.name}, what reads its own {node.id}"
                raise _unsupported(kind, node, what)


def _unsupported(kind: ClassValue, node: ast.AST, what: str) -> UnsupportedError:
    return UnsupportedError(node, what, kind.program.shown)


def _is_text(statement: ast.stmt) -> bool:
    return (
        isinstance(statement, ast.Expr)
        and isinstance(statement.value, ast.Constant)
        and isinstance(statement.value.value, str)
    )
