# SPDX-License-Identifier: Apache-2.0
"""A mutant that makes a situation impossible which must exist.

Nothing that is to hold is refuted by such a mutant: it excludes cases. What speaks against it is
that the solver finds the scenario impossible for all sizes, and in plain Python, that a witness of
the right specification is no longer one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import z3

from kvreshard.proofs.evaluate import executable_truth
from kvreshard.proofs.mutation.refute import DoesNotReplayError
from kvreshard.proofs.obligations import Obligation, obligations
from kvreshard.proofs.question import RLIMIT, smt2
from kvreshard.proofs.rewrite import constants_of
from kvreshard.spec.formula import Truth, unfold

if TYPE_CHECKING:
    from kvreshard.proofs.mutation.answers import Model
    from kvreshard.proofs.mutation.mutants import Mutant

# The scenarios speak of groups of eight.
LARGEST = 8


def ruled_out_scenario(mutant: Mutant) -> tuple[str, Model] | None:
    """Return the name of a scenario that the mutant makes impossible, and a right witness of it.

    Raises:
        DoesNotReplayError: plain Python takes the solver's witness otherwise.
    """
    for item in obligations():
        if item.kind == "scenario" and mutant.formula in item.formulas():
            with mutant.applied():
                impossible = _solve(_conditions(item))[0] == z3.unsat
            if impossible:
                return item.name, _lost_witness(item, mutant)
    return None


def _lost_witness(item: Obligation, mutant: Mutant) -> Model:
    conditions = _conditions(item)
    names = sorted(str(constant) for constant in constants_of(z3.And(*conditions)))
    sizes = [z3.Int(name) for name in names if "size" in name]
    found, model = _solve([*conditions, *[size <= LARGEST for size in sizes]])
    if found != z3.sat or not _holds(conditions, model):
        raise DoesNotReplayError(f"{item.name} has no witness with sizes up to {LARGEST}: {model}")
    with mutant.applied():
        if _holds(conditions, model):
            raise DoesNotReplayError(f"{item.name}: {mutant.name} keeps the witness {model}")
    return model


def _conditions(item: Obligation) -> list[Truth]:
    return [*(hypothesis.condition for hypothesis in item.hypotheses), item.goal]


def _holds(conditions: list[Truth], model: Model) -> bool:
    """Whether the conditions hold in plain Python; a division by 0 is no witness."""
    try:
        return all(executable_truth(condition, range(0))(model) for condition in conditions)
    except ZeroDivisionError:
        return False


def _solve(conditions: list[Truth]) -> tuple[z3.CheckSatResult, Model]:
    opened = [unfold(condition) for condition in conditions]
    names = sorted(str(constant) for constant in constants_of(z3.And(*opened)))
    context = z3.Context()
    solver = z3.Solver(ctx=context)
    solver.set("rlimit", RLIMIT)
    solver.add(*z3.parse_smt2_string(smt2(opened), ctx=context))
    result = solver.check()
    if result != z3.sat:
        return result, {}
    model = solver.model()
    values = {name: model.eval(z3.Int(name, context), model_completion=True) for name in names}
    return result, {name: int(value.as_long()) for name, value in values.items()}
