# SPDX-License-Identifier: Apache-2.0
"""Ask the solver whether something follows, or can be; and claims that an audit rests on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import z3

from kvreshard.proofs.audit.polynomial import Monomial, Polynomial, polynomial_of, variable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kvreshard.proofs.lifting.values import Truth

# Resource units of z3 for one question. Those of a planner take a few thousand.
RLIMIT = 400_000


def proved(given: Sequence[z3.BoolRef], goal: Truth, rlimit: int = RLIMIT) -> bool:
    """Whether the solver proves a goal from what is given. That it does not know is a no."""
    if isinstance(goal, bool):
        goal = z3.BoolVal(goal)
    if z3.is_true(z3.simplify(goal, som=True)):
        return True
    return not possible([*given, z3.Not(goal)], rlimit)


def possible(given: Sequence[z3.BoolRef], rlimit: int = RLIMIT) -> bool:
    """Whether something can be given; True as well where the solver does not know."""
    return possible_for_any_products(given) and _check(given, rlimit)


def possible_for_any_products(given: Sequence[z3.BoolRef]) -> bool:
    """Whether something could be given if every product were a number of its own.

    That leaves the solver with sums, which it is quick and sure about. What is impossible then is
    impossible; what is possible may be impossible still.
    """
    return Sums(()).possible(given)


class Sums:
    """What is given of sums, asked again and again with more: every product is a number here."""

    def __init__(self, given: Sequence[z3.BoolRef]) -> None:
        """Give the solver what holds throughout."""
        self._solver = z3.Solver()
        self._solver.set("rlimit", RLIMIT)
        self._solver.add(*(without_products(one) for one in given))

    def possible(self, more: Sequence[z3.BoolRef]) -> bool:
        """Whether more can be given; True as well where the solver does not know."""
        self._solver.push()
        try:
            self._solver.add(*(without_products(one) for one in more))
            return bool(self._solver.check() != z3.unsat)
        finally:
            self._solver.pop()


def _check(given: Sequence[z3.BoolRef], rlimit: int) -> bool:
    solver = z3.Solver()
    solver.set("rlimit", rlimit)
    solver.add(*given)
    return bool(solver.check() != z3.unsat)


def without_products(condition: z3.BoolRef) -> z3.BoolRef:
    """Return a condition with a name in place of each product of unknowns, the same for the same.

    Each comparison becomes one of a sum of such names with 0.
    """
    key = condition.get_id()
    if key not in _NAMED:
        # The condition is kept: z3 gives the number of a term that is gone to another one.
        _NAMED[key] = condition, _without_products(condition)
    return _NAMED[key][1]


_NAMED: dict[int, tuple[z3.BoolRef, z3.BoolRef]] = {}


def _without_products(node: z3.ExprRef) -> z3.ExprRef:
    if z3.is_const(node):
        return node
    children = node.children()
    of_two_integers = len(children) == 2 and all(z3.is_int(child) for child in children)
    if z3.is_bool(node) and of_two_integers:
        difference = polynomial_of(children[0]) + polynomial_of(children[1]).times(-1)
        return node.decl()(_sum_of_names(difference), z3.IntVal(0))
    if z3.is_bool(node) and not z3.is_app_of(node, z3.Z3_OP_UNINTERPRETED):
        return node.decl()(*(_without_products(child) for child in children))
    return node


def _sum_of_names(made: Polynomial) -> z3.ArithRef:
    parts = [coefficient * _name_of(monomial) for monomial, coefficient in made.terms.items()]
    return z3.Sum(*parts) if parts else z3.IntVal(0)


def _name_of(monomial: Monomial) -> z3.ArithRef:
    if not monomial:
        return z3.IntVal(1)
    # As Python writes a tuple of texts, so that no two products have one name.
    return variable(monomial[0]) if len(monomial) == 1 else z3.Int(repr(monomial))


@dataclass(frozen=True)
class Claim:
    """A statement with its proof.

    Attributes:
        name: what it says.
        given: its hypotheses.
        uses: instances of the specification's lemmas.
        then: what follows.
    """

    name: str
    given: tuple[z3.BoolRef, ...]
    uses: tuple[z3.BoolRef, ...]
    then: z3.BoolRef

    @property
    def holds(self) -> bool:
        """Whether the solver proves it, and its hypotheses can be met."""
        return possible(self.given) and proved([*self.given, *self.uses], self.then)
