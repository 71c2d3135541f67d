# SPDX-License-Identifier: Apache-2.0
"""Decide about numbers under hypotheses: conditions by the solver, quotients by guess and proof.

A quotient of polynomials is guessed by dividing factor by factor. The guess is taken only where
the solver proves, for each step, what the rules of `rules_of_quotients` ask for.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from itertools import permutations
from typing import TYPE_CHECKING

import z3

from kvreshard.proofs.audit.claims import Claim, Sums
from kvreshard.proofs.audit.polynomial import Polynomial, number, polynomial_of, variable
from kvreshard.proofs.lemmas import (
    a_bracketed_quotient_is_the_quotient,
    division_brackets,
    multiplication_keeps_order,
)
from kvreshard.proofs.lifting import numbers
from kvreshard.proofs.lifting.numbers import NOWHERE
from kvreshard.proofs.lifting.path import Meaning, Path, as_term
from kvreshard.spec.formula import unfold

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from kvreshard.proofs.lifting.values import Integer, Truth


@dataclass(eq=False)
class Hypotheses(Meaning):
    """What is decided about numbers where something is given.

    Attributes:
        given: what holds of the sizes and ranks, with the instances of lemmas that go with it.
        asked: answers given before.
        divided: quotients found before, None where none was: a way that is gone again has to meet
            the same expressions, whatever the solver has learned since.
        kept: the terms that the two are looked up by.
    """

    given: tuple[z3.BoolRef, ...]
    asked: dict[tuple[int, ...], bool | None] = field(default_factory=dict)
    divided: dict[tuple[int, ...], Integer | None] = field(default_factory=dict)
    kept: list[z3.ExprRef] = field(default_factory=list)

    merges = False

    def known(self, path: Path, condition: z3.BoolRef) -> bool | None:
        """Return whether a condition holds on this way, or None if that is not known."""
        here = [*path.conditions, *path.under]
        key = (*(one.get_id() for one in here), condition.get_id())
        if key not in self.asked:
            # z3 gives a term's number to another one once the term is gone.
            self.kept += [*here, condition]
            self.asked[key] = self._known(here, condition)
        return self.asked[key]

    def _known(self, here: list[z3.BoolRef], condition: z3.BoolRef) -> bool | None:
        if not self._sums.possible([*here, z3.Not(condition)]):
            return True
        return None if self._sums.possible([*here, condition]) else False

    @cached_property
    def _sums(self) -> Sums:
        return Sums(self.given)

    def quotient(self, path: Path, dividend: Integer, divisor: Integer) -> Integer:
        """Return a quotient as a polynomial if one is found, else as a division."""
        found = self._found(path, dividend, divisor)
        return as_term(dividend) / as_term(divisor) if found is None else found

    def remainder(self, path: Path, dividend: Integer, divisor: Integer) -> Integer:
        """Return a remainder as a polynomial if one is found, else as a remainder."""
        found = self._found(path, dividend, divisor)
        if found is None:
            return as_term(dividend) % as_term(divisor)
        return plain(dividend - found * divisor)

    def _found(self, path: Path, dividend: Integer, divisor: Integer) -> Integer | None:
        terms = [*path.conditions, *path.under, as_term(dividend), as_term(divisor)]
        key = tuple(one.get_id() for one in terms)
        if key not in self.divided:
            self.kept += terms
            self.divided[key] = self._quotient(path, dividend, divisor)
        return self.divided[key]

    def _quotient(self, path: Path, dividend: Integer, divisor: Integer) -> Integer | None:
        above, below = polynomial_of(dividend), polynomial_of(divisor)
        if not below.is_monomial:
            return None
        here = [*path.conditions, *path.under]
        for guess in _guesses(above, below):
            if not any(
                self._sums.possible([*here, z3.Not(condition)]) for condition in guess.conditions
            ):
                return plain(guess.quotient.expression())
        return None


def plain(value: Integer) -> Integer:
    """Return a polynomial in its one form, a number if it is one."""
    made = polynomial_of(value)
    known = made.as_number
    return made.expression() if known is None else known


@dataclass(frozen=True)
class _Guess:
    """A quotient, and what has to hold for it to be right."""

    quotient: Polynomial
    conditions: tuple[z3.BoolRef, ...]


def _guesses(above: Polynomial, below: Polynomial) -> Iterator[_Guess]:
    """Cancel what both have in common, then divide by one factor after the other, in every order.

    By `rules_of_quotients`, (c * n) // (c * d) == n // d, and where n == f * m + r with 0 <= r < f,
    n // (f * e) == m // e.
    """
    if not above.terms:
        yield _Guess(number(0), (below.expression() >= 1,))
        return
    shared, times = above.common(below)
    rest, by = above.without(shared, times), below.without(shared, times)
    factors: list[tuple[z3.ArithRef, str | int]] = [(variable(name), name) for name in by.factors]
    coefficient = next(iter(by.terms.values()))
    if coefficient != 1:
        factors.append((z3.IntVal(coefficient), coefficient))
    at_least_one = [variable(name) >= 1 for name in {*shared, *by.factors}]
    seen = set()
    for order in permutations(factors):
        names = tuple(name for _, name in order)
        if names not in seen:
            seen.add(names)
            yield _divided(rest, order, at_least_one)


def _divided(
    above: Polynomial,
    order: Sequence[tuple[z3.ArithRef, str | int]],
    at_least_one: Sequence[z3.BoolRef],
) -> _Guess:
    quotient, conditions = above, list(at_least_one)
    for factor, name in order:
        before = quotient
        quotient, rest = before.split_number(name) if isinstance(name, int) else before.split(name)
        remainder, whole = rest.expression(), quotient.expression()
        conditions.append(z3.And(0 <= remainder, remainder < factor))
        conditions.append(before.expression() == factor * whole + remainder)
    return _Guess(quotient, tuple(conditions))


def rules_of_quotients() -> tuple[Claim, ...]:
    """Return the rules by which quotients are found."""
    c, n, d, f, e, m, r = z3.Ints("c n d f e m r")
    return (
        Claim(
            "a common factor of dividend and divisor cancels",
            (c >= 1, d >= 1),
            (
                division_brackets(n, d).fact(),
                a_bracketed_quotient_is_the_quotient(c * n, c * d, n / d).fact(),
                multiplication_keeps_order((n / d) * d, n, c).fact(),
                multiplication_keeps_order(n + 1, (n / d) * d + d, c).fact(),
            ),
            (c * n) / (c * d) == n / d,
        ),
        Claim(
            "a quotient by a product is taken factor by factor",
            (f >= 1, e >= 1, 0 <= r, r < f),
            (
                division_brackets(m, e).fact(),
                a_bracketed_quotient_is_the_quotient(f * m + r, f * e, m / e).fact(),
                multiplication_keeps_order((m / e) * e, m, f).fact(),
                multiplication_keeps_order(m + 1, (m / e) * e + e, f).fact(),
            ),
            (f * m + r) / (f * e) == m / e,
        ),
    )


def reduced(path: Path, expression: z3.ExprRef) -> Integer | Truth:
    """Return a formula's expression with its quotients and conditions decided on a way.

    Args:
        path: the way, with its hypotheses.
        expression: made of the operators of formulas; formulas in it are unfolded first.
    """
    return _reduced(path, unfold(expression))


def _reduced(path: Path, node: z3.ExprRef) -> Integer | Truth:
    if z3.is_const(node):
        return plain(node) if z3.is_int(node) else node
    kind = node.decl().kind()
    if kind == z3.Z3_OP_ITE:
        condition = _reduced(path, node.arg(0))
        return _reduced(path, node.arg(1 if path.decide(condition, NOWHERE) else 2))
    arguments = [_reduced(path, child) for child in node.children()]
    if kind in (z3.Z3_OP_IDIV, z3.Z3_OP_MOD) and path.known(arguments[1] >= 1):
        # Euclid's division and Python's are one for such divisors.
        divide = numbers.floor_division if kind == z3.Z3_OP_IDIV else numbers.remainder
        return divide(path, arguments[0], arguments[1], NOWHERE, "")
    terms = [as_term(one) if not isinstance(one, bool) else z3.BoolVal(one) for one in arguments]
    made = node.decl()(*terms)
    return plain(made) if z3.is_int(made) else made
