# SPDX-License-Identifier: Apache-2.0
"""Fix parameters of a bounded statement value by value, over the whole range.

A choice of values is passed over only where the statement's own hypotheses become false by it, so
nothing is left out that the statement speaks of.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import z3

from kvreshard.proofs.rewrite import constants_of, name_terms, split_comparisons, write_out

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from kvreshard.proofs.roads import Road
    from kvreshard.spec.formula import Integer, Truth


def fixed(
    assertions: list[Truth], road: Road, first_values: Iterable[int]
) -> Iterator[list[Truth]]:
    """Yield the assertions for every choice of the road's parameters that they allow.

    "Some rank" is written out over the ranks below the value of the last fixed parameter.

    Args:
        assertions: plain ones, and negations of existentials over one integer.
        road: which parameters are fixed, and which is split into cases.
        first_values: values of the first fixed parameter; the others take their whole range.
    """
    prepared = _prepare(assertions, road)
    allowed = _Allowed(road.maximum)
    allowed.values(prepared.plain, z3.Int(road.fixed[0], prepared.plain.ctx))
    for pairs, given in _choices(prepared.plain, road.fixed, first_values, allowed):
        count = pairs[-1][1].as_long()
        bodies = [z3.substitute(body, *pairs) for body in prepared.bodies]
        alternatives = [item for body in bodies for item in write_out(body, count)]
        named = [name == z3.substitute(term, *pairs) for name, term in prepared.named]
        if road.named is not None and road.cases:
            yield [_cases(given, named, road.named, allowed), *alternatives]
        else:
            yield [given, *named, *alternatives]


@dataclass(frozen=True)
class _Prepared:
    """The assertions of a question, ready to have parameters fixed.

    Attributes:
        plain: what has no quantifier.
        bodies: the bodies of the negated existentials, their variable free.
        named: names for the terms of the bodies that hold the road's named parameter.
    """

    plain: Truth
    bodies: tuple[Truth, ...]
    named: tuple[tuple[Integer, Integer], ...]


def _prepare(assertions: list[Truth], road: Road) -> _Prepared:
    existentials = [item for item in assertions if _is_negated_existential(item)]
    plain = z3.And(*[item for item in assertions if not _is_negated_existential(item)])
    bodies = [item.arg(0).body() for item in existentials]
    named: list[tuple[Integer, Integer]] = []
    if road.named is not None:
        for index, body in enumerate(bodies):
            renamed, terms = name_terms(body, z3.Int(road.named, body.ctx), len(named))
            named += terms
            bodies[index] = split_comparisons(renamed)
    return _Prepared(z3.simplify(plain), tuple(bodies), tuple(named))


def _is_negated_existential(assertion: Truth) -> bool:
    return bool(z3.is_not(assertion) and z3.is_quantifier(assertion.arg(0)))


class _Allowed:
    """The values of a parameter that what is given of it alone does not rule out."""

    def __init__(self, maximum: int) -> None:
        self._maximum = maximum
        self._known: dict[str, list[int]] = {}

    def values(self, given: Truth, parameter: Integer) -> list[int]:
        """Return them. A parameter that may lie outside of 1 to the maximum is an error."""
        conditions = given.children() if z3.is_and(given) else [given]
        alone = [item for item in conditions if constants_of(item) <= {parameter}]
        condition = z3.And(z3.BoolVal(True, given.ctx), *alone)
        key = condition.sexpr()
        if key not in self._known:
            self._known[key] = self._find(condition, parameter)
        return self._known[key]

    def _find(self, condition: Truth, parameter: Integer) -> list[int]:
        around = range(self._maximum + 2)
        left = [value for value in around if not z3.is_false(_at(condition, parameter, value))]
        if not {0, around[-1]}.isdisjoint(left):
            raise ValueError(f"nothing given limits {parameter} to 1 to {self._maximum}")
        return left


def _at(condition: Truth, parameter: Integer, value: int) -> Truth:
    return z3.simplify(z3.substitute(condition, (parameter, z3.IntVal(value, parameter.ctx))))


def _choices(
    given: Truth, names: tuple[str, ...], values: Iterable[int], allowed: _Allowed
) -> Iterator[tuple[list[tuple[Integer, Integer]], Truth]]:
    """Yield each choice of values for the named parameters, and what is given under it."""
    parameter = z3.Int(names[0], given.ctx)
    for value in values:
        narrowed = _at(given, parameter, value)
        if z3.is_false(narrowed):
            continue
        pair = (parameter, z3.IntVal(value, given.ctx))
        if len(names) == 1:
            yield [pair], narrowed
            continue
        following = allowed.values(narrowed, z3.Int(names[1], given.ctx))
        for pairs, narrowest in _choices(narrowed, names[1:], following, allowed):
            yield [pair, *pairs], narrowest


def _cases(given: Truth, named: list[Truth], name: str, allowed: _Allowed) -> Truth:
    """Return what is given, and what the names stand for, as one case for each value."""
    parameter = z3.Int(name, given.ctx)
    whole = z3.And(given, *named)
    return z3.Or(
        z3.BoolVal(False, given.ctx),
        *[
            z3.And(parameter == value, _at(whole, parameter, value))
            for value in allowed.values(given, parameter)
        ],
    )
