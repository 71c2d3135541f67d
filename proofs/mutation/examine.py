# SPDX-License-Identifier: Apache-2.0
"""Judge one mutant: what refutes it, with which values, and whether plain enumeration agrees."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from kvreshard.proofs.counterexample import (
    BROKEN_BY_RAISING,
    smallest_counterexamples,
    specified,
    specified_layout,
)
from kvreshard.proofs.judge import judge, judge_layout
from kvreshard.proofs.mutation.refute import NOTHING_KEPT, refute
from kvreshard.proofs.mutation.scenarios import ruled_out_scenario
from kvreshard.proofs.mutation.statements import (
    MAXIMUM,
    Statement,
    claims_about,
    other_statements_about,
)
from kvreshard.spec.election import POLICIES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from kvreshard.proofs.judge import Violation
    from kvreshard.proofs.mutation.answers import Answers, Model
    from kvreshard.proofs.mutation.mutants import Mutant

# A layout that raises places nothing.
LAYOUT_BROKEN_BY_RAISING = "every_written_byte_holds_the_same_head_token_and_position"


@dataclass(frozen=True)
class Cell:
    """What came of an invariant, or of another obligation, for a mutant.

    Attributes:
        result: "killed", "holds" or "undecided".
        statement: the claim or obligation that is refuted.
        model: the values that refute it, by constant.
    """

    result: str
    statement: str | None = None
    model: Model | None = None


@dataclass(frozen=True)
class Examined:
    """What came of a mutant on the bounded ranges.

    Attributes:
        name: the mutant's name.
        cells: one for each invariant that speaks of the formula.
        elsewhere: what another obligation says, asked where no invariant is refuted.
        enumerated: the invariants that plain enumeration finds broken: for the sizes of the models
            where there are any, else for all sizes to `MAXIMUM`.
    """

    name: str
    cells: dict[str, Cell] = field(default_factory=dict)
    elsewhere: Cell | None = None
    enumerated: tuple[str, ...] = ()

    @property
    def killed(self) -> bool:
        """Whether something is refuted, with a model that replays."""
        return any(cell.result == "killed" for cell in self._all())

    @property
    def undecided(self) -> bool:
        """Whether the solver left something open."""
        return any(cell.result == "undecided" for cell in self._all())

    def _all(self) -> list[Cell]:
        return [*self.cells.values(), *([self.elsewhere] if self.elsewhere else [])]


def examine(mutant: Mutant, answers: Answers = NOTHING_KEPT) -> Examined:
    """Judge a mutant, with its formula replaced in this process while that lasts.

    Args:
        mutant: what is judged.
        answers: the solver's answers of earlier runs.

    Raises:
        DoesNotReplayError: the solver's model is none in plain Python.
    """
    about = claims_about(mutant.formula)
    with mutant.applied():
        cells = {
            name: _first_refuted([one for one in about if one.column == name], answers)
            for name in dict.fromkeys(statement.column for statement in about)
        }
        if any(cell.result == "killed" for cell in cells.values()):
            return Examined(mutant.name, cells, enumerated=_enumerated(cells.values()))
        elsewhere = _first_refuted(other_statements_about(mutant.formula), answers)
    if elsewhere.result != "killed":
        scenario = ruled_out_scenario(mutant)
        elsewhere = Cell("killed", *scenario) if scenario else elsewhere
    if elsewhere.result == "killed":
        return Examined(mutant.name, cells, elsewhere)
    with mutant.applied():
        broken = {one.violation.invariant for one in smallest_counterexamples(MAXIMUM)}
    return Examined(mutant.name, cells, elsewhere, tuple(sorted(broken)))


def _first_refuted(statements: Iterable[Statement], answers: Answers) -> Cell:
    """Return the first refutation; without one, whether every statement holds on its range."""
    result = "holds"
    for statement in statements:
        found = refute(statement, answers)
        if found.model is not None:
            return Cell("killed", statement.name, found.model)
        if found.result == "undecided":
            result = "undecided"
    return Cell(result)


def _enumerated(cells: Iterable[Cell]) -> tuple[str, ...]:
    """Return what plain enumeration finds broken for the sizes of the models.

    A planner that raises sends nothing, a layout that raises places nothing.
    """
    names = ("total_num_kv_heads", "producer_tp_size", "consumer_tp_size")
    models = [cell.model for cell in cells if cell.model is not None]
    triples = {tuple(model.get(name, 1) for name in names) for model in models}
    found = _found(lambda: judge_layout(specified_layout()), LAYOUT_BROKEN_BY_RAISING)
    for H, P, D in sorted(triples):
        for policy in POLICIES:
            if not policy.needs_divisible_pair or P % D == 0 or D % P == 0:
                subject = specified(policy)
                found |= _found(partial(judge, subject, H, P, D), BROKEN_BY_RAISING)
    return tuple(sorted(found))


def _found(judged: Callable[[], Iterable[Violation]], where_it_raises: str) -> set[str]:
    try:
        return {violation.invariant for violation in judged()}
    except (ArithmeticError, ValueError, IndexError):
        return {where_it_raises}
