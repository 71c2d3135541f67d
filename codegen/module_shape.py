# SPDX-License-Identifier: Apache-2.0
"""Whether the names in an emitted module mean what they seem to.

A function can be proved equal to its formula, and the module still be wrong, if anything else in
it gives the function's name, or `max`, another meaning. So a module may do only what is listed
here, and what is not listed is refused. To import it runs next to nothing: at the top level stand
imports, constants, functions and one class. In functions nothing leads to the module's namespace:
the attributes, the builtins and the constructs that they may use are listed too.
"""

from __future__ import annotations

import ast
import builtins
import io
import tokenize
from typing import TYPE_CHECKING

from kvreshard.codegen.lift import UnsupportedError

if TYPE_CHECKING:
    from collections.abc import Iterator

_IMPORTS = (
    "from __future__ import annotations",
    "from operator import index",
    "from typing import NamedTuple",
)
_CLASS = "TransferPlan"
_BASE = "NamedTuple"
# None of these leads from a value to its type, its attributes or a namespace.
_BUILTINS = {
    "TypeError",
    "ValueError",
    "bool",
    "divmod",
    "int",
    "isinstance",
    "max",
    "min",
    "next",
    "range",
    "repr",
    "str",
    "tuple",
}
# Without this list a frame, and so the namespace, could be had from a generator or a traceback.
_ATTRIBUTES = {"join", "sends", "src_head_offset", "dst_head_offset", "head_count"}

_IN_VALUES = (ast.Constant, ast.Name, ast.Tuple, ast.List, ast.Dict, ast.Load)
_IN_ANNOTATIONS = (
    *(ast.Constant, ast.Name, ast.Tuple, ast.Subscript, ast.Load),
    *(ast.BinOp, ast.BitOr),
)
_IN_BODIES = (
    # Statements. A `match` would read attributes, an augmented assignment change what it names.
    *(ast.Assign, ast.Expr, ast.If, ast.Raise, ast.Return, ast.Try, ast.ExceptHandler),
    # Values.
    *(ast.Attribute, ast.Call, ast.Constant, ast.Name, ast.Subscript, ast.Tuple),
    *(ast.FormattedValue, ast.GeneratorExp, ast.JoinedStr, ast.comprehension),
    # Operations.
    *(ast.BinOp, ast.BoolOp, ast.Compare, ast.IfExp, ast.UnaryOp),
    *(ast.boolop, ast.cmpop, ast.operator, ast.unaryop, ast.Load, ast.Store),
)


def check_encoding(source: str) -> None:
    """Check that Python reads the text as it was read here, as UTF-8.

    Raises:
        UnsupportedError: the text declares another encoding.
    """
    try:
        found, _ = tokenize.detect_encoding(io.BytesIO(source.encode()).readline)
    except (SyntaxError, UnicodeError) as error:
        raise UnsupportedError(ast.Module([], []), f"an encoding: {error}") from None
    if found != "utf-8":
        raise UnsupportedError(ast.Module([], []), f"the encoding {found}")


def check_module(tree: ast.Module) -> None:
    """Check that each function's name and each builtin that formulas use has one meaning.

    Raises:
        UnsupportedError: the module has something that is not listed as harmless.
    """
    bound: dict[str, ast.stmt] = {}
    for position, statement in enumerate(tree.body):
        if position == 0 and _is_docstring(statement):
            continue
        for name in _bound_by(statement, bound):
            if name in bound:
                raise UnsupportedError(statement, f"another meaning for {name}")
            bound[name] = statement
    _check_names(tree)


