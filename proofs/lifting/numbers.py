# SPDX-License-Identifier: Apache-2.0
"""Python's integers: their operators, on numbers that are known and on z3 expressions.

z3 divides as Euclid does, with a remainder of at least 0; Python rounds down. The two agree where
the divisor is at least 1, and for a negative divisor both signs are changed first.
"""

from __future__ import annotations

import ast
import operator
from typing import TYPE_CHECKING

import z3

from kvreshard.proofs.lifting.path import as_condition, as_term
from kvreshard.proofs.lifting.unsupported import PythonRaises, UnsupportedError
from kvreshard.proofs.lifting.values import Integer, Truth, is_known

if TYPE_CHECKING:
    from collections.abc import Callable

    from kvreshard.proofs.lifting.path import Path

# A shift moves by a known number of places; more than this is no planner's.
MOST_PLACES = 64


def negative(value: Integer) -> Integer:
    """Return the number with the other sign."""
    return -value


def absolute(path: Path, value: Integer) -> Integer:
    """Return the number without its sign."""
    return choose(path, value >= 0, value, -value)


def floor_division(path: Path, left: Integer, right: Integer, node: ast.AST, file: str) -> Integer:
    """Return Python's `//`; division by zero is raised as Python does."""
    _refuse_zero(path, right, node, file)
    if is_known(left) and is_known(right):
        return left // right
    return _by_sign(path, left, right, path.meaning.quotient, lambda quotient: quotient)


def remainder(path: Path, left: Integer, right: Integer, node: ast.AST, file: str) -> Integer:
    """Return Python's `%`, which has the sign of the divisor."""
    _refuse_zero(path, right, node, file)
    if is_known(left) and is_known(right):
        return left % right
    return _by_sign(path, left, right, path.meaning.remainder, negative)


def _by_sign(
    path: Path,
    left: Integer,
    right: Integer,
    divide: Callable[[Path, Integer, Integer], Integer],
    of_negated: Callable[[Integer], Integer],
) -> Integer:
    positive = path.known(right > 0)
    if positive is True:
        return divide(path, left, right)
    if positive is False:
        return of_negated(divide(path, -left, -right))
    return z3.If(right > 0, divide(path, left, right), of_negated(divide(path, -left, -right)))


def _refuse_zero(path: Path, divisor: Integer, node: ast.AST, file: str) -> None:
    zero = divisor == 0 if is_known(divisor) else path.meaning.divisor_is_zero(path, divisor, node)
    if zero:
        raise PythonRaises("ZeroDivisionError", node, file)


def shift(left: Integer, places: Integer, is_left: bool, node: ast.AST, file: str) -> Integer:
    """Return Python's `<<` or `>>` by a known number of places."""
    if not is_known(places) or not 0 <= places <= MOST_PLACES:
        raise UnsupportedError(node, f"a shift by other than 0 to {MOST_PLACES} places", file)
    if is_known(left):
        return left << places if is_left else left >> places
    return left * 2**places if is_left else as_term(left) / 2**places


def power(left: Integer, exponent: Integer, node: ast.AST, file: str) -> Integer:
    """Return Python's `**` for a small known exponent."""
    if not is_known(exponent) or not 0 <= exponent <= MOST_PLACES:
        raise UnsupportedError(node, f"an exponent other than 0 to {MOST_PLACES}", file)
    result: Integer = 1
    for _ in range(exponent):
        result = result * left
    return result


COMPARISONS: dict[type[ast.cmpop], Callable[[Integer, Integer], Truth]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}


def both(left: Truth, right: Truth) -> Truth:
    """Return whether both hold."""
    if left is True:
        return right
    if right is True:
        return left
    if left is False or right is False:
        return False
    return z3.And(left, right)


def either(left: Truth, right: Truth) -> Truth:
    """Return whether one holds."""
    if left is False:
        return right
    if right is False:
        return left
    if left is True or right is True:
        return True
    return z3.Or(left, right)


def opposite(value: Truth) -> Truth:
    """Return whether it does not hold."""
    return not value if isinstance(value, bool) else z3.Not(value)


def choose(path: Path, condition: Truth, then: Integer, otherwise: Integer) -> Integer:
    """Return one of two integers, or of two truth values, by a condition."""
    known = path.known(condition)
    if known is None and not path.meaning.merges:
        known = path.decide(condition, NOWHERE)
    if known is not None:
        return then if known else otherwise
    if isinstance(then, (bool, z3.BoolRef)):
        return z3.If(condition, as_condition(then), as_condition(otherwise))
    return z3.If(condition, as_term(then), as_term(otherwise))


NOWHERE = ast.Pass(lineno=1, col_offset=0)


def largest(path: Path, values: list[Integer]) -> Integer:
    """Return Python's max of integers: the first of the largest."""
    best = values[0]
    for other in values[1:]:
        best = choose(path, other > best, other, best)
    return best


def smallest(path: Path, values: list[Integer]) -> Integer:
    """Return Python's min of integers: the first of the smallest."""
    best = values[0]
    for other in values[1:]:
        best = choose(path, other < best, other, best)
    return best
