# SPDX-License-Identifier: Apache-2.0
"""The hashes that tie an emitted file to a specification and to a ledger.

They are taken over a text of our own, so that they do not change with a solver's way to print.
"""

from __future__ import annotations

import hashlib
import importlib
import json
import pkgutil
from typing import TYPE_CHECKING, Any

import z3

from kvreshard import spec
from kvreshard.codegen.printer import extremum
from kvreshard.spec.election import POLICIES
from kvreshard.spec.formula import Formula
from kvreshard.spec.invariants import INVARIANTS
from kvreshard.spec.parameters import PARAMETERS

if TYPE_CHECKING:
    from collections.abc import Iterator


def spec_formulas() -> dict[str, Formula]:
    """Return every formula that a module of the specification defines, sorted by name.

    Not what happens to be registered: a proof or a test may make formulas of its own.
    """
    found = {}
    for module in pkgutil.iter_modules(spec.__path__, f"{spec.__name__}."):
        members = vars(importlib.import_module(module.name)).values()
        found.update({made.name: made for made in members if isinstance(made, Formula)})
    return dict(sorted(found.items()))


def s_expression(expression: z3.ExprRef) -> str:
    """Return the expression in prefix form: `(div (* tp_rank total_num_kv_heads) tp_size)`.

    Conditionals that are a maximum or a minimum are written so, as in the specification.
    """
    if z3.is_int_value(expression):
        return str(expression.as_long())
    if not z3.is_app(expression):
        raise ValueError(f"a formula has no quantifiers, but this has: {expression}")
    name = str(expression.decl().name())
    if expression.num_args() == 0:
        return name
    children = expression.children()
    if z3.is_app_of(expression, z3.Z3_OP_ITE) and extremum(*children):
        name, children = extremum(*children) or name, children[1:]
    return f"({' '.join([name, *map(s_expression, children)])})"


def spec_text() -> str:
    """Return every formula, parameter, election policy and invariant sentence as text."""
    return "\n".join(_spec_lines()) + "\n"


def spec_hash() -> str:
    """Return the SHA-256 of `spec_text`, in hexadecimal."""
    return _sha256(spec_text())


def ledger_hash(ledger: dict[str, Any]) -> str:
    """Return the SHA-256 of a ledger's content, whatever its formatting, in hexadecimal."""
    return _sha256(json.dumps(ledger, sort_keys=True, separators=(",", ":")))


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8")).hexdigest()


def _spec_lines() -> Iterator[str]:
    for name, made in spec_formulas().items():
        parameters = " ".join(made.parameter_names)
        yield f"formula {name} ({parameters}) {s_expression(made.body)}"
        yield f"  {' '.join(made.sentence.split())}"
    for name, parameter in sorted(PARAMETERS.items()):
        yield f"parameter {name} [{parameter.unit}] {parameter.meaning}; {parameter.legal}"
        for hypothesis in parameter.hypotheses:
            yield f"  {hypothesis.name} {s_expression(hypothesis.condition)}"
    for policy in POLICIES:
        divisible = " needs_divisible_pair" if policy.needs_divisible_pair else ""
        yield f"policy {policy.name} {policy.elect.name}{divisible}"
    for name, invariant in sorted(INVARIANTS.items()):
        yield f"invariant {name} {invariant.sentence}"
