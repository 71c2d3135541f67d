# SPDX-License-Identifier: Apache-2.0
"""Whether the names in an emitted module mean what they seem to.

A function can be proved equal to its formula, and the module still be wrong, if anything else in
it gives the function's name, or `max`, another meaning. So a module may do only what is listed
here, and what is not listed is refused. To import it runs next to nothing: at the top level stand
imports, constants, functions and classes of plain fields. In functions nothing leads to the
module's namespace: the attributes, the builtins and the constructs that they may use are listed
too. What is listed differs between the modules by their `Shape`.
"""

from __future__ import annotations

import ast
import builtins
import io
import tokenize
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kvreshard.proofs.lifting.unsupported import UnsupportedError

if TYPE_CHECKING:
    from collections.abc import Iterator

_BASE = "NamedTuple"


@dataclass(frozen=True)
class Shape:
    """What a module may use.

    Attributes:
        imports: its import statements.
        classes: its classes, each a named tuple.
        builtins: none of these leads from a value to its type, its attributes or a namespace.
        attributes: without this list a frame, and so the namespace, could be had from a
            generator or a traceback, and another module from one that is imported.
        annotations: the annotations with a dot in them.
    """

    imports: tuple[str, ...]
    classes: tuple[str, ...]
    builtins: frozenset[str]
    attributes: frozenset[str]
    annotations: frozenset[str] = frozenset()


_COPY = frozenset({"sends", "src_head_offset", "dst_head_offset", "head_count"})
_BUILTINS = frozenset({"TypeError", "ValueError", "bool", "int", "isinstance", "repr", "str"})

PLANNER_SHAPE = Shape(
    imports=(
        "from __future__ import annotations",
        "from operator import index",
        "from typing import NamedTuple",
    ),
    classes=("TransferPlan",),
    builtins=_BUILTINS | {"divmod", "max", "min", "next", "range", "tuple"},
    attributes=_COPY | {"join"},
)
NUMPY_SHAPE = Shape(
    imports=(
        "from __future__ import annotations",
        "from typing import Any, NamedTuple",
        "import numpy as np",
        "from numpy.typing import ArrayLike, NDArray",
    ),
    classes=("SenderRanges", "TransferPlans"),
    builtins=_BUILTINS | {"all", "any", "tuple"},
    attributes=frozenset(
        {
            # What an array tells of itself, and its conversion.
            *("astype", "dtype", "flat", "kind", "shape"),
            # Of numpy: functions of values, and types. None of them leads to a module.
            *("any", "arange", "array", "asarray", "broadcast_arrays", "expand_dims", "where"),
            *("logical_and", "logical_not", "logical_or", "maximum", "minimum"),
            *("bool_", "int64", "ndarray"),
            "join",
        }
    ),
    annotations=frozenset({"np.bool_", "np.int64"}),
)

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


def check_module(tree: ast.Module, shape: Shape = PLANNER_SHAPE) -> None:
    """Check that each function's name and each builtin that formulas use has one meaning.

    Args:
        tree: the module.
        shape: what it may use.

    Raises:
        UnsupportedError: the module has something that is not listed as harmless.
    """
    bound: dict[str, ast.stmt] = {}
    for position, statement in enumerate(tree.body):
        if position == 0 and _is_docstring(statement):
            continue
        for name in _bound_by(statement, bound, shape):
            if name in bound:
                raise UnsupportedError(statement, f"another meaning for {name}")
            bound[name] = statement
    _check_names(tree, shape)


