# SPDX-License-Identifier: Apache-2.0
"""Print z3 expressions as Python.

Only what formulas are made of is printed: integers, the operations that Python and z3 share where
the divisors are at least 1, comparisons, truth functions, conditionals and applications of
formulas. Anything else is an `UnprintableError`, so that nothing is printed by guess.

There are two dialects: `PYTHON`, over integers, and `NUMPY`, over arrays of them. Arithmetic and
comparisons are written alike; numpy has functions for the rest, which take each element. A
conditional would compute both its branches there, whether they are defined or not, so it is not
printed unless it is a maximum or a minimum.

The layout is the one that the formatter of the emitted file gives, so that formatting it changes
nothing. It is kept simple by naming intermediate values: where a formula does not fit on one
line, each application of another formula in it becomes a local variable.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import z3

from kvreshard.spec.formula import extremum

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import TypeAlias

    _Printer: TypeAlias = Callable[[list[z3.ExprRef], "_Scope"], "_Text"]

LINE_LENGTH = 88
INDENT = "    "

# How tightly the operators of Python bind, loosest first.
_TERNARY, _OR, _AND, _NOT, _COMPARISON, _SUM, _PRODUCT, _NEGATION, _ATOM = range(9)

_COMPARISONS = {
    z3.Z3_OP_EQ: "==",
    z3.Z3_OP_DISTINCT: "!=",
    z3.Z3_OP_LE: "<=",
    z3.Z3_OP_LT: "<",
    z3.Z3_OP_GE: ">=",
    z3.Z3_OP_GT: ">",
}
_SWAPPED = {"==": "==", "!=": "!=", "<=": ">=", "<": ">", ">=": "<=", ">": "<"}


class UnprintableError(Exception):
    """The expression has an operator that the printer does not know; the message names it."""


@dataclass(frozen=True)
class _Text:
    """Python text on one line, and what is needed to break it into several.

    Attributes:
        text: the whole text.
        binding: how tightly its outermost operator binds.
        pieces: the operands of a chain of operators, each after its operator, or the
            arguments of a call.
        function: what is called, where `pieces` are arguments.
    """

    text: str
    binding: int
    pieces: tuple[tuple[str, _Text], ...] = ()
    function: str | None = None


@dataclass(frozen=True)
class Dialect:
    """How values are typed and how operations are printed.

    Attributes:
        integer: the annotation of an integer.
        truth: the annotation of a truth value.
        constant: what returns an integer that depends on no parameter, around the number.
        printers: for each operator that it has, what prints it.
    """

    integer: str
    truth: str
    constant: str
    printers: Mapping[int, _Printer] = field(repr=False)


@dataclass(frozen=True)
class _Scope:
    """The dialect, and the local variable that stands for an expression, by the expression's id."""

    dialect: Dialect
    names: dict[int, str] = field(default_factory=dict)


def print_expression(expression: z3.ExprRef) -> str:
    """Return the expression as Python on one line.

    Raises:
        UnprintableError: an operator in it has no Python counterpart here.
    """
    return _print(expression, _Scope(PYTHON)).text


def print_body(
    expression: z3.ExprRef, taken: Iterable[str] = (), dialect: Dialect | None = None
) -> list[str]:
    """Return the lines of a function body that returns the expression.

    Args:
        expression: what to return.
        taken: names that a local variable must not have: parameters, functions.
        dialect: `PYTHON` unless given.

    Raises:
        UnprintableError: an operator in it has no Python counterpart here.
    """
    scope = _Scope(dialect or PYTHON)
    if z3.is_int_value(expression):
        return [f"{INDENT}return {scope.dialect.constant.format(_print(expression, scope).text)}"]
    whole = f"{INDENT}return {_print(expression, scope).text}"
    if len(whole) <= LINE_LENGTH:
        return [whole]
    lines: list[str] = []
    used = set(taken)
    for call in _inner_calls(expression):
        name = _local_name(call, scope, used)
        lines += _broken(_print(call, scope), f"{name} = ", "", INDENT)
        scope.names[call.get_id()] = name
        used.add(name)
    return lines + _return(_print(expression, scope), INDENT)


