# SPDX-License-Identifier: Apache-2.0
"""The sizes that an audit speaks of: those that the contract names, narrowed by the user."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TYPE_CHECKING

import z3

from kvreshard.proofs.audit.asking import ContractMismatchError, plain_path
from kvreshard.proofs.audit.claims import possible
from kvreshard.proofs.audit.orders import D, H, Order, P, all_orders
from kvreshard.proofs.audit.reduction import Hypotheses
from kvreshard.proofs.judge import is_legal
from kvreshard.proofs.lifting.path import Path, all_ways
from kvreshard.proofs.lifting.program import Program
from kvreshard.proofs.lifting.run import Returned, run_along
from kvreshard.proofs.lifting.unsupported import UnsupportedError
from kvreshard.proofs.lifting.values import is_truth, kind_of
from kvreshard.spec.formula import unfold
from kvreshard.spec.ownership import group_is_legal

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from kvreshard.proofs.audit.asking import Asking
    from kvreshard.proofs.audit.model import Sizes
    from kvreshard.proofs.lifting.values import FunctionValue, Integer, Truth

SIZE_NAMES = "total_num_kv_heads, producer_tp_size, consumer_tp_size"


class WhereError(ValueError):
    """What was given to narrow the domain is no condition on H, P and D."""


class AtError(ValueError):
    """The sizes that were asked for are not legal, or outside the domain."""


@dataclass(frozen=True)
class Domain:
    """The sizes of an audit.

    Attributes:
        asking: its contract may name them.
        where: the user's condition on H, P and D; empty for none.
        condition: the same as a function, or None.
    """

    asking: Asking
    where: str = ""
    condition: FunctionValue | None = None

    @staticmethod
    def of(asking: Asking, where: str = "") -> Domain:
        """Make the domain of a contract, narrowed by a condition such as `P % D == 0`.

        Raises:
            WhereError: it is no such condition.
        """
        return Domain(asking, where, _condition(where) if where else None)

    @property
    def in_words(self) -> str:
        """The domain as reports say it."""
        said = self.asking.contract.domain
        return f"{said}, where {self.where}" if self.where else said

    def holds(self, path: Path, sizes: tuple[Integer, Integer, Integer]) -> bool:
        """Return whether sizes are in the domain; the way parts where that is not known."""
        names = ("total_num_kv_heads", "producer_tp_size", "consumer_tp_size")
        if not self.asking.in_domain(path, dict(zip(names, sizes, strict=True))):
            return False
        if self.condition is None:
            return True
        return path.decide(self._met(path, self.condition, sizes), self.condition.node)

    def _met(self, path: Path, condition: FunctionValue, sizes: Sequence[Integer]) -> Truth:
        try:
            outcome = run_along(path, condition, sizes)
        except UnsupportedError as error:
            raise self._wrong(f"this has {error.what}") from error
        if not isinstance(outcome, Returned):
            raise self._wrong(f"this raises {outcome.kind} for sizes of the domain")
        if not is_truth(outcome.value):
            raise self._wrong(f"this gives a {kind_of(outcome.value)}")
        return outcome.value

    def _wrong(self, what: str) -> WhereError:
        return WhereError(
            f"where={self.where}; legal: a condition on H, P and D that holds or not, such as "
            f"P % D == 0; {what}"
        )

    def has(self, sizes: Sizes) -> bool:
        """Return whether known sizes are in the domain."""
        return self.holds(plain_path(), sizes)

    def check(self, at: Sizes) -> None:
        """Refuse sizes that nothing is to be told of.

        Raises:
            AtError: they are not legal, or outside the domain.
        """
        heads, *groups = at
        for letter, size in zip("PD", groups, strict=True):
            if not is_legal(heads, size):
                raise AtError(
                    f"at={at}: {letter}={size} is not legal for H={heads}; legal: a divisor or a "
                    "multiple of H"
                )
        if not self.has(at):
            raise AtError(f"at={at}: outside the domain; legal: {self.in_words}")

    def is_divisible(self) -> bool:
        """Return whether the solver proves that one of P and D divides the other throughout.

        A condition that raises where no sizes may be is no reason to ask for another one: what
        raises for sizes by value does so when they are tried.
        """
        h, p, d = (z3.Int(name) for name in (H, P, D))
        given = (
            *(size >= 1 for size in (h, p, d)),
            unfold(group_is_legal(h, p)),
            unfold(group_is_legal(h, d)),
        )
        meaning = Hypotheses((*given, z3.Not(z3.Or(p % d == 0, d % p == 0))))
        try:
            return not self._may_have(meaning, (h, p, d))
        except (UnsupportedError, ContractMismatchError, WhereError):
            return False

    def orders(self) -> Iterator[Order]:
        """Yield the orders of sizes that the domain has, or may have."""
        for order in all_orders():
            meaning = Hypotheses(tuple(order.hypotheses))
            if self._may_have(meaning, (order.size(H), order.size(P), order.size(D))):
                yield order

    def _may_have(self, meaning: Hypotheses, sizes: tuple[Integer, Integer, Integer]) -> bool:
        """Return whether the domain has such sizes; True as well where the solver does not know."""
        ways = all_ways(lambda path: self.holds(path, sizes), lambda: meaning)
        return any(way.outcome and possible([*meaning.given, *way.conditions]) for way in ways)


def _condition(where: str) -> FunctionValue:
    text = f"def where(H, P, D):\n    return {where}\n"
    try:
        program = Program.parse(text, "--where")
    except SyntaxError as error:
        raise WhereError(f"where={where}; legal: a condition such as P % D == 0") from error
    function = program.function("where")
    one = len(program.tree.body) == 1 and function is not None and len(function.node.body) == 1
    if not one or function is None or not isinstance(function.node.body[0], ast.Return):
        raise WhereError(f"where={where}; legal: one condition such as P % D == 0")
    return function
