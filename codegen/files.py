# SPDX-License-Identifier: Apache-2.0
"""The files of generated/: each is a text made from the specification and the ledger."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from kvreshard import generated
from kvreshard.codegen import emit, vectors

if TYPE_CHECKING:
    from kvreshard.codegen.evidence import Ledger


def generated_folder() -> Path:
    """Return generated/ of this checkout."""
    return Path(generated.__path__[0])


def render_generated(ledger: Ledger) -> dict[str, str]:
    """Return the text of every generated file, by its path below generated/.

    Raises:
        EmissionRefused: an obligation of a formula is not proved, or a vector does not pass
            the judge.
    """
    modules = {
        "planner.py": emit.render_planner(ledger),
        "planner_numpy.py": emit.render_planner_numpy(ledger),
    }
    return modules | vectors.render_vectors()


def write_generated(ledger: Ledger | None = None, folder: Path | None = None) -> list[Path]:
    """Write the generated files and return their paths.

    Args:
        ledger: the ledger of a proof run; by default the one of this checkout.
        folder: where they go; by default `generated/`.

    Raises:
        EmissionRefused: an obligation of a formula is not proved. Nothing is written then.
    """
    texts = render_generated(emit.load_ledger() if ledger is None else ledger)
    folder = folder or generated_folder()
    written = []
    for name, text in texts.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8", newline="\n")
        written.append(path)
    return written
