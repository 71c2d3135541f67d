# SPDX-License-Identifier: Apache-2.0
"""Whether a file is still the emitted text: the checked-in one, or a copy in another project.

A copy is compared with a planner module of this installation, so that neither a solver nor a
template engine is needed: with the one over numpy's arrays where the copy imports numpy. Whether
that module is itself fresh is what `stale_files` tells.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any

from kvreshard import generated

_SPEC_HASH = re.compile(r"^# spec: +sha256 ([0-9a-f]{64})$", re.MULTILINE)


@dataclass(frozen=True)
class Difference:
    """The first line in which two texts differ; None for a line that is not there."""

    line: int
    expected: str | None
    found: str | None

    def __str__(self) -> str:
        """Say it in words."""
        found = "the end of the file" if self.found is None else repr(self.found)
        expected = "the end of the file" if self.expected is None else repr(self.expected)
        return f"line {self.line}: expected {expected}, found {found}"


@dataclass(frozen=True)
class StaleFile:
    """A generated file that is not what generating it now gives."""

    path: Path
    difference: Difference

    def __str__(self) -> str:
        """Say it in words."""
        return f"{self.path.name} is stale, run `make generate`; {self.difference}"


@dataclass(frozen=True)
class VendoredResult:
    """What is known about a copy of the planner module.

    Attributes:
        path: the copy.
        matches: whether it is the emitted text; line endings do not count.
        spec_hash: the specification that its header names, if it has one.
        emitted_spec_hash: the specification of the planner module of this installation.
        difference: the first line that differs, where it does not match.
    """

    path: Path
    matches: bool
    spec_hash: str | None
    emitted_spec_hash: str | None
    difference: Difference | None

    def __str__(self) -> str:
        """Say it in words."""
        if self.matches:
            return f"{self.path} is the emitted planner, for spec {self.spec_hash}"
        if self.spec_hash is None:
            about = "and its header names no spec"
        elif self.spec_hash == self.emitted_spec_hash:
            about = f"though its header names the same spec, {self.spec_hash}"
        else:
            about = (
                f"its header names another spec: {self.spec_hash}, "
                f"where this kvreshard has {self.emitted_spec_hash}"
            )
        return f"{self.path} is not the emitted planner, {about}; {self.difference}"


def stale_files(
    ledger: dict[str, Any] | None = None, folder: Path | None = None
) -> list[StaleFile]:
    """Return the generated files that differ, in any byte, from what generating gives now.

    Args:
        ledger: the ledger of a proof run; by default the one of this checkout.
        folder: where they lie; by default `generated/`.

    Raises:
        EmissionRefused: an obligation of a formula is not proved.
    """
    from kvreshard.codegen import emit, files  # z3 and jinja2 are needed here only

    folder = folder or files.generated_folder()
    expected = files.render_generated(emit.load_ledger() if ledger is None else ledger)
    found = {name: _bytes_as_text(folder / name) for name in expected}
    return [
        StaleFile(folder / name, _first_difference(text, found[name]))
        for name, text in expected.items()
        if found[name] != text
    ]


def verify_vendored(path: str | Path) -> VendoredResult:
    """Compare a copy of a planner module with the one of this installation.

    Args:
        path: the copy; any name, anywhere.

    Raises:
        OSError: it cannot be read.
    """
    path = Path(path)
    found = _text(path)
    over_arrays = "\nimport numpy as np\n" in found
    name = "planner_numpy.py" if over_arrays else "planner.py"
    emitted = _text(Path(generated.__path__[0]) / name)
    matches = found == emitted
    return VendoredResult(
        path=path,
        matches=matches,
        spec_hash=_spec_hash(found),
        emitted_spec_hash=_spec_hash(emitted),
        difference=None if matches else _first_difference(emitted, found),
    )


def _bytes_as_text(path: Path) -> str:
    return path.read_bytes().decode("utf-8", "replace") if path.exists() else ""


def _text(path: Path) -> str:
    text = path.read_bytes().decode("utf-8", "replace")
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _spec_hash(text: str) -> str | None:
    match = _SPEC_HASH.search(text)
    return match[1] if match else None


def _first_difference(expected: str, found: str) -> Difference:
    # What follows the last newline is a line too, so that a missing newline is seen.
    pairs = enumerate(zip_longest(expected.split("\n"), found.split("\n")), start=1)
    return next(Difference(line, left, right) for line, (left, right) in pairs if left != right)
