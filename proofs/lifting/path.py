# SPDX-License-Identifier: Apache-2.0
"""One way through the lifted code, and the walk over all of them.

The code is worked through from the start once for each way. Where a condition is not known, one
answer is taken and the other kept for later. So whatever the code builds on its way, lists too,
belongs to one way alone. Expressions without effects may be worked out under a condition instead,
and put together as one.
"""

from __future__ import annotations

import ast
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import z3

from kvreshard.proofs.lifting.unsupported import PythonRaises, UnsupportedError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from kvreshard.proofs.lifting.values import Integer, Truth

# More ways than this is no planner, or a loop whose end is not seen.
MOST_PATHS = 4096
# Expressions worked out, on all ways together. A bound, so that a hostile source takes no hours.
MOST_STEPS = 3_000_000


class CannotTellError(Exception):
    """An expression that was worked out under a condition parts, or raises: it has to wait."""


class Meaning:
    """What is decided about numbers on the way; the plain meaning of Python's integers.

    Attributes:
        merges: whether a conditional over integers becomes one expression where its condition is
            not known; otherwise its branches are two ways.
        elementwise: whether values stand for the elements of arrays, which have no truth value.
    """

    merges = True
    elementwise = False

    def known(self, path: Path, condition: z3.BoolRef) -> bool | None:  # noqa: ARG002 - for others
        """Return whether a condition holds on this way, or None if that is not known."""
        return None

    def quotient(self, path: Path, dividend: Integer, divisor: Integer) -> Integer:  # noqa: ARG002 - for others
        """Return the floor of a quotient whose divisor is at least 1."""
        return as_term(dividend) / as_term(divisor)

    def remainder(self, path: Path, dividend: Integer, divisor: Integer) -> Integer:  # noqa: ARG002 - for others
        """Return what a division by a divisor of at least 1 leaves."""
        return as_term(dividend) % as_term(divisor)

    def divisor_is_zero(self, path: Path, divisor: z3.ArithRef, node: ast.AST) -> bool:
        """Decide whether a divisor is zero."""
        return path.decide(divisor == 0, node)

    def computed(self, value: Integer, node: ast.AST) -> None:
        """Take note of an integer that is computed."""


def as_term(value: Integer) -> z3.ArithRef:
    """Return an integer as a z3 expression."""
    return z3.IntVal(value) if isinstance(value, int) else value


def as_condition(value: Truth) -> z3.BoolRef:
    """Return a truth value as a z3 expression."""
    return z3.BoolVal(value) if isinstance(value, bool) else value


@dataclass(frozen=True)
class Answer:
    """Whether a condition holds on a way, and whether the way parted there or it was known."""

    condition: z3.BoolRef
    holds: bool
    parted: bool


@dataclass
class Path:
    """One way through the code.

    Attributes:
        meaning: what is decided about numbers.
        answers: to the conditions met, in order; those to come as well, while they are repeated.
        conditions: what holds on this way.
        under: what an expression is worked out under at the moment.
        taken: lines where the way parted or ended, as (file, line, what happened).
        assumed: lines whose effect is taken to be none, as (file, line, what).
        others: the beginnings of ways still to go.
        met: how many conditions were met so far.
        steps: how many expressions were worked out, on the ways before too.
    """

    meaning: Meaning
    answers: list[Answer] = field(default_factory=list)
    conditions: list[z3.BoolRef] = field(default_factory=list)
    under: list[z3.BoolRef] = field(default_factory=list)
    taken: list[tuple[str, int, str]] = field(default_factory=list)
    assumed: list[tuple[str, int, str]] = field(default_factory=list)
    others: list[list[Answer]] = field(default_factory=list)
    met: int = 0
    steps: int = 0

    def step(self, node: ast.AST, file: str) -> None:
        """Count an expression.

        Raises:
            UnsupportedError: there were too many.
        """
        self.steps += 1
        if self.steps > MOST_STEPS:
            raise UnsupportedError(node, f"more than {MOST_STEPS} steps", file)

    def decide(self, condition: Truth, node: ast.AST) -> bool:
        """Return whether a condition holds on this way, which parts here if it is not known.

        Raises:
            CannotTellError: it is not known, and what is worked out counts only under a condition.
                Were the way to part, one side would hold where the expression is not computed.
            UnsupportedError: the way is gone again, and the condition is not the one met before.
        """
        if isinstance(condition, bool):
            return condition
        # The simpler form serves this alone: it may take products apart.
        simpler = z3.simplify(condition)
        if z3.is_true(simpler) or z3.is_false(simpler):
            return bool(z3.is_true(simpler))
        if self.under:
            known = self.meaning.known(self, condition)
            if known is None:
                raise CannotTellError
            return known
        if self.met == len(self.answers):
            known = self.meaning.known(self, condition)
            if known is None:
                self.others.append([*self.answers, Answer(condition, False, parted=True)])
            self.answers.append(Answer(condition, known is not False, parted=known is None))
        answer = self.answers[self.met]
        if not answer.condition.eq(condition):
            raise UnsupportedError(node, "a condition that is not the same when it is met again")
        self.met += 1
        if answer.parted:
            self.conditions.append(condition if answer.holds else z3.Not(condition))
        return answer.holds

    def known(self, condition: Truth) -> bool | None:
        """Return whether a condition holds, or None; nothing parts here."""
        if isinstance(condition, bool):
            return condition
        # The simpler form serves this alone: it may take products apart.
        simpler = z3.simplify(condition)
        if z3.is_true(simpler) or z3.is_false(simpler):
            return bool(z3.is_true(simpler))
        return self.meaning.known(self, condition)

    @contextmanager
    def working_under(self, condition: Truth) -> Iterator[None]:
        """Work out an expression that counts only where a condition holds.

        Raises:
            CannotTellError: the expression parts or raises.
        """
        if condition is True:
            yield
            return
        self.under.append(as_condition(condition))
        try:
            yield
        except PythonRaises as raised:
            raise CannotTellError from raised
        finally:
            self.under.pop()


@dataclass(frozen=True)
class Way:
    """A way through the code that was gone to its end.

    Attributes:
        conditions: what holds on it.
        outcome: what came of it.
        taken, assumed: see `Path`.
    """

    conditions: tuple[z3.BoolRef, ...]
    outcome: Any
    taken: tuple[tuple[str, int, str], ...]
    assumed: tuple[tuple[str, int, str], ...]


def all_ways(run: Callable[[Path], Any], make_meaning: Callable[[], Meaning]) -> list[Way]:
    """Go every way through some code, and return them all.

    The conditions of the ways exclude one another, and one of them holds always.

    Args:
        run: works through the code once, along a path, and returns what comes of it.
        make_meaning: makes what decides about numbers, anew for each way.

    Raises:
        UnsupportedError: the code has a construct that is not known, or too many ways.
    """
    waiting: list[list[Answer]] = [[]]
    ways: list[Way] = []
    steps = 0
    while waiting:
        path = Path(make_meaning(), waiting.pop(), steps=steps)
        outcome = run(path)
        steps = path.steps
        ways.append(Way(tuple(path.conditions), outcome, tuple(path.taken), tuple(path.assumed)))
        waiting += path.others
        if len(ways) + len(waiting) > MOST_PATHS:
            raise UnsupportedError(
                ast.Pass(lineno=path.taken[-1][1] if path.taken else 1, col_offset=0),
                f"more than {MOST_PATHS} ways through the code",
                path.taken[-1][0] if path.taken else "",
            )
    return ways
