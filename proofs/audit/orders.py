# SPDX-License-Identifier: Apache-2.0
"""Sizes of which each divides the next, written as products, and ranks written in digits.

Of two legal groups of which one size divides the other, the three sizes H, P and D stand in an
order in which each divides the next; equal ones share a place. With factors f1 >= 1, f2 >= 2 and
f3 >= 2 the sizes are f1, f1 * f2 and f1 * f2 * f3, and a rank of a group of f1 * f2 * f3 is
(x1 * f2 + x2) * f3 + x3 with each digit 0 <= xi < fi. In these terms the quotients and remainders
that planners take are sums of products, and no division is left.

That every such sizes, every rank, and every head of a block is covered, is proved by
`claims_of_coverage`, with instances of the specification's lemmas.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import permutations
from typing import TYPE_CHECKING

import z3

from kvreshard.proofs.audit.claims import Claim
from kvreshard.proofs.lemmas import (
    a_divisor_is_at_most_the_number,
    division_brackets,
    exact_division,
    multiplication_keeps_order,
)
from kvreshard.spec.formula import unfold
from kvreshard.spec.ownership import group_is_legal

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kvreshard.spec.formula import Integer, Truth

H, P, D = "H", "P", "D"
FACTORS = tuple(z3.Int(f"f{place}") for place in (1, 2, 3))


@dataclass(frozen=True)
class Order:
    """An order of the three sizes.

    Attributes:
        tiers: the names of the sizes, smallest first; equal ones together.
    """

    tiers: tuple[tuple[str, ...], ...]

    def __str__(self) -> str:
        """Return it as in `D = H < P`."""
        return " < ".join(" = ".join(tier) for tier in self.tiers)

    @property
    def factors(self) -> tuple[Integer, ...]:
        """The factors of the largest size."""
        return FACTORS[: len(self.tiers)]

    def factors_of(self, name: str) -> tuple[Integer, ...]:
        """Return the factors whose product a size is."""
        return FACTORS[: self._place(name) + 1]

    def size(self, name: str) -> Integer:
        """Return a size as the product of its factors."""
        return product(self.factors_of(name))

    def _place(self, name: str) -> int:
        return next(at for at, tier in enumerate(self.tiers) if name in tier)

    @property
    def hypotheses(self) -> list[Truth]:
        """The bounds of the factors, and instances of lemmas on their products."""
        first, *others = self.factors
        made = [first >= 1, *(factor >= 2 for factor in others)]
        for low, factor in zip(self.tiers, others, strict=False):
            made.append(multiplication_keeps_order(2, factor, self.size(low[0])).fact())
        if len(others) == 2:
            made.append(multiplication_keeps_order(2, others[1], others[0]).fact())
        return made


def product(factors: tuple[Integer, ...]) -> Integer:
    """Return a product; that of nothing is 1."""
    result: Integer = z3.IntVal(1)
    for at, factor in enumerate(factors):
        result = factor if at == 0 else result * factor
    return result


def all_orders() -> tuple[Order, ...]:
    """Return the 13 orders of three sizes of which some may be equal."""
    found: dict[tuple[frozenset[str], ...], Order] = {}
    for names in permutations((H, P, D)):
        for first in (True, False):
            for second in (True, False):
                tiers = [[names[0]]]
                for name, joined in zip(names[1:], (first, second), strict=True):
                    if joined:
                        tiers[-1].append(name)
                    else:
                        tiers.append([name])
                key = tuple(frozenset(tier) for tier in tiers)
                found.setdefault(key, Order(tuple(tuple(sorted(tier)) for tier in tiers)))
    return tuple(found.values())


@dataclass(frozen=True)
class Index:
    """A rank, or a place in a block, in digits.

    Attributes:
        digits: from the first factor on; a digit may be shared with another index.
        factors: the factor of each digit; the index is below their product.
    """

    digits: tuple[Integer, ...]
    factors: tuple[Integer, ...]

    @property
    def value(self) -> Integer:
        """The number that the digits make."""
        result: Integer = z3.IntVal(0)
        for at, (digit, factor) in enumerate(zip(self.digits, self.factors, strict=True)):
            result = digit if at == 0 else result * factor + digit
        return result

    @property
    def hypotheses(self) -> Iterator[Truth]:
        """The bounds of the digits, and instances of lemmas on what they make."""
        for digit, factor in zip(self.digits, self.factors, strict=True):
            yield z3.And(0 <= digit, digit < factor)
        for start in range(len(self.digits)):
            for end in range(start + 2, len(self.digits) + 1):
                high = Index(self.digits[start : end - 1], self.factors[start : end - 1])
                factor = self.factors[end - 1]
                yield multiplication_keeps_order(
                    high.value + 1, product(high.factors), factor
                ).fact()
                yield multiplication_keeps_order(0, high.value, factor).fact()


def index(name: str, factors: tuple[Integer, ...], shared: tuple[Integer, ...] = ()) -> Index:
    """Return an index whose first digits are given and whose others are named after it."""
    own = (z3.Int(f"{name}{place}") for place in range(len(shared) + 1, len(factors) + 1))
    return Index((*shared, *own), factors)


def compared(indices: tuple[Index, ...], factors: tuple[Integer, ...]) -> Iterator[Truth]:
    """Yield instances of lemmas on digits of one place, times the factors that follow it.

    A digit is less than its factor, and of two digits that differ one is less than the other.
    """
    for place, factor in enumerate(factors):
        digits = {one.digits[place] for one in indices if len(one.digits) > place}
        ordered = sorted(digits, key=str)
        for end in range(place + 2, len(factors) + 1):
            weight = product(factors[place + 1 : end])
            for u in ordered:
                yield multiplication_keeps_order(0, u, weight).fact()
                yield multiplication_keeps_order(u + 1, factor, weight).fact()
            for u, v in permutations(ordered, 2):
                yield multiplication_keeps_order(u + 1, v, weight).fact()


def claims_of_coverage() -> tuple[Claim, ...]:
    """Return the claims that nothing is left out by writing sizes and ranks in factors."""
    return (_every_size(), _a_quotient_is_a_factor(), _an_index_has_digits())


def _every_size() -> Claim:
    sizes = {name: z3.Int(name) for name in (H, P, D)}
    h, p, d = sizes.values()
    given = (
        *(size >= 1 for size in sizes.values()),
        unfold(group_is_legal(h, p)),
        unfold(group_is_legal(h, d)),
        z3.Or(p % d == 0, d % p == 0),
    )
    uses = tuple(
        a_divisor_is_at_most_the_number(one, other).fact()
        for one, other in permutations(sizes.values(), 2)
    )
    return Claim(
        "legal sizes of which one divides the other stand in one of the orders",
        given,
        uses,
        z3.Or(*(_stands(order, sizes) for order in all_orders())),
    )


def _stands(order: Order, sizes: dict[str, Integer]) -> Truth:
    equal = [sizes[tier[0]] == sizes[name] for tier in order.tiers for name in tier[1:]]
    steps = zip(order.tiers, order.tiers[1:], strict=False)
    divides = [
        z3.And(sizes[low[0]] < sizes[high[0]], sizes[high[0]] % sizes[low[0]] == 0)
        for low, high in steps
    ]
    return z3.And(*equal, *divides) if equal or divides else z3.BoolVal(True)


def _a_quotient_is_a_factor() -> Claim:
    low, high = z3.Ints("low high")
    factor = high / low
    return Claim(
        "a larger size that a size divides is that size times a factor of at least 2",
        (low >= 1, low < high, high % low == 0),
        (exact_division(high, low).fact(), multiplication_keeps_order(factor, 1, low).fact()),
        z3.And(high == low * factor, factor >= 2),
    )


def _an_index_has_digits() -> Claim:
    x, rest, factor = z3.Ints("x rest factor")
    digit, above = x % factor, x / factor
    return Claim(
        "an index below a product has a digit below the last factor and an index below the rest",
        (factor >= 1, rest >= 1, 0 <= x, x < rest * factor),
        (
            division_brackets(x, factor).fact(),
            multiplication_keeps_order(rest, above, factor).fact(),
            multiplication_keeps_order(above + 1, 0, factor).fact(),
        ),
        z3.And(0 <= digit, digit < factor, 0 <= above, above < rest, x == above * factor + digit),
    )