def _is_docstring(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and _is_string(statement.value)


def _bound_by(statement: ast.stmt, bound: dict[str, ast.stmt], shape: Shape) -> Iterator[str]:
    """Yield the names that a statement of the top level binds, once it is known to be harmless."""
    if isinstance(statement, ast.FunctionDef):
        _check_function(statement, shape)
        yield statement.name
    elif isinstance(statement, ast.ClassDef):
        _check_class(statement, shape)
        yield statement.name
    elif isinstance(statement, (ast.Import, ast.ImportFrom)):
        if ast.unparse(statement) not in shape.imports:
            raise UnsupportedError(statement, f"the statement {ast.unparse(statement)}")
        yield from (alias.asname or alias.name for alias in statement.names)
    elif isinstance(statement, ast.Assign):
        if len(statement.targets) > 1:
            raise UnsupportedError(statement, "an assignment to more than one name")
        name = _plain_name(statement.targets[0])
        _check_assigned(name, statement.value, bound, shape)
        yield name
    else:
        raise UnsupportedError(statement, f"a {type(statement).__name__} at the top level")


def _plain_name(target: ast.expr) -> str:
    if not isinstance(target, ast.Name):
        raise UnsupportedError(target, f"assignment to {ast.unparse(target)}")
    return target.id


def _check_assigned(name: str, value: ast.expr, bound: dict[str, ast.stmt], shape: Shape) -> None:
    if name == "__all__":
        if not isinstance(value, ast.List) or not all(map(_is_string, value.elts)):
            raise UnsupportedError(value, "an __all__ that is not a list of strings")
        return
    if isinstance(value, ast.Call):
        made = ast.unparse(value.func)
        is_class = made in shape.classes and isinstance(bound.get(made), ast.ClassDef)
        if not is_class or value.keywords or not all(map(_is_constant, value.args)):
            raise UnsupportedError(value, f"a call at the top level: {ast.unparse(value)}")
        return
    for node in ast.walk(value):
        if not isinstance(node, _IN_VALUES) or (isinstance(node, ast.Dict) and None in node.keys):
            raise UnsupportedError(value, f"a {type(node).__name__} in a value at the top level")


def _check_function(function: ast.FunctionDef, shape: Shape) -> None:
    if function.decorator_list or getattr(function, "type_params", None):
        raise UnsupportedError(function, "a decorator or type parameter")
    arguments = function.args
    for default in (*arguments.defaults, *arguments.kw_defaults):
        if default is not None and not _is_constant(default):
            raise UnsupportedError(default, f"the default value {ast.unparse(default)}")
    optional = (arguments.vararg, arguments.kwarg)
    for argument in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, *optional):
        _check_annotation(argument.annotation if argument else None, shape)
    _check_annotation(function.returns, shape)
    for statement in function.body:
        for node in ast.walk(statement):
            _check_in_body(node, shape)


def _check_in_body(node: ast.AST, shape: Shape) -> None:
    if not isinstance(node, _IN_BODIES):
        raise UnsupportedError(node, f"a {type(node).__name__} in a function")
    if isinstance(node, ast.Attribute) and node.attr not in shape.attributes:
        raise UnsupportedError(node, f"a use of {node.attr}")
    if isinstance(node, (ast.Attribute, ast.Subscript)) and not isinstance(node.ctx, ast.Load):
        raise UnsupportedError(node, f"assignment to {ast.unparse(node)}")


def _check_class(made: ast.ClassDef, shape: Shape) -> None:
    bases = [ast.unparse(base) for base in made.bases]
    if made.name not in shape.classes or bases != [_BASE] or made.keywords or made.decorator_list:
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
        _check_annotation(statement.annotation, shape)


def _check_annotation(annotation: ast.expr | None, shape: Shape) -> None:
    if annotation is None:
        return
    for node in ast.walk(annotation):
        is_text = isinstance(node, ast.Constant) and isinstance(node.value, str)
        is_dotted = isinstance(node, ast.Attribute) and ast.unparse(node) in shape.annotations
        if is_text or not (is_dotted or isinstance(node, _IN_ANNOTATIONS)):
            raise UnsupportedError(annotation, f"the annotation {ast.unparse(annotation)}")


def _check_names(tree: ast.Module, shape: Shape) -> None:
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
        if isinstance(node, ast.Name) and node.id not in own and node.id not in shape.builtins:
            raise UnsupportedError(node, f"a use of {node.id}")
        if isinstance(node, ast.Constant) and str(node.value).startswith("__"):
            raise UnsupportedError(node, f"the string {node.value!r}")


def _names_given_by(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
        yield node.id
    elif isinstance(node, ast.arg):
        yield node.arg
    elif isinstance(node, (ast.FunctionDef, ast.ClassDef)):
        yield node.name
    elif isinstance(node, ast.alias):
        yield node.asname or node.name
    elif isinstance(node, ast.ExceptHandler):
        yield node.name or ""


def _is_constant(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant)


def _is_string(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)
