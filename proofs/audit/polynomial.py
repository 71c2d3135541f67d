# SPDX-License-Identifier: Apache-2.0
"""Polynomials with integer coefficients, to guess quotients with and to tell products apart.

An expression that is no sum or product, such as a quotient that stays one, is a variable of its
own, named by its text, and by a number beside it where another expression has the same text: z3
cuts the text of what is deep or long.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from math import gcd
from typing import TYPE_CHECKING

import z3

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

# A product of variables, sorted, with repetition; the empty one is 1.
Monomial = tuple[str, ...]


@dataclass(frozen=True)
class Polynomial:
    """A sum of monomials; none has the coefficient 0."""

    terms: Mapping[Monomial, int]

    def __add__(self, other: Polynomial) -> Polynomial:
        """Return the sum."""
        total = dict(self.terms)
        for monomial, coefficient in other.terms.items():
            total[monomial] = total.get(monomial, 0) + coefficient
        return Polynomial({m: c for m, c in total.items() if c})

    def __mul__(self, other: Polynomial) -> Polynomial:
        """Return the product."""
        total: dict[Monomial, int] = {}
        for one, left in self.terms.items():
            for two, right in other.terms.items():
                monomial = tuple(sorted(one + two))
                total[monomial] = total.get(monomial, 0) + left * right
        return Polynomial({m: c for m, c in total.items() if c})

    def times(self, number: int) -> Polynomial:
        """Return a multiple."""
        return Polynomial({m: c * number for m, c in self.terms.items() if c * number})

    @property
    def as_number(self) -> int | None:
        """The number that it is, or None if it has variables."""
        return None if any(self.terms) else self.terms.get((), 0)

    @property
    def is_monomial(self) -> bool:
        """Whether it is one product with a coefficient of at least 1."""
        return len(self.terms) == 1 and next(iter(self.terms.values())) >= 1

    @property
    def factors(self) -> tuple[str, ...]:
        """The variables of a monomial, with repetition."""
        return next(iter(self.terms))

    def split(self, variable: str) -> tuple[Polynomial, Polynomial]:
        """Return what the variable multiplies, and the rest."""
        multiplied, rest = {}, {}
        for monomial, coefficient in self.terms.items():
            if variable in monomial:
                at = monomial.index(variable)
                multiplied[monomial[:at] + monomial[at + 1 :]] = coefficient
            else:
                rest[monomial] = coefficient
        return Polynomial(multiplied), Polynomial(rest)

    def split_number(self, number: int) -> tuple[Polynomial, Polynomial]:
        """Return the quotient of each coefficient by a number of at least 1, and the rest."""
        pairs = {m: divmod(c, number) for m, c in self.terms.items()}
        quotient = {m: q for m, (q, _) in pairs.items() if q}
        return Polynomial(quotient), Polynomial({m: r for m, (_, r) in pairs.items() if r})

    def common(self, other: Polynomial) -> tuple[Monomial, int]:
        """Return the largest product of variables, and the number, that divide both."""
        both = [*self.terms, *other.terms]
        shared = list(both[0])
        for monomial in both[1:]:
            left = list(monomial)
            kept = []
            for variable in shared:
                if variable in left:
                    left.remove(variable)
                    kept.append(variable)
            shared = kept
        number = reduce(gcd, (*self.terms.values(), *other.terms.values()))
        return tuple(shared), abs(number)

    def without(self, monomial: Monomial, number: int) -> Polynomial:
        """Return the quotient by what divides every term."""
        made = {}
        for own, coefficient in self.terms.items():
            left = list(own)
            for variable in monomial:
                left.remove(variable)
            made[tuple(left)] = coefficient // number
        return Polynomial(made)

    def expression(self) -> z3.ArithRef:
        """Return it as a z3 expression, in a fixed order."""
        parts = [
            reduce(lambda left, right: left * right, _factors(monomial, coefficient))
            for monomial, coefficient in sorted(self.terms.items())
        ]
        return reduce(lambda left, right: left + right, parts) if parts else z3.IntVal(0)


def _factors(monomial: Monomial, coefficient: int) -> Iterator[z3.ArithRef]:
    if coefficient != 1 or not monomial:
        yield z3.IntVal(coefficient)
    yield from (variable(name) for name in monomial)


# What each variable of a polynomial stands for, and its name by z3's number of it. That number is
# its own as long as the expression is kept.
_MEANT: dict[str, z3.ArithRef] = {}
_NAMES: dict[int, str] = {}


def variable(name: str) -> z3.ArithRef:
    """Return what a variable of a polynomial stands for."""
    return _MEANT[name]


def _name_of(value: z3.ArithRef) -> str:
    """Return the name of a variable; no two expressions have the same."""
    number_of_it = value.get_id()
    if number_of_it not in _NAMES:
        text = name = str(value)
        others = 1
        while name in _MEANT:
            others += 1
            name = f"{text} [{others}]"
        _MEANT[name], _NAMES[number_of_it] = value, name
    return _NAMES[number_of_it]


def number(value: int) -> Polynomial:
    """Return a constant."""
    return Polynomial({(): value} if value else {})


def polynomial_of(value: int | z3.ArithRef) -> Polynomial:
    """Return an integer expression as a polynomial."""
    if isinstance(value, int):
        return number(value)
    if z3.is_int_value(value):
        return number(value.as_long())
    kind = value.decl().kind()
    if kind not in (z3.Z3_OP_ADD, z3.Z3_OP_SUB, z3.Z3_OP_MUL, z3.Z3_OP_UMINUS):
        return Polynomial({(_name_of(value),): 1})
    parts = [polynomial_of(child) for child in value.children()]
    if kind == z3.Z3_OP_MUL:
        return reduce(lambda left, right: left * right, parts)
    if kind == z3.Z3_OP_UMINUS:
        return parts[0].times(-1)
    first, *rest = parts
    sign = -1 if kind == z3.Z3_OP_SUB else 1
    return reduce(lambda left, right: left + right.times(sign), rest, first)
