# SPDX-License-Identifier: Apache-2.0
"""The same statement with quotients as witnesses, for a solver that is slow with div and mod.

Each `a div b` becomes a new integer q and each `a mod b` a new integer r, with what defines them
where b is at least 1: a == q*b + r and 0 <= r < b. What is restated follows from the statement with
the quotients and remainders themselves as witnesses, so if the restated assertions cannot hold, the
original ones cannot. Where b may be less than 1 the restated assertions say less: that they can
hold means nothing.

That the definition fits z3's div and mod is put to z3 for each restatement (`witnesses_exist`).
That it fits nothing else is lemma `a_bracketed_quotient_is_the_quotient`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import z3

if TYPE_CHECKING:
    from collections.abc import Iterable

    from kvreshard.spec.formula import Integer, Truth


@dataclass(frozen=True)
class Restated:
    """Assertions without div and mod.

    Attributes:
        conditions: the definitions of the witnesses, then the assertions.
        definitions: how many of the conditions are definitions.
        witnesses: each new integer, with the quotient or remainder that it stands for.
    """

    conditions: tuple[Truth, ...]
    definitions: int
    witnesses: tuple[tuple[Integer, Integer], ...]

    def originals(self) -> tuple[Truth, ...]:
        """Return the assertions with the quotients and remainders back in their places."""
        back = list(self.witnesses)
        # A term may hold a witness made before it, so the latest goes first.
        restored = list(self.conditions)
        for pair in reversed(back):
            restored = [z3.substitute(condition, pair) for condition in restored]
        return tuple(restored)

    def witnesses_exist(self) -> tuple[Truth, ...]:
        """Return what z3 has to prove, each: quotient and remainder meet their definition."""
        return self.originals()[: self.definitions]


def with_witnesses(conditions: Iterable[Truth]) -> Restated | None:
    """Return the conditions restated, or None where they have no div or mod, or a quantifier."""
    writer = _Writer()
    try:
        restated = [writer.restate(condition) for condition in conditions]
    except _HasQuantifierError:
        return None
    if not writer.definitions:
        return None
    return Restated(
        (*writer.definitions, *restated), len(writer.definitions), tuple(writer.witnesses)
    )


class _HasQuantifierError(Exception):
    """A witness for each value of a bound variable would be a function."""


class _Writer:
    def __init__(self) -> None:
        self.definitions: list[Truth] = []
        self.witnesses: list[tuple[Integer, Integer]] = []
        self._divisions: dict[tuple[int, int], tuple[Integer, Integer]] = {}
        # The expression is kept beside its result, since z3 reuses the ids of freed ones.
        self._seen: dict[int, tuple[z3.ExprRef, z3.ExprRef]] = {}

    def restate(self, expression: z3.ExprRef) -> z3.ExprRef:
        if z3.is_quantifier(expression):
            raise _HasQuantifierError
        known = self._seen.get(expression.get_id())
        if known is not None:
            return known[1]
        children = [self.restate(child) for child in expression.children()]
        if z3.is_app_of(expression, z3.Z3_OP_IDIV):
            result: z3.ExprRef = self._divide(*children)[0]
        elif z3.is_app_of(expression, z3.Z3_OP_MOD):
            result = self._divide(*children)[1]
        else:
            result = expression.decl()(*children) if children else expression
        self._seen[expression.get_id()] = expression, result
        return result

    def _divide(self, a: Integer, b: Integer) -> tuple[Integer, Integer]:
        key = a.get_id(), b.get_id()
        if key not in self._divisions:
            number = len(self._divisions)
            q, r = z3.Int(f"quotient!{number}"), z3.Int(f"remainder!{number}")
            self._divisions[key] = q, r
            self.witnesses += [(q, a / b), (r, a % b)]
            self.definitions.append(z3.Implies(b >= 1, z3.And(a == q * b + r, 0 <= r, r < b)))
        return self._divisions[key]
