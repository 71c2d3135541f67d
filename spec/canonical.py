# SPDX-License-Identifier: Apache-2.0
"""The hash that ties a ledger and an emitted file to a specification.

It is taken over a text of our own, so that it does not change with a solver's way to print. The
text has all that a proof is about: formulas, legal ranges and bounds, claims, regimes and
scenarios.
"""

from __future__ import annotations

import hashlib
import importlib
import pkgutil
from typing import TYPE_CHECKING

import z3

from kvreshard import spec
from kvreshard.spec.election import POLICIES
from kvreshard.spec.formula import Formula, extremum
from kvreshard.spec.int64 import INT64_BOUNDS
from kvreshard.spec.invariants import INVARIANTS, PLANNER
from kvreshard.spec.parameters import PARAMETERS
from kvreshard.spec.regimes import IMPOSSIBLE_REGIMES, REGIMES
from kvreshard.spec.scenarios import SCENARIO_HYPOTHESES, SCENARIOS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from kvreshard.spec.formula import Hypothesis
    from kvreshard.spec.regimes import Regime


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

    Conditionals that are a maximum or a minimum are written so, as in the specification. That
    an integer exists is written `(exists (name) body)`.

    Raises:
        ValueError: it has a quantifier of another kind.
    """
    if z3.is_quantifier(expression):
        return _existence(expression)
    if z3.is_int_value(expression):
        return str(expression.as_long())
    name = str(expression.decl().name())
    if expression.num_args() == 0:
        return name
    children = expression.children()
    if z3.is_app_of(expression, z3.Z3_OP_ITE) and extremum(*children):
        name, children = extremum(*children) or name, children[1:]
    return f"({' '.join([name, *map(s_expression, children)])})"


def spec_text() -> str:
    """Return the whole specification as text."""
    return "\n".join(_spec_lines()) + "\n"


def spec_hash() -> str:
    """Return the SHA-256 of `spec_text`, in hexadecimal."""
    return hashlib.sha256(spec_text().encode("utf-8")).hexdigest()


def _existence(expression: z3.QuantifierRef) -> str:
    one_integer = expression.num_vars() == 1 and expression.var_sort(0) == z3.IntSort()
    if not (expression.is_exists() and one_integer):
        raise ValueError(f"not the existence of one integer: {expression}")
    name = expression.var_name(0)
    body = z3.substitute_vars(expression.body(), z3.Int(name))
    return f"(exists ({name}) {s_expression(body)})"


def _spec_lines() -> Iterator[str]:
    yield from _formula_lines()
    yield from _parameter_lines()
    for policy in POLICIES:
        divisible = " needs_divisible_pair" if policy.needs_divisible_pair else ""
        yield f"policy {policy.name} {policy.elect.name}{divisible}"
    yield from _invariant_lines()
    yield from _regime_lines("regime", REGIMES)
    yield from _regime_lines("impossible_regime", IMPOSSIBLE_REGIMES)
    yield from _scenario_lines()


def _formula_lines() -> Iterator[str]:
    for name, made in spec_formulas().items():
        parameters = " ".join(made.parameter_names)
        yield f"formula {name} ({parameters}) {s_expression(made.body)}"
        yield f"  {_one_line(made.sentence)}"


def _parameter_lines() -> Iterator[str]:
    for name, parameter in sorted(PARAMETERS.items()):
        yield f"parameter {name} [{parameter.unit}] {parameter.meaning}; {parameter.legal}"
        yield from _hypothesis_lines(parameter.hypotheses)
    for name, bounds in sorted(INT64_BOUNDS.items()):
        yield f"int64 {name}"
        yield from _hypothesis_lines(bounds)


def _invariant_lines() -> Iterator[str]:
    for name, invariant in sorted(INVARIANTS.items()):
        yield f"invariant {name} {_one_line(invariant.sentence)}"
        for claim in invariant.claims(PLANNER):
            yield f"claim {claim.part} {s_expression(claim.goal)}"
            yield from _hypothesis_lines(claim.hypotheses)


def _regime_lines(kind: str, regimes: Iterable[Regime]) -> Iterator[str]:
    for regime in regimes:
        yield f"{kind} {regime.name}"
        yield from _hypothesis_lines(regime.hypotheses)


def _scenario_lines() -> Iterator[str]:
    yield "scenarios"
    yield from _hypothesis_lines(SCENARIO_HYPOTHESES)
    for scenario in SCENARIOS:
        yield f"scenario {scenario.name} in {scenario.regime.name} {_one_line(scenario.sentence)}"
        yield f"  {s_expression(scenario.condition)}"


def _hypothesis_lines(hypotheses: Iterable[Hypothesis]) -> Iterator[str]:
    for hypothesis in hypotheses:
        yield f"  {hypothesis.name} {s_expression(hypothesis.condition)}"


def _one_line(text: str) -> str:
    return " ".join(text.split())