def bracketed(start: str, items: Iterable[str], end: str, indent: str = "") -> list[str]:
    """Return the lines of a comma-separated list between `start` and `end`.

    It is on one line where it fits, else the items are on a line of their own, else each is.
    """
    items = list(items)
    whole = f"{indent}{start}{', '.join(items)}{end}"
    if len(whole) <= LINE_LENGTH:
        return [whole]
    inner = f"{indent}{INDENT}{', '.join(items)}"
    if len(inner) <= LINE_LENGTH:
        return [indent + start, inner, indent + end]
    return [indent + start, *(f"{indent}{INDENT}{item}," for item in items), indent + end]


def is_application(expression: z3.ExprRef) -> bool:
    """Whether the expression applies a formula to arguments."""
    return _is_uninterpreted(expression) and expression.num_args() > 0


def is_constant(expression: z3.ExprRef) -> bool:
    """Whether the expression is a parameter."""
    return _is_uninterpreted(expression) and expression.num_args() == 0


def _is_uninterpreted(expression: z3.ExprRef) -> bool:
    """Whether the outermost symbol is one that z3 gives no meaning to."""
    return bool(z3.is_app(expression) and expression.decl().kind() == z3.Z3_OP_UNINTERPRETED)


# From z3 to text.


def _print(expression: z3.ExprRef, scope: _Scope) -> _Text:
    if expression.get_id() in scope.names:
        return _Text(scope.names[expression.get_id()], _ATOM)
    if not z3.is_app(expression):
        raise UnprintableError(f"cannot print {type(expression).__name__}: {expression}")
    if z3.is_int_value(expression):
        value = str(expression.as_long())
        return _Text(value, _NEGATION if value.startswith("-") else _ATOM)
    if is_constant(expression):
        return _Text(expression.decl().name(), _ATOM)
    if is_application(expression):
        return _call(expression.decl().name(), expression.children(), scope)
    return _print_operator(expression, scope)


def _print_operator(expression: z3.ExprRef, scope: _Scope) -> _Text:
    kind = expression.decl().kind()
    children = expression.children()
    if kind in _COMPARISONS and len(children) == 2 and all(map(z3.is_int, children)):
        return _print_comparison(_COMPARISONS[kind], children, scope)
    if kind in scope.dialect.printers and (z3.is_int(expression) or z3.is_bool(expression)):
        return scope.dialect.printers[kind](children, scope)
    sorts = ", ".join(str(child.sort()) for child in children)
    raise UnprintableError(
        f"cannot print the z3 operator {expression.decl().name()} over ({sorts}): {expression}"
    )


def _wrapped(text: _Text, at_least: int) -> _Text:
    """Put parentheses around what binds too loosely: a call of no function, in a way."""
    if text.binding >= at_least:
        return text
    return _Text(f"({text.text})", _ATOM, (("", text),), function="")


def _call(function: str, arguments: Iterable[z3.ExprRef], scope: _Scope) -> _Text:
    return _call_with(function, [_print(argument, scope) for argument in arguments])


def _call_with(function: str, texts: list[_Text]) -> _Text:
    joined = ", ".join(text.text for text in texts)
    return _Text(f"{function}({joined})", _ATOM, tuple(("", text) for text in texts), function)


def _operation(pieces: Iterable[tuple[str, _Text]], binding: int) -> _Text:
    pieces = tuple(pieces)
    return _Text("".join(before + text.text for before, text in pieces), binding, pieces)


