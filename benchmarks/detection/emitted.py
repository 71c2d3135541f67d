# SPDX-License-Identifier: Apache-2.0
"""The emitted planner module with a mutant's formula in it: as text, and as planners to judge."""

from __future__ import annotations

import ast
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

import z3

from kvreshard import generated
from kvreshard.codegen.check import subject_of
from kvreshard.codegen.modules import PLANNER
from kvreshard.codegen.printer import print_body
from kvreshard.codegen.selection import RESULT_UNITS, called_by
from kvreshard.spec.election import POLICIES

if TYPE_CHECKING:
    from kvreshard.proofs.judge import Subject
    from kvreshard.proofs.mutation.mutants import Mutant
    from kvreshard.spec.formula import Formula

TEXT = (Path(generated.__path__[0]) / PLANNER.file).read_text(encoding="utf-8")
EMITTED = tuple(made.name for made in PLANNER.formulas())


def is_emitted(formula: str) -> bool:
    """Whether the planner module has a function for the formula."""
    return formula in EMITTED


def with_mutant(mutant: Mutant, formula: Formula) -> str:
    """Return the module's text with the mutant's body in the formula's function.

    Raises:
        UnprintableError: an operator of the mutant has no Python counterpart.
    """
    lines = TEXT.splitlines()
    (node,) = (
        node
        for node in ast.parse(TEXT).body
        if isinstance(node, ast.FunctionDef) and node.name == mutant.formula
    )
    first, last = node.body[1].lineno - 1, node.end_lineno
    body = print_body(mutant.body, {*formula.parameter_names, *RESULT_UNITS})
    return "\n".join([*lines[:first], *body, *lines[last:], *_missing(mutant)]) + "\n"


def _missing(mutant: Mutant) -> list[str]:
    """Return the functions that the mutant calls and the module does not have."""
    lines = []
    for made in called(mutant):
        if not is_emitted(made.name):
            parameters = ", ".join(f"{name}: int" for name in made.parameter_names)
            returned = "bool" if z3.is_bool(made.body) else "int"
            lines += ["", "", f"def {made.name}({parameters}) -> {returned}:"]
            lines += print_body(made.body, {*made.parameter_names, *RESULT_UNITS})
    return lines


def called(mutant: Mutant) -> tuple[Formula, ...]:
    """Return the formulas that a mutant's body applies, with all that these apply."""
    found: dict[str, Formula] = {}
    pending = list(called_by(mutant.body))
    while pending:
        made = pending.pop()
        if made.name not in found:
            found[made.name] = made
            pending += called_by(made.body)
    return tuple(found.values())


def load(text: str) -> ModuleType:
    """Run a module's text."""
    module = ModuleType("planner_under_judgement")
    exec(compile(text, "planner.py", "exec"), module.__dict__)
    return module


def subjects_of(module: ModuleType) -> dict[str, Subject]:
    """Return the module's planner with each of its elections."""
    return {policy.name: subject_of(module, policy.name) for policy in POLICIES}
