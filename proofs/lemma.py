# SPDX-License-Identifier: Apache-2.0
"""What a lemma is, and how one is used.

A lemma is a statement over named integers, proved by the solver on its own. Another proof uses
it through an instance: the lemma's variables are replaced by terms, and what is assumed is the
implication "given, then" under that substitution. So an instance needs no side condition to be
sound, only the lemma itself, and no fact is ever typed by hand.

A lemma can only use lemmas that were stated before it, so the order of proof has no cycle.
"""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import TYPE_CHECKING

import z3

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from kvreshard.spec.formula import Integer, Truth


@dataclass(frozen=True)
class Instance:
    """A lemma with terms in place of its variables."""

    lemma: Lemma
    terms: tuple[z3.ExprRef, ...]

    def fact(self) -> Truth:
        """Return the implication that the proved lemma gives for these terms."""
        pairs = list(zip(self.lemma.variables, self.terms, strict=True))
        implication = z3.Implies(z3.And(*self.lemma.given), z3.And(*self.lemma.then))
        return z3.substitute(implication, *pairs)


@dataclass(frozen=True)
class Proof:
    """How a statement is proved: lemma instances, and the formulas that stay closed.

    A closed formula is left as a symbol without a definition. What is proved then holds for any
    definition, the real one included.
    """

    uses: tuple[Instance, ...] = ()
    closed: frozenset[str] = frozenset()


# For what the solver settles from the definitions alone.
NO_LEMMAS = Proof()


@dataclass(frozen=True)
class Statement:
    """What a lemma says: `given` implies `then`, for all integers; and its proof."""

    given: Sequence[Truth]
    then: Sequence[Truth]
    proof: Proof = NO_LEMMAS


@dataclass(frozen=True, eq=False)
class Lemma:
    """A named statement over integer variables."""

    name: str
    sentence: str
    variables: tuple[Integer, ...]
    given: tuple[Truth, ...]
    then: tuple[Truth, ...]
    proof: Proof

    def __call__(self, *terms: Integer | int) -> Instance:
        """Instantiate the lemma with terms in the order of its variables."""
        if len(terms) != len(self.variables):
            raise TypeError(f"{self.name} has variables {self.variables}, got {terms}")
        return Instance(
            self, tuple(z3.IntVal(term) if isinstance(term, int) else term for term in terms)
        )


LEMMAS: dict[str, Lemma] = {}


def lemma(state: Callable[..., Statement]) -> Lemma:
    """Register the lemma that a Python function over z3 integers states."""
    variables = tuple(z3.Int(name) for name in inspect.signature(state).parameters)
    statement = state(*variables)
    made = Lemma(
        state.__name__,
        " ".join((state.__doc__ or "").split()),
        variables,
        tuple(statement.given),
        tuple(statement.then),
        statement.proof,
    )
    if made.name in LEMMAS:
        raise ValueError(f"lemma {made.name} is stated twice")
    for instance in made.proof.uses:
        if LEMMAS.get(instance.lemma.name) is not instance.lemma:
            raise ValueError(f"lemma {made.name} uses {instance.lemma.name} before it is stated")
    LEMMAS[made.name] = made
    return made
