# SPDX-License-Identifier: Apache-2.0
"""Write the planner modules from the proved formulas.

What is rendered is a function of the specification, the template and the ledger alone, so that
writing it twice gives the same bytes.
"""

from __future__ import annotations

import json
import textwrap
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import z3

from kvreshard import generated, proofs
from kvreshard.codegen.environment import template
from kvreshard.codegen.evidence import (
    EmissionRefused,
    Ledger,
    demand_no_overflow,
    demand_proof,
    invariants_proved,
    ledger_hash,
)
from kvreshard.codegen.modules import PLANNER, PLANNER_NUMPY, EmittedModule
from kvreshard.codegen.printer import (
    INDENT,
    LINE_LENGTH,
    bracketed,
    print_body,
    print_expression,
)
from kvreshard.codegen.selection import RESULT_UNITS, assumed_by
from kvreshard.spec.canonical import s_expression, spec_hash
from kvreshard.spec.election import POLICIES
from kvreshard.spec.int64 import (
    HEADS_EXPONENT,
    REGION_BYTES_EXPONENT,
    TP_SIZE_EXPONENT,
    int64_bounds_for,
)
from kvreshard.spec.invariants import INVARIANTS
from kvreshard.spec.parameters import PARAMETERS, hypotheses_for

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from kvreshard.spec.formula import Formula, Hypothesis

__all__ = [
    "EmissionRefused",
    "load_ledger",
    "planner_path",
    "render_planner",
    "render_planner_numpy",
]


@dataclass(frozen=True)
class _Function:
    """The parts of one emitted formula function, as lines."""

    signature: list[str]
    docstring: list[str]
    comment: list[str]
    body: list[str]


def load_ledger(path: Path | None = None) -> Ledger:
    """Return the ledger in a file, by default the one of this checkout.

    Raises:
        EmissionRefused: there is none, or it is no JSON object.
    """
    path = path or Path(proofs.__path__[0]) / "ledger.json"
    try:
        ledger = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise EmissionRefused([f"there is no {path.name}: run `make prove`"]) from None
    except json.JSONDecodeError as error:
        raise EmissionRefused([f"{path.name} is not JSON: {error}"]) from None
    if not isinstance(ledger, dict):
        raise EmissionRefused([f"{path.name} is not a JSON object"])
    return ledger


def planner_path() -> Path:
    """Return where the emitted planner module lies in this checkout."""
    return Path(generated.__path__[0]) / PLANNER.file


def render_planner(ledger: Ledger) -> str:
    """Return the text of the planner module.

    Args:
        ledger: the ledger of a proof run, as loaded from JSON.

    Raises:
        EmissionRefused: an obligation of a formula is not proved, or a formula has none.
    """
    return _render(PLANNER, ledger)


def render_planner_numpy(ledger: Ledger) -> str:
    """Return the text of the planner module over arrays of 64-bit integers.

    Args:
        ledger: the ledger of a proof run, as loaded from JSON.

    Raises:
        EmissionRefused: an obligation of a formula is not proved, or a formula has none, or none
            that it does not overflow.
    """
    return _render(PLANNER_NUMPY, ledger)


def _render(module: EmittedModule, ledger: Ledger) -> str:
    formulas = module.formulas()
    demand_proof(ledger, spec_hash(), formulas, INVARIANTS)
    if module.wraps:
        demand_no_overflow(ledger, formulas)
    return template(f"{module.file}.j2").render(
        spec_hash=spec_hash(),
        ledger_hash=ledger_hash(ledger),
        solver=ledger["solver"],
        functions=[_function(made, module, ledger) for made in formulas],
        parameters=_parameter_lines(formulas),
        hypotheses=_hypothesis_lines(hypotheses_for, formulas),
        bounds=_hypothesis_lines(int64_bounds_for, formulas),
        most_heads=2**HEADS_EXPONENT,
        largest_tp_size=2**TP_SIZE_EXPONENT,
        largest_region_bytes=2**REGION_BYTES_EXPONENT,
        policies=POLICIES,
    )


def _function(made: Formula, module: EmittedModule, ledger: Ledger) -> _Function:
    dialect = module.dialect
    returned = dialect.truth if z3.is_bool(made.body) else dialect.integer
    parameters = [f"{name}: {dialect.integer}" for name in made.parameter_names]
    return _Function(
        signature=bracketed(f"def {made.name}(", parameters, f") -> {returned}:"),
        docstring=_docstring(made, module, ledger),
        comment=_wrapped("# spec: ", s_expression(made.body), "# " + INDENT),
        body=print_body(made.body, {*made.parameter_names, *RESULT_UNITS}, dialect),
    )


def _docstring(made: Formula, module: EmittedModule, ledger: Ledger) -> list[str]:
    first, *others = [" ".join(part.split()) for part in made.sentence.split("\n\n")]
    units = ", ".join(f"{name} ({PARAMETERS[name].unit})" for name in made.parameter_names)
    bounds = int64_bounds_for(made.parameter_names) if module.wraps else ()
    assumed = ", ".join(item.name for item in (*assumed_by(made), *bounds))
    lines = _wrapped('"""', first)
    for paragraph in others:
        lines += ["", *_wrapped("", paragraph)]
    lines += ["", *_labelled("Takes", f"{units}.")]
    lines += _labelled("Returns", f"{RESULT_UNITS[made.name]}.")
    lines += _labelled("Assumes", f"{assumed}.")
    invariants = invariants_proved(ledger, made.name)
    if invariants:
        lines += _labelled("Invariants proved", f"{', '.join(invariants)}.")
    return [*lines, f'{INDENT}"""']


def _parameter_lines(formulas: Iterable[Formula]) -> list[str]:
    used = {name for made in formulas for name in made.parameter_names}
    return [
        line
        for name, entry in PARAMETERS.items()
        if name in used
        for line in _labelled(
            f"{name} [{entry.unit}]", f"{entry.meaning}. Legal: {entry.legal}.", ""
        )
    ]


def _hypothesis_lines(
    hypotheses_of: Callable[[Iterable[str]], Iterable[Hypothesis]], formulas: Iterable[Formula]
) -> list[str]:
    used = dict.fromkeys(name for made in formulas for name in made.parameter_names)
    return [
        line
        for hypothesis in hypotheses_of(used)
        for line in _labelled(hypothesis.name, print_expression(hypothesis.condition), "")
    ]


def _labelled(label: str, text: str, indent: str = INDENT) -> list[str]:
    return _wrapped(f"{label}: ", text, INDENT, indent)


def _wrapped(start: str, text: str, later: str = "", indent: str = INDENT) -> list[str]:
    return textwrap.wrap(
        start + text,
        LINE_LENGTH,
        initial_indent=indent,
        subsequent_indent=indent + later,
        break_long_words=False,
        break_on_hyphens=False,
    )
