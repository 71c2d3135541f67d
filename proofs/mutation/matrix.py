# SPDX-License-Identifier: Apache-2.0
"""The kill matrix: every mutant against every invariant, as JSON that is checked in.

What varies from run to run (seconds, machine, cache) is not in it. An invariant that has no cell
for a mutant does not speak of its formula: for it nothing has changed.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kvreshard.proofs.mutation.independence import LARGEST
from kvreshard.proofs.mutation.refute import RLIMIT
from kvreshard.proofs.mutation.statements import RANGES
from kvreshard.proofs.solve import solver_version
from kvreshard.spec.canonical import spec_hash
from kvreshard.spec.invariants import INVARIANTS

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from kvreshard.proofs.mutation.examine import Cell, Examined
    from kvreshard.proofs.mutation.independence import Standing
    from kvreshard.proofs.mutation.mutants import Generation, Mutant
    from kvreshard.proofs.mutation.survivors import Explanation

SCHEMA = 1
MATRIX_PATH = Path(__file__).parent.parent / "kill_matrix.json"

HOLDS, FAILED, NOT_DECIDED = 0, 1, 3
KILLED, EQUIVALENT, RIGHT, SURVIVOR, UNDECIDED = (
    "killed",
    "equivalent",
    "right",
    "survivor",
    "undecided",
)
OUTCOMES = (KILLED, EQUIVALENT, RIGHT, SURVIVOR, UNDECIDED)

Row = dict[str, Any]


def row(mutant: Mutant, seen: Examined, explanation: Explanation | None) -> Row:
    """Return a mutant's row. A mutant that is not killed needs an explanation."""
    made: Row = {
        "name": mutant.name,
        "formula": mutant.formula,
        "site": mutant.site,
        "kind": mutant.kind,
        "before": mutant.before,
        "after": mutant.after,
        "same_as": list(mutant.same_as),
        "outcome": _outcome(seen, explanation),
        "cells": {name: _cell(cell) for name, cell in seen.cells.items()},
    }
    if seen.elsewhere is not None:
        made["elsewhere"] = _cell(seen.elsewhere)
    made["enumeration_finds_broken"] = list(seen.enumerated)
    if explanation is not None:
        made["reason"] = explanation.reason
        made["lemmas"] = list(explanation.lemmas)
        made["obligations_proved"] = explanation.proved
        made["obligations_open"] = list(explanation.open)
    return made


def _outcome(seen: Examined, explanation: Explanation | None) -> str:
    if seen.killed:
        return KILLED
    # A wrong plan that enumeration finds is a fault, whatever the solver says.
    if explanation is None or seen.enumerated:
        return SURVIVOR
    if explanation.outcome == SURVIVOR and seen.undecided:
        return UNDECIDED
    return explanation.outcome


def _cell(cell: Cell) -> Any:
    if cell.model is None:
        return cell.result
    return {"killed_by": cell.statement, "model": cell.model}


def build(
    generation: Generation, rows: Sequence[Row], standings: Sequence[Standing]
) -> dict[str, Any]:
    """Return the matrix of a run; without standings, that of a run that left something out."""
    stands = {standing.invariant: standing for standing in standings}
    outcomes = Counter(one["outcome"] for one in rows)
    return {
        "schema": SCHEMA,
        "spec_hash": spec_hash(),
        "solver": {"name": "z3", "version": solver_version(), "rlimit": RLIMIT},
        "ranges": {name: list(limits) for name, limits in RANGES.items()},
        "summary": {
            "sites": sum(generation.sites.values()),
            "generated": len(rows) + generation.duplicates + len(generation.unchanged),
            "duplicates": generation.duplicates,
            "unchanged": len(generation.unchanged),
            "mutants": len(rows),
            **{name: outcomes[name] for name in OUTCOMES},
            "killed_by_an_invariant": sum(bool(killers(one)) for one in rows),
            "killed_elsewhere_alone": sum(killed_elsewhere(one) is not None for one in rows),
            "confirmed_by_enumeration": sum(
                bool(killers(one) and one["enumeration_finds_broken"]) for one in rows
            ),
            "undecided_cells": sum(undecided_cells(one) for one in rows),
        },
        "formulas": {
            name: {
                "sites": count,
                "mutants": sum(one["formula"] == name for one in rows),
                **{
                    outcome: sum(
                        one["formula"] == name and one["outcome"] == outcome for one in rows
                    )
                    for outcome in OUTCOMES
                },
            }
            for name, count in generation.sites.items()
        },
        "standing_up_to": LARGEST,
        "invariants": {
            name: {**_invariant(name, rows), **_standing(stands.get(name))} for name in INVARIANTS
        },
        "unchanged": list(generation.unchanged),
        "mutants": list(rows),
    }


def killers(one: Row) -> list[str]:
    """Return the invariants that kill the mutant of a row."""
    return [name for name, cell in one["cells"].items() if isinstance(cell, dict)]


def killed_elsewhere(one: Row) -> str | None:
    """Return the other obligation that kills the mutant of a row, where no invariant does."""
    cell = one.get("elsewhere")
    return cell["killed_by"] if isinstance(cell, dict) else None


def undecided_cells(one: Row) -> int:
    """Return how many cells of a row the solver left open."""
    return [*one["cells"].values(), one.get("elsewhere")].count(UNDECIDED)


def _invariant(name: str, rows: Iterable[Row]) -> dict[str, Any]:
    asked = [one for one in rows if name in one["cells"]]
    killed = [one for one in asked if name in killers(one)]
    alone = [one["name"] for one in killed if killers(one) == [name]]
    return {
        "asked": len(asked),
        "killed": len(killed),
        "killed_alone": len(alone),
        "undecided": sum(one["cells"][name] == UNDECIDED for one in asked),
        "together_with": _partners(name, killed),
    }


def _standing(standing: Standing | None) -> dict[str, Any]:
    if standing is None:
        return {}
    needed = standing.needed_at
    return {
        "broken_alone_at": None if needed is None else list(needed),
        "implied_by": list(standing.implied_by),
    }


def _partners(name: str, killed: Sequence[Row]) -> dict[str, int]:
    """Return how many of an invariant's kills each of the others makes too."""
    counts = Counter(other for one in killed for other in killers(one) if other != name)
    return {other: counts[other] for other in INVARIANTS if counts[other]}


def exit_code(rows: Sequence[Row]) -> int:
    """Return 0 where every mutant is killed or explained, 1 for a survivor, 3 for what is open.

    No mutants at all are a failure.
    """
    outcomes = {one["outcome"] for one in rows}
    if SURVIVOR in outcomes or not outcomes:
        return FAILED
    return NOT_DECIDED if UNDECIDED in outcomes else HOLDS


def text(matrix: dict[str, Any]) -> str:
    """Return the matrix as it is written to disk: one line for each mutant."""
    head = {name: value for name, value in matrix.items() if name != "mutants"}
    lines = ",\n".join(f"  {json.dumps(one)}" for one in matrix["mutants"])
    return json.dumps(head, indent=1)[:-2] + f',\n "mutants": [\n{lines}\n ]\n}}\n'


def write(matrix: dict[str, Any], path: Path = MATRIX_PATH) -> None:
    """Write the matrix."""
    path.write_text(text(matrix), encoding="utf-8", newline="\n")


def read(path: Path = MATRIX_PATH) -> dict[str, Any]:
    """Read a matrix.

    Raises:
        ValueError: it has another schema.
    """
    matrix: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    if matrix["schema"] != SCHEMA:
        raise ValueError(f"schema of {path.name} is {matrix['schema']}, and has to be {SCHEMA}")
    return matrix
