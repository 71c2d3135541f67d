# SPDX-License-Identifier: Apache-2.0
"""Measure which kind of check notices which fault, and write docs/why-proof.md from it.

Run by hand; it takes about half an hour on one core. `--document` writes the document from the
record that is there, and measures nothing.
"""

from __future__ import annotations

import json
import os
import platform
from pathlib import Path
from typing import Any

import click
from detection import document, measure
from detection.enumeration import pairs_up_to
from rich.console import Console

from kvreshard.proofs.mutation import matrix as matrices
from kvreshard.proofs.mutation.mutants import generate
from kvreshard.proofs.solve import solver_version
from kvreshard.spec.canonical import spec_hash

HERE = Path(__file__).resolve().parent
RECORD = HERE / "why_proof.json"
DOCUMENT = HERE.parent / "docs" / "why-proof.md"
SCHEMA = 1


@click.command()
@click.option("--document", "only_document", is_flag=True, help="Measure nothing.")
def main(only_document: bool) -> None:
    """Measure everything, write the record and the document."""
    if not only_document:
        write(measured(Console(stderr=True, highlight=False)))
    text = DOCUMENT.read_text(encoding="utf-8")
    written = document.with_tables(text, read(), matrices.read())
    DOCUMENT.write_text(written, encoding="utf-8", newline="\n")


def measured(console: Console) -> dict[str, Any]:
    """Return the record of a whole run."""
    clean, planners, mutants, late = (measure.Clock() for _ in range(4))
    console.print("the right planner")
    measure.clean_passes(clean)
    console.print("broken planners")
    detections: dict[str, Any] = {"planners": measure.planners(planners)}
    detections["late"] = measure.late(late)
    detections["engine"] = measure.engine()
    detections["mutants"] = measure.mutants(generate().mutants, mutants, console.print)
    version = ".".join(platform.python_version_tuple()[:2])
    return {
        "schema": SCHEMA,
        "spec_hash": spec_hash(),
        "solver": f"z3 {solver_version()}",
        "detections": detections,
        "costs": {
            "machine": f"{os.cpu_count()} cores, Python {version}",
            "unit": "seconds of the processor",
            "right_planner": clean.summary(),
            "broken_planners": planners.summary(),
            "mutants": mutants.summary(),
            "late_faults": late.summary(),
            "pairs_of_ranks": {f"to {one}": pairs_up_to(one) for one in (16, 64, 256)},
        },
    }


def read() -> dict[str, Any]:
    """Return the record.

    Raises:
        ValueError: it has another schema.
    """
    record: dict[str, Any] = json.loads(RECORD.read_text(encoding="utf-8"))
    if record["schema"] != SCHEMA:
        raise ValueError(f"schema of {RECORD.name} is {record['schema']}, and has to be {SCHEMA}")
    return record


def write(record: dict[str, Any]) -> None:
    """Write the record, one line for each fault."""
    detections = record["detections"]
    groups = []
    for group, rows in detections.items():
        lines = ",\n".join(
            f"   {json.dumps(name)}: {json.dumps(row)}" for name, row in rows.items()
        )
        groups.append(f'  "{group}": {{\n{lines}\n  }}')
    head = {name: value for name, value in record.items() if name != "detections"}
    text = json.dumps(head, indent=1)[:-2] + ',\n "detections": {\n' + ",\n".join(groups)
    RECORD.write_text(text + "\n }\n}\n", encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main()
