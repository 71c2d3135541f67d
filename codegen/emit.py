# SPDX-License-Identifier: Apache-2.0
"""Write the planner module from the proved formulas.

`render_planner` is a function of the specification, the template and the ledger alone, so that
writing it twice gives the same bytes.
"""

from __future__ import annotations

import json
import textwrap
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import jinja2
import z3

from kvreshard import generated, proofs
from kvreshard.codegen.evidence import (
    EmissionRefused,
    Ledger,
    demand_proof,
    invariants_proved,
    ledger_hash,
)
from kvreshard.codegen.printer import (
    INDENT,
    LINE_LENGTH,
    bracketed,
    print_body,
    print_expression,
)
from kvreshard.codegen.selection import RESULT_UNITS, called_by, emitted_formulas
from kvreshard.spec.canonical import s_expression, spec_hash
from kvreshard.spec.election import POLICIES
from kvreshard.spec.invariants import INVARIANTS
from kvreshard.spec.parameters import PARAMETERS, hypotheses_for

if TYPE_CHECKING:
    from collections.abc import Iterable

    from kvreshard.spec.formula import Formula, Hypothesis

__all__ = [
    "EmissionRefused",
    "load_ledger",
    "planner_path",
    "render_planner",
]

_TEMPLATES = Path(__file__).parent / "templates"


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
    return Path(generated.__path__[0]) / "planner.py"


def render_planner(ledger: Ledger) -> str:
    """Return the text of the planner module.

    Args:
        ledger: the ledger of a proof run, as loaded from JSON.

    Raises:
        EmissionRefused: an obligation of a formula is not proved, or a formula has none.
    """
    formulas = emitted_formulas()
    demand_proof(ledger, spec_hash(), formulas, INVARIANTS)
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_TEMPLATES),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,
    )
    return environment.get_template("planner.py.j2").render(
        spec_hash=spec_hash(),
        ledger_hash=ledger_hash(ledger),
        solver=ledger["solver"],
        functions=[_function(made, ledger) for made in formulas],
        parameters=_parameter_lines(formulas),
        hypotheses=_hypothesis_lines(formulas),
        policies=POLICIES,
    )


def _function(made: Formula, ledger: Ledger) -> _Function:
    returned = "bool" if z3.is_bool(made.body) else "int"
    parameters = [f"{name}: int" for name in made.parameter_names]
    return _Function(
        signature=bracketed(f"def {made.name}(", parameters, f") -> {returned}:"),
        docstring=_docstring(made, ledger),
        comment=_wrapped("# spec: ", s_expression(made.body), "# " + INDENT),
        body=print_body(made.body, taken={*made.parameter_names, *RESULT_UNITS}),
    )


def _docstring(made: Formula, ledger: Ledger) -> list[str]:
    first, *others = [" ".join(part.split()) for part in made.sentence.split("\n\n")]
    units = ", ".join(f"{name} ({PARAMETERS[name].unit})" for name in made.parameter_names)
    assumed = ", ".join(item.name for item in _hypotheses(made))
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


def _hypotheses(made: Formula) -> list[Hypothesis]:
    """Return what the formula assumes: the legal ranges, except where it is what decides."""
    return [
        hypothesis
        for hypothesis in hypotheses_for(made.parameter_names)
        if made not in called_by(hypothesis.condition)
    ]


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


def _hypothesis_lines(formulas: Iterable[Formula]) -> list[str]:
    used = {name for made in formulas for name in made.parameter_names}
    return [
        line
        for hypothesis in hypotheses_for(used)
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