def _chain(operator: str, binding: int) -> _Printer:
    """Print a left-associative operator of two or more operands."""
    # `a - b - c` continues the chain of its first operand; a later operand needs parentheses
    # if it binds no tighter, since `a - (b - c)` is something else. `and` inside `or` gets
    # them as well, since few readers are sure.
    tighter = _NOT if operator == "or" else binding + 1

    def printer(children: list[z3.ExprRef], scope: _Scope) -> _Text:
        first, *rest = [_print(child, scope) for child in children]
        start = first.pieces if first.binding == binding else (("", _wrapped(first, tighter)),)
        return _operation(
            (*start, *((f" {operator} ", _wrapped(text, tighter)) for text in rest)), binding
        )

    return printer


def _print_comparison(operator: str, children: list[z3.ExprRef], scope: _Scope) -> _Text:
    left, right = children
    if z3.is_int_value(left) and not z3.is_int_value(right):
        left, right, operator = right, left, _SWAPPED[operator]
    # Both sides are integers, so that neither is itself a comparison.
    first, second = (_wrapped(_print(side, scope), _SUM) for side in (left, right))
    return _operation((("", first), (f" {operator} ", second)), _COMPARISON)


def _print_not(children: list[z3.ExprRef], scope: _Scope) -> _Text:
    unequal = _print_unequal(children, scope)
    return unequal or _operation((("not ", _wrapped(_print(children[0], scope), _NOT)),), _NOT)


def _print_unequal(children: list[z3.ExprRef], scope: _Scope) -> _Text | None:
    """Print the negation of what can be negated by another operator."""
    (child,) = children
    if child.num_args() == 2 and z3.is_int(child.arg(0)):
        if z3.is_eq(child):
            return _print_comparison("!=", child.children(), scope)
        if z3.is_distinct(child):
            return _print_comparison("==", child.children(), scope)
    return None


def _print_negation(children: list[z3.ExprRef], scope: _Scope) -> _Text:
    return _operation((("-", _wrapped(_print(children[0], scope), _ATOM)),), _NEGATION)


def _print_if(children: list[z3.ExprRef], scope: _Scope) -> _Text:
    condition, then, otherwise = children
    function = extremum(condition, then, otherwise)
    if function is not None:
        return _call(function, (then, otherwise), scope)
    return _operation(
        (
            ("", _wrapped(_print(then, scope), _OR)),
            (" if ", _wrapped(_print(condition, scope), _OR)),
            (" else ", _print(otherwise, scope)),
        ),
        _TERNARY,
    )


def _chain_of_calls(function: str) -> _Printer:
    """Print an operation of two or more operands as calls of a function of two."""

    def printer(children: list[z3.ExprRef], scope: _Scope) -> _Text:
        result, *rest = [_print(child, scope) for child in children]
        for text in rest:
            result = _call_with(function, [result, text])
        return result

    return printer


def _print_array_not(children: list[z3.ExprRef], scope: _Scope) -> _Text:
    return _print_unequal(children, scope) or _call("np.logical_not", children, scope)


def _print_array_if(children: list[z3.ExprRef], scope: _Scope) -> _Text:
    function = extremum(*children)
    if function is None:
        raise UnprintableError(
            f"arrays would compute both branches of the conditional: {children[1:]}"
        )
    return _call(f"np.{function}imum", children[1:], scope)