def _is_docstring(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and _is_string(statement.value)


def _bound_by(statement: ast.stmt, bound: dict[str, ast.stmt]) -> Iterator[str]:
    """Yield the names that a statement of the top level binds, once it is known to be harmless."""
    if isinstance(statement, ast.FunctionDef):
        _check_function(statement)
        yield statement.name
    elif isinstance(statement, ast.ClassDef):
        _check_class(statement)
        yield statement.name
    elif isinstance(statement, ast.ImportFrom):
        if ast.unparse(statement) not in _IMPORTS:
            raise UnsupportedError(statement, f"the import {ast.unparse(statement)}")
        yield from (alias.name for alias in statement.names)
    elif isinstance(statement, ast.Assign):
        if len(statement.targets) > 1:
            raise UnsupportedError(statement, "an assignment to more than one name")
        name = _plain_name(statement.targets[0])
        _check_assigned(name, statement.value, bound)
        yield name
    else:
        raise UnsupportedError(statement, f"a {type(statement).__name__} at the top level")


def _plain_name(target: ast.expr) -> str:
    if not isinstance(target, ast.Name):
        raise UnsupportedError(target, f"assignment to {ast.unparse(target)}")
    return target.id


def _check_assigned(name: str, value: ast.expr, bound: dict[str, ast.stmt]) -> None:
    if name == "__all__":
        if not isinstance(value, ast.List) or not all(map(_is_string, value.elts)):
            raise UnsupportedError(value, "an __all__ that is not a list of strings")
        return
    if isinstance(value, ast.Call):
        is_plan = ast.unparse(value.func) == _CLASS and isinstance(bound.get(_CLASS), ast.ClassDef)
        if not is_plan or value.keywords or not all(map(_is_constant, value.args)):
            raise UnsupportedError(value, f"a call at the top level: {ast.unparse(value)}")
        return
    for node in ast.walk(value):
        if not isinstance(node, _IN_VALUES) or (isinstance(node, ast.Dict) and None in node.keys):
            raise UnsupportedError(value, f"a {type(node).__name__} in a value at the top level")


def _check_function(function: ast.FunctionDef) -> None:
    if function.decorator_list or getattr(function, "type_params", None):
        raise UnsupportedError(function, "a decorator or type parameter")
    arguments = function.args
    for default in (*arguments.defaults, *arguments.kw_defaults):
        if default is not None and not _is_constant(default):
            raise UnsupportedError(default, f"the default value {ast.unparse(default)}")
    optional = (arguments.vararg, arguments.kwarg)
    for argument in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, *optional):
        _check_annotation(argument.annotation if argument else None)
    _check_annotation(function.returns)
    for statement in function.body:
        for node in ast.walk(statement):
            _check_in_body(node)


def _check_in_body(node: ast.AST) -> None:
    if not isinstance(node, _IN_BODIES):
        raise UnsupportedError(node, f"a {type(node).__name__} in a function")
    if isinstance(node, ast.Attribute) and node.attr not in _ATTRIBUTES:
        raise UnsupportedError(node, f"a use of {node.attr}")
    if isinstance(node, (ast.Attribute, ast.Subscript)) and not isinstance(node.ctx, ast.Load):
        raise UnsupportedError(node, f"assignment to {ast.unparse(node)}")


def _check_class(made: ast.ClassDef) -> None:
    bases = [ast.unparse(base) for base in made.bases]
    if made.name != _CLASS or bases != [_BASE] or made.keywords or made.decorator_list:
        raise UnsupportedError(made, f"the class {made.name}")
    if getattr(made, "type_params", None):
        raise UnsupportedError(made, f"the class {made.name}")
    for position, statement in enumerate(made.body):
        if position == 0 and _is_docstring(statement):
            continue
        if not isinstance(statement, ast.AnnAssign) or statement.value is not None:
            what = f"a {type(statement).__name__} in a class, or a value"
            raise UnsupportedError(statement, what)
        _plain_name(statement.target)
        _check_annotation(statement.annotation)


def _check_annotation(annotation: ast.expr | None) -> None:
    if annotation is None:
        return
    for node in ast.walk(annotation):
        is_text = isinstance(node, ast.Constant) and isinstance(node.value, str)
        if is_text or not isinstance(node, _IN_ANNOTATIONS):
            raise UnsupportedError(annotation, f"the annotation {ast.unparse(annotation)}")


def _check_names(tree: ast.Module) -> None:
    """Check every name, wherever it stands, and every string that could be one."""
    own: set[str] = set()
    for node in ast.walk(tree):
        for name in _names_given_by(node):
            if name in dir(builtins):
                raise UnsupportedError(node, f"another meaning for {name}")
            if name.startswith("__") and name != "__all__":
                raise UnsupportedError(node, f"a definition of {name}")
            own.add(name)
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and node.id not in own and node.id not in _BUILTINS:
            raise UnsupportedError(node, f"a use of {node.id}")
        if isinstance(node, ast.Constant) and str(node.value).startswith("__"):
            raise UnsupportedError(node, f"the string {node.value!r}")


def _names_given_by(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
        yield node.id
    elif isinstance(node, ast.arg):
        yield node.arg
    elif isinstance(node, (ast.FunctionDef, ast.ClassDef, ast.alias)):
        yield node.name
    elif isinstance(node, ast.ExceptHandler):
        yield node.name or ""


def _is_constant(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant)


def _is_string(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)
