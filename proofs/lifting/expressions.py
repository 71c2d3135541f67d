# SPDX-License-Identifier: Apache-2.0
"""The meaning of expressions."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

import z3

from kvreshard.proofs.lifting import numbers
from kvreshard.proofs.lifting.path import CannotTellError
from kvreshard.proofs.lifting.scope import bound_names, is_hidden
from kvreshard.proofs.lifting.values import (
    Builtin,
    Imported,
    Logger,
    Range,
    Record,
    Text,
    Truth,
    Value,
    as_integer,
    is_integer,
    is_known,
    is_truth,
    kind_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from kvreshard.proofs.lifting.interpreter import Interpreter
    from kvreshard.proofs.lifting.scope import Scope


def integer(run: Interpreter, scope: Scope, node: ast.expr) -> Value:
    """Return the integer that an expression gives; a truth value counts as 0 or 1."""
    return to_integer(run.evaluate(scope, node), scope, node)


def to_integer(value: Value, scope: Scope, node: ast.AST) -> Value:
    """Return an operand as the integer that arithmetic takes it for."""
    if is_truth(value) and not scope.path.meaning.elementwise:
        return as_integer(value)
    if not is_integer(value):
        raise scope.unsupported(node, f"a {kind_of(value)} where an integer is known: {said(node)}")
    return value


def said(node: ast.AST) -> str:
    """Return an expression as text, cut if it is long."""
    text = ast.unparse(node)
    return text if len(text) <= 60 else f"{text[:57]}..."


def truth(value: Value, scope: Scope, node: ast.AST) -> Truth:
    """Return whether a value counts as true."""
    if is_truth(value):
        return value
    if is_integer(value):
        return value != 0
    if value is None:
        return False
    if isinstance(value, (str, tuple, list)):
        return len(value) > 0
    if isinstance(value, Record) and not value.kind.is_tuple:
        return True
    raise scope.unsupported(node, f"whether a {kind_of(value)} is true: {said(node)}")


def name(run: Interpreter, scope: Scope, node: ast.Name) -> Value:
    """Look a name up: local, then the module's, then Python's own."""
    if is_hidden(node.id):
        raise scope.unsupported(node, f"the name {node.id}")
    if node.id in scope.local:
        return scope.local[node.id]
    if node.id in scope.own:
        if scope.is_comprehension:
            # Which error it is depends on the version of Python.
            raise scope.unsupported(node, f"{node.id}, which is not bound yet")
        raise scope.raises("UnboundLocalError", node)
    return run.global_value(scope, node)


def constant(run: Interpreter, scope: Scope, node: ast.Constant) -> Value:  # noqa: ARG001 - has the parameters of all
    """Return an integer, a truth value, a text or None."""
    if isinstance(node.value, (int, str)) or node.value is None:
        if scope.path.meaning.elementwise and not is_integer(node.value):
            raise scope.unsupported(node, f"the constant {node.value!r}")
        return node.value
    raise scope.unsupported(node, f"the constant {node.value!r}")


def binary(run: Interpreter, scope: Scope, node: ast.BinOp) -> Value:
    """Apply an operator of two operands."""
    left, right = run.evaluate(scope, node.left), run.evaluate(scope, node.right)
    return apply(run, scope, node.op, left, right, node)


def apply(
    run: Interpreter,  # noqa: ARG001 - has the parameters of all
    scope: Scope,
    op: ast.operator,
    left: Value,
    right: Value,
    node: ast.AST,
) -> Value:
    """Apply an operator to values."""
    if isinstance(left, (list, tuple)) or isinstance(right, (list, tuple)):
        return _of_sequences(scope, op, left, right, node)
    known = _ARRAY_OPERATORS if scope.path.meaning.elementwise else _OPERATORS
    if not isinstance(op, known):
        what = "Div, which gives a float" if isinstance(op, ast.Div) else type(op).__name__
        raise scope.unsupported(node, f"the operator {what}: {said(node)}")
    left, right = (to_integer(value, scope, node) for value in (left, right))
    if isinstance(op, ast.Add):
        return left + right
    if isinstance(op, ast.Sub):
        return left - right
    if isinstance(op, ast.Mult):
        return left * right
    if isinstance(op, ast.FloorDiv):
        return numbers.floor_division(scope.path, left, right, node, scope.file)
    if isinstance(op, ast.Mod):
        return numbers.remainder(scope.path, left, right, node, scope.file)
    if isinstance(op, (ast.LShift, ast.RShift)):
        return numbers.shift(left, right, isinstance(op, ast.LShift), node, scope.file)
    return numbers.power(left, right, node, scope.file)


# Shifts and powers compute more than the one integer that they give.
_ARRAY_OPERATORS = (ast.Add, ast.Sub, ast.Mult, ast.FloorDiv, ast.Mod)
_OPERATORS = (*_ARRAY_OPERATORS, ast.LShift, ast.RShift, ast.Pow)
# A list or tuple longer than this is no planner's.
MOST_ITEMS = 100_000


def _of_sequences(
    scope: Scope, op: ast.operator, left: Value, right: Value, node: ast.AST
) -> Value:
    if isinstance(op, ast.Add) and type(left) is type(right):
        check_length(scope, len(left) + len(right), node)
        return left + right
    if isinstance(op, ast.Mult):
        sequence, count = (left, right) if isinstance(left, (list, tuple)) else (right, left)
        if is_integer(count) and is_known(count):
            check_length(scope, len(sequence) * count, node)
            return sequence * count
    raise scope.unsupported(node, f"an operator of a list or tuple: {said(node)}")


def check_length(scope: Scope, length: int, node: ast.AST) -> None:
    """Refuse a list or tuple that grows beyond measure."""
    if length > MOST_ITEMS:
        raise scope.unsupported(node, f"more than {MOST_ITEMS} items")


def unary(run: Interpreter, scope: Scope, node: ast.UnaryOp) -> Value:
    """Apply an operator of one operand."""
    if isinstance(node.op, ast.Not) and not scope.path.meaning.elementwise:
        return numbers.opposite(truth(run.evaluate(scope, node.operand), scope, node))
    if isinstance(node.op, ast.USub):
        return numbers.negative(integer(run, scope, node.operand))
    if isinstance(node.op, ast.UAdd) and not scope.path.meaning.elementwise:
        return integer(run, scope, node.operand)
    raise scope.unsupported(node, f"the operator {type(node.op).__name__}")


def connective(run: Interpreter, scope: Scope, node: ast.BoolOp) -> Value:
    """Return what `and` or `or` gives: one of the operands, the later ones only if needed."""
    if scope.path.meaning.elementwise:
        raise scope.unsupported(node, f"the truth of an array: {said(node)}")
    is_and = isinstance(node.op, ast.And)
    value = run.evaluate(scope, node.values[0])
    for other in node.values[1:]:
        value = _joined(run, scope, is_and, value, other)
    return value


def _joined(run: Interpreter, scope: Scope, is_and: bool, left: Value, node: ast.expr) -> Value:
    goes_on = truth(left, scope, node) if is_and else numbers.opposite(truth(left, scope, node))
    known = scope.path.known(goes_on)
    if known is not None:
        return run.evaluate(scope, node) if known else left
    if is_truth(left):
        for right in _aside(run, scope, node, goes_on):
            if is_truth(right):
                return numbers.both(left, right) if is_and else numbers.either(left, right)
    return run.evaluate(scope, node) if scope.path.decide(goes_on, node) else left


_PURE = (
    ast.Name,
    ast.Constant,
    ast.BinOp,
    ast.UnaryOp,
    ast.BoolOp,
    ast.Compare,
    ast.IfExp,
    ast.operator,
    ast.unaryop,
    ast.boolop,
    ast.cmpop,
    ast.expr_context,
)


def _aside(run: Interpreter, scope: Scope, node: ast.expr, condition: Truth) -> list[Value]:
    """Return the value that an expression has where a condition holds, if that can be told.

    It is worked out although it may not be computed. So it has to be without effects, and neither
    part the way nor raise; else nothing is returned, and the way has to part at the condition.
    """
    if not scope.path.meaning.merges or not _is_pure(run, scope, node):
        return []
    try:
        with scope.path.working_under(condition):
            return [run.evaluate(scope, node)]
    except CannotTellError:
        return []


def _is_pure(run: Interpreter, scope: Scope, node: ast.expr) -> bool:
    """Whether an expression calls nothing that has an effect."""
    for child in ast.walk(node):
        if isinstance(child, ast.Call):
            called = child.func
            if not isinstance(called, ast.Name) or child.keywords or called.id in scope.own:
                return False
            value = run.global_value(scope, called)
            if not isinstance(value, Builtin) or not value.is_pure:
                return False
        elif not isinstance(child, _PURE):
            return False
    return True


def conditional(run: Interpreter, scope: Scope, node: ast.IfExp) -> Value:
    """Return one of two expressions; the other is not computed."""
    if scope.path.meaning.elementwise:
        raise scope.unsupported(node, f"the truth of an array: {said(node)}")
    condition = truth(run.evaluate(scope, node.test), scope, node.test)
    known = scope.path.known(condition)
    if known is None:
        for then in _aside(run, scope, node.body, condition):
            for otherwise in _aside(run, scope, node.orelse, numbers.opposite(condition)):
                if all(map(is_integer, (then, otherwise))) or all(map(is_truth, (then, otherwise))):
                    return numbers.choose(scope.path, condition, then, otherwise)
    taken = known if known is not None else scope.path.decide(condition, node)
    return run.evaluate(scope, node.body if taken else node.orelse)


def comparison(run: Interpreter, scope: Scope, node: ast.Compare) -> Value:
    """Return whether a chain of comparisons holds; the later ones are computed only if needed."""
    if scope.path.meaning.elementwise and len(node.ops) != 1:
        raise scope.unsupported(node, f"a chain of comparisons: {said(node)}")
    left = run.evaluate(scope, node.left)
    result: Truth = True
    for op, operand in zip(node.ops, node.comparators, strict=True):
        known = scope.path.known(result)
        if known is False:
            return False
        aside = _aside(run, scope, operand, result) if known is None else []
        if known is None and not aside:
            if not scope.path.decide(result, node):
                return False
            result = True
        right = aside[0] if aside else run.evaluate(scope, operand)
        result = numbers.both(result, compare(scope, op, left, right, node))
        left = right
    return result


def compare(scope: Scope, op: ast.cmpop, left: Value, right: Value, node: ast.AST) -> Truth:
    """Return whether one comparison holds."""
    if scope.path.meaning.elementwise and type(op) not in numbers.COMPARISONS:
        raise scope.unsupported(node, f"the comparison {type(op).__name__}: {said(node)}")
    if isinstance(op, (ast.Is, ast.IsNot)):
        return _identity(scope, isinstance(op, ast.Is), left, right, node)
    if isinstance(op, (ast.In, ast.NotIn)):
        found = _contains(scope, right, left, node)
        return found if isinstance(op, ast.In) else numbers.opposite(found)
    if isinstance(op, (ast.Eq, ast.NotEq)):
        same = equal(scope, left, right, node)
        return same if isinstance(op, ast.Eq) else numbers.opposite(same)
    left, right = (to_integer(value, scope, node) for value in (left, right))
    return numbers.COMPARISONS[type(op)](left, right)


def _identity(scope: Scope, positive: bool, left: Value, right: Value, node: ast.AST) -> Truth:
    if right is not None and left is not None:
        raise scope.unsupported(node, f"identity with other than None: {said(node)}")
    if isinstance(left, Imported) or isinstance(right, Imported):
        raise scope.unsupported(node, f"identity of something imported: {said(node)}")
    return (left is None and right is None) is positive


def equal(scope: Scope, left: Value, right: Value, node: ast.AST) -> Truth:
    """Return whether two values are equal."""
    scope.path.step(node, scope.file)
    numeric = all(is_integer(value) or is_truth(value) for value in (left, right))
    if numeric:
        if is_truth(left) and is_truth(right) and not (is_known(left) and is_known(right)):
            return left == right
        return to_integer(left, scope, node) == to_integer(right, scope, node)
    if left is None or right is None:
        if any(isinstance(one, (Record, Imported)) for one in (left, right)):
            raise scope.unsupported(node, f"equality of objects: {said(node)}")
        return left is None and right is None
    if isinstance(left, str) and isinstance(right, str):
        return left == right
    if isinstance(left, (tuple, list)) and type(left) is type(right):
        if len(left) != len(right):
            return False
        result: Truth = True
        for one, other in zip(left, right, strict=True):
            result = numbers.both(result, equal(scope, one, other, node))
        return result
    kinds = {kind_of(left), kind_of(right)}
    own = not any(isinstance(one, Record) for one in (left, right))
    if own and len(kinds) == 2 and kinds <= {"bool", "int", "list", "str", "tuple"}:
        # Two types of Python's own, not both of numbers: no value of one equals one of the other.
        return False
    raise scope.unsupported(node, f"equality of {' and '.join(sorted(kinds))}: {said(node)}")


def _contains(scope: Scope, container: Value, value: Value, node: ast.AST) -> Truth:
    if isinstance(container, Range):
        return _in_range(container, to_integer(value, scope, node))
    if not isinstance(container, (tuple, list)):
        raise scope.unsupported(node, f"membership in a {kind_of(container)}: {said(node)}")
    found: Truth = False
    for one in container:
        found = numbers.either(found, equal(scope, one, value, node))
    return found


def _in_range(container: Range, value: Value) -> Truth:
    start, stop, step = container.start, container.stop, container.step
    if step < 0:
        start, stop, step, value = -start, -stop, -step, -value
    # z3's remainder is Python's here, since the step is at least 1.
    on_a_step = (value - start) % step == 0
    return numbers.both(numbers.both(start <= value, value < stop), on_a_step)


def tuple_(run: Interpreter, scope: Scope, node: ast.Tuple) -> Value:
    """Return a tuple."""
    return tuple(_items(run, scope, node.elts))


def list_(run: Interpreter, scope: Scope, node: ast.List) -> Value:
    """Return a new list."""
    return list(_items(run, scope, node.elts))


def _items(run: Interpreter, scope: Scope, nodes: list[ast.expr]) -> Iterator[Value]:
    for node in nodes:
        if isinstance(node, ast.Starred):
            yield from run.iterate(scope, run.evaluate(scope, node.value), node)
        else:
            yield run.evaluate(scope, node)


def subscript(run: Interpreter, scope: Scope, node: ast.Subscript) -> Value:
    """Return an item, or a slice, of a tuple or list."""
    value = run.evaluate(scope, node.value)
    items = tuple(value.fields.values()) if _is_tuple_record(value) else value
    if not isinstance(items, (tuple, list)):
        raise scope.unsupported(node, f"an item of a {kind_of(value)}: {said(node)}")
    if isinstance(node.slice, ast.Slice):
        return items[_slice(run, scope, node.slice)]
    return items[index(run, scope, len(items), node.slice)]


def _is_tuple_record(value: Value) -> bool:
    return isinstance(value, Record) and value.kind.is_tuple


def index(run: Interpreter, scope: Scope, length: int, node: ast.expr) -> int:
    """Return a place in a sequence as a known number from 0; the way parts where it is unknown."""
    place = run.evaluate(scope, node)
    if not is_integer(place):
        raise scope.unsupported(node, f"a place that is a {kind_of(place)}: {said(node)}")
    if is_known(place):
        if not -length <= place < length:
            raise scope.raises("IndexError", node)
        return int(place) % length
    for at in range(length):
        if scope.path.decide(z3.Or(place == at, place == at - length), node):
            return at
    raise scope.raises("IndexError", node)


def _slice(run: Interpreter, scope: Scope, node: ast.Slice) -> slice:
    bounds = []
    for part in (node.lower, node.upper, node.step):
        value = None if part is None else run.evaluate(scope, part)
        if value is not None and not (is_integer(value) and is_known(value)):
            raise scope.unsupported(node, f"a slice whose bounds are not known: {said(node)}")
        bounds.append(value)
    if bounds[2] == 0:
        raise scope.raises("ValueError", node)
    return slice(*bounds)


def attribute(run: Interpreter, scope: Scope, node: ast.Attribute) -> Value:
    """Return a field, a property or a bound method of an object."""
    value = run.evaluate(scope, node.value)
    if isinstance(value, Record):
        return run.member(scope, value, node)
    if isinstance(value, list) and node.attr in ("append", "extend"):
        return Builtin(
            node.attr,
            lambda _run, scope, call, *items: _grow(scope, value, node.attr, call, *items),
        )
    if isinstance(value, Logger):
        return value
    if isinstance(value, Imported):
        raise scope.unsupported(node, f"{said(node)}, of the imported {value.module}")
    if isinstance(value, Builtin):
        if node.attr in value.members:
            return value.members[node.attr]
        raise scope.unsupported(node, f"the name {said(node)}")
    raise scope.unsupported(node, f"an attribute of a {kind_of(value)}: {said(node)}")


def _grow(scope: Scope, items: list[Value], method: str, node: ast.Call, *values: Value) -> None:
    if len(values) != 1:
        raise scope.raises("TypeError", node)
    if method == "extend":
        if not isinstance(values[0], (list, tuple)):
            raise scope.unsupported(node, f"a list extended by a {kind_of(values[0])}")
        check_length(scope, len(items) + len(values[0]), node)
        items.extend(values[0])
    else:
        items.append(values[0])


def comprehension(run: Interpreter, scope: Scope, node: ast.ListComp) -> Value:
    """Return the list that a comprehension gives."""
    return list(comprehended(run, scope, node))


def comprehended(
    run: Interpreter, scope: Scope, node: ast.ListComp | ast.GeneratorExp
) -> Iterator[Value]:
    """Return what a comprehension gives, computed one by one in a scope of its own.

    What it goes over first is computed at once, and outside that scope.
    """
    names: set[str] = set()
    for generator in node.generators:
        names |= bound_names(generator.target)
    first = node.generators[0].iter
    items = run.iterate(scope, run.evaluate(scope, first), first)
    return _comprehended(run, scope.inner(frozenset(names)), node, items, node.generators)


def _comprehended(
    run: Interpreter,
    scope: Scope,
    node: ast.ListComp | ast.GeneratorExp,
    items: Iterator[Value],
    generators: list[ast.comprehension],
) -> Iterator[Value]:
    first, *rest = generators
    if first.is_async:
        raise scope.unsupported(node, "an asynchronous comprehension")
    for value in items:
        run.assign(scope, first.target, value)
        if not all(_holds(run, scope, test) for test in first.ifs):
            continue
        if rest:
            over = rest[0].iter
            inner = run.iterate(scope, run.evaluate(scope, over), over)
            yield from _comprehended(run, scope, node, inner, rest)
        else:
            yield run.evaluate(scope, node.elt)


def _holds(run: Interpreter, scope: Scope, node: ast.expr) -> bool:
    return scope.path.decide(truth(run.evaluate(scope, node), scope, node), node)


def formatted(run: Interpreter, scope: Scope, node: ast.JoinedStr) -> Value:
    """Return a text that is not followed; what it tells of is computed, since that may raise."""
    for part in node.values:
        if isinstance(part, ast.FormattedValue):
            value = run.evaluate(scope, part.value)
            plain = is_integer(value) or is_truth(value) or isinstance(value, (str, Text))
            if not plain and value is not None:
                raise scope.unsupported(node, f"a {kind_of(value)} in a text")
            if part.format_spec is not None:
                raise scope.unsupported(node, "a format in a text")
    return Text()


EXPRESSIONS: dict[type[ast.expr], Callable[..., Value]] = {
    ast.Name: name,
    ast.Constant: constant,
    ast.BinOp: binary,
    ast.UnaryOp: unary,
    ast.BoolOp: connective,
    ast.IfExp: conditional,
    ast.Compare: comparison,
    ast.Tuple: tuple_,
    ast.List: list_,
    ast.Subscript: subscript,
    ast.Attribute: attribute,
    ast.ListComp: comprehension,
    ast.JoinedStr: formatted,
}