_ARITHMETIC: dict[int, _Printer] = {
    z3.Z3_OP_ADD: _chain("+", _SUM),
    z3.Z3_OP_SUB: _chain("-", _SUM),
    z3.Z3_OP_MUL: _chain("*", _PRODUCT),
    z3.Z3_OP_IDIV: _chain("//", _PRODUCT),
    z3.Z3_OP_MOD: _chain("%", _PRODUCT),
    z3.Z3_OP_UMINUS: _print_negation,
}
PYTHON = Dialect(
    integer="int",
    truth="bool",
    constant="{}",
    printers=_ARITHMETIC
    | {
        z3.Z3_OP_TRUE: lambda _children, _scope: _Text("True", _ATOM),
        z3.Z3_OP_FALSE: lambda _children, _scope: _Text("False", _ATOM),
        z3.Z3_OP_AND: _chain("and", _AND),
        z3.Z3_OP_OR: _chain("or", _OR),
        z3.Z3_OP_NOT: _print_not,
        z3.Z3_OP_ITE: _print_if,
    },
)
NUMPY = Dialect(
    integer="NDArray[np.int64]",
    truth="NDArray[np.bool_]",
    constant="np.array({}, np.int64)",
    printers=_ARITHMETIC
    | {
        z3.Z3_OP_AND: _chain_of_calls("np.logical_and"),
        z3.Z3_OP_OR: _chain_of_calls("np.logical_or"),
        z3.Z3_OP_NOT: _print_array_not,
        z3.Z3_OP_ITE: _print_array_if,
    },
)


# From text to lines.


def _inner_calls(expression: z3.ExprRef) -> list[z3.ExprRef]:
    """Return the applications below the root that may be computed first, innermost first.

    The branches of a conditional are left alone: only one of them is computed. What `max` and
    `min` are printed from is no such conditional.
    """
    found: dict[int, z3.ExprRef] = {}

    def visit(node: z3.ExprRef) -> None:
        children = node.children()
        if z3.is_app_of(node, z3.Z3_OP_ITE):
            children = children[1:] if extremum(*children) else children[:1]
        for child in children:
            visit(child)
        if is_application(node) and not node.eq(expression):
            found[node.get_id()] = node

    visit(expression)
    return list(found.values())


def _local_name(call: z3.ExprRef, scope: _Scope, used: set[str]) -> str:
    """Return a free name for the value: `producer_head_count`, `overlap_start_value`."""
    function = call.decl().name()
    sides = {
        side
        for child in call.children()
        for side in ("producer", "consumer")
        if _print(child, scope).text.startswith(f"{side}_")
    }
    stem = f"{sides.pop()}_{function}" if len(sides) == 1 else f"{function}_value"
    name, count = stem, 1
    while name in used:
        count += 1
        name = f"{stem}_{count}"
    return name


def _broken(text: _Text, before: str, after: str, indent: str) -> list[str]:
    """Return the lines of the text, inside brackets or after an assignment."""
    whole = indent + before + text.text + after
    if len(whole) <= LINE_LENGTH or not text.pieces:
        return [whole]
    if text.function is not None:
        return _broken_call(text, before, after, indent)
    lines: list[str] = []
    last = len(text.pieces) - 1
    for position, (operator, piece) in enumerate(text.pieces):
        start = before + operator if position == 0 else operator.lstrip()
        lines += _broken(piece, start, after if position == last else "", indent)
    return lines


def _broken_call(text: _Text, before: str, after: str, indent: str) -> list[str]:
    arguments = [piece for _, piece in text.pieces]
    inner = indent + INDENT
    one_line = inner + ", ".join(argument.text for argument in arguments)
    if len(one_line) <= LINE_LENGTH:
        lines = [one_line]
    else:
        # Mere parentheses must not get a comma, which would make a tuple.
        comma = "," if text.function else ""
        lines = [line for piece in arguments for line in _broken(piece, "", comma, inner)]
    return [f"{indent}{before}{text.function}(", *lines, f"{indent}){after}"]


def _return(text: _Text, indent: str) -> list[str]:
    fits = len(indent) + len("return ") + len(text.text) <= LINE_LENGTH
    if fits or not text.pieces or _ends_in_brackets(text):
        return _broken(text, "return ", "", indent)
    return [f"{indent}return (", *_broken(text, "", "", indent + INDENT), f"{indent})"]


def _ends_in_brackets(text: _Text) -> bool:
    """Whether the text can be broken inside brackets of its own: a call, `not (...)`."""
    if len(text.pieces) == 1 and text.function is None:
        return _ends_in_brackets(text.pieces[0][1])
    return text.function is not None
