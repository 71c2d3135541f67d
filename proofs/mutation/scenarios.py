# SPDX-License-Identifier: Apache-2.0
"""A mutant that makes a situation impossible which must exist.

Nothing that is to hold is refuted by such a mutant: it excludes cases. What speaks against it is
that the solver finds the scenario impossible for all sizes, and in plain Python, that a witness of
the right specification is no longer one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import product
from typing import TYPE_CHECKING

import z3

from kvreshard.proofs.evaluate import executable_truth
from kvreshard.proofs.mutation.refute import DoesNotReplayError
from kvreshard.proofs.obligations import Obligation, obligations
from kvreshard.proofs.question import RLIMIT, smt2
from kvreshard.proofs.rewrite import constants_of
from kvreshard.spec.formula import Truth, unfold
from kvreshard.spec.invariants import q
from kvreshard.spec.parameters import D, H, P, d, e, p

if TYPE_CHECKING:
    from kvreshard.proofs.mutation.answers import Model
    from kvreshard.proofs.mutation.mutants import Mutant

Run = Callable[[Mapping[str, int]], bool]

# The scenarios speak of groups of eight.
LARGEST = 8

# Where a witness is looked for: the sizes, then the ranks and the ordinal below a size.
_SIZES = tuple(str(size) for size in (H, P, D))
_BELOW = {str(p): str(P), str(q): str(P), str(d): str(D), str(e): str(P)}


def ruled_out_scenario(mutant: Mutant) -> tuple[str, Model] | None:
    """Return the name of a scenario that the mutant makes impossible, and a right witness of it.

    Raises:
        DoesNotReplayError: plain Python finds no witness, or the mutant keeps it.
    """
    for item in obligations():
        if item.kind == "scenario" and mutant.formula in item.formulas():
            with mutant.applied():
                impossible = _is_impossible(_conditions(item))
            if impossible:
                return item.name, _lost_witness(item, mutant)
    return None


def _lost_witness(item: Obligation, mutant: Mutant) -> Model:
    model = _smallest_witness(_conditions(item))
    if model is None:
        raise DoesNotReplayError(f"{item.name} has no witness with sizes up to {LARGEST}")
    replay_lost_witness(item, mutant, model)
    return model


def replay_lost_witness(item: Obligation, mutant: Mutant, model: Model) -> None:
    """Run a scenario in plain Python for a witness, as specified and with the mutant.

    Raises:
        DoesNotReplayError: the model is no witness, or the mutant keeps it.
    """
    conditions = _conditions(item)
    if not _holds(_executables(conditions), model):
        raise DoesNotReplayError(f"{item.name} has no witness {model}")
    with mutant.applied():
        if _holds(_executables(conditions), model):
            raise DoesNotReplayError(f"{item.name}: {mutant.name} keeps the witness {model}")


def _smallest_witness(conditions: list[Truth]) -> Model | None:
    """Return the first values that satisfy the conditions, found by trying all in order."""
    runs = _executables(conditions)
    constants = {str(one) for condition in conditions for one in constants_of(condition)}
    below = sorted(constants - set(_SIZES))
    for sizes in product(range(1, LARGEST + 1), repeat=len(_SIZES)):
        given = dict(zip(_SIZES, sizes, strict=True))
        for ranks in product(*[range(given[_BELOW[name]]) for name in below]):
            model = {**given, **dict(zip(below, ranks, strict=True))}
            if _holds(runs, model):
                return model
    return None


def _conditions(item: Obligation) -> list[Truth]:
    return [*(hypothesis.condition for hypothesis in item.hypotheses), item.goal]


def _holds(runs: list[Run], model: Model) -> bool:
    """Whether the conditions hold in plain Python; a division by 0 is no witness."""
    try:
        return all(run(model) for run in runs)
    except ZeroDivisionError:
        return False


def _executables(conditions: list[Truth]) -> list[Run]:
    return [executable_truth(condition, range(0)) for condition in conditions]


def _is_impossible(conditions: list[Truth]) -> bool:
    """Whether the solver finds the conditions contradictory, for all sizes."""
    context = z3.Context()
    solver = z3.Solver(ctx=context)
    solver.set("rlimit", RLIMIT)
    text = smt2([unfold(condition) for condition in conditions])
    solver.add(*z3.parse_smt2_string(text, ctx=context))
    return bool(solver.check() == z3.unsat)
