# SPDX-License-Identifier: Apache-2.0
"""Run the listed audits and write their reports, the table over them, and the examples of forms.

    python tools/write_audits.py                 all but those that fetch a large wheel
    python tools/write_audits.py --large         these, too
    python tools/write_audits.py NAME ...        the named ones
    python tools/write_audits.py --table         the table alone, from the JSON files

An audit that is not run keeps its files. Run it in the root of the checkout.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import audit_table
from audit_list import AUDITS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from audit_list import Listed

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "docs" / "audits"
EXAMPLES = FOLDER / "examples"
# The forms of one audit, by the ending of their files.
ENDINGS = {
    "terminal": "txt",
    "markdown": "md",
    "html": "html",
    "json": "json",
    "sarif": "sarif",
    "junit": "junit.xml",
}
# A proof for all sizes takes sizes that divide; the range is for what is not proved in the one that
# fails, and is small to be soon done.
EXAMPLE = ("--where", "P % D == 0 or D % P == 0", "--range", "4")
# Of the command: it holds, it fails, it is not decided.
DECIDED = (0, 1, 3)


def main(arguments: Sequence[str]) -> int:
    """Write what is asked for."""
    names = {one.name for one in AUDITS}
    flags = {argument for argument in arguments if argument.startswith("--")}
    wanted = set(arguments) - flags
    if unknown := (wanted - names) | (flags - {"--large", "--table"}):
        print(f"argument={min(unknown)}; legal: --large, --table, {', '.join(sorted(names))}")
        return 2
    for one in AUDITS:
        if one.name in wanted or not (wanted or "--table" in flags or one.large > bool(flags)):
            print(one.name)
            write_audit(one, FOLDER)
    if not wanted and "--table" not in flags:
        write_examples(EXAMPLES)
    (FOLDER / "README.md").write_text(table(), encoding="utf-8")
    return 0


def table() -> str:
    """Return the table over all audits as their JSON files have it."""
    return audit_table.readme(AUDITS, {one.name: read(one) for one in AUDITS})


def read(one: Listed) -> dict[str, Any]:
    """Return what the checked-in JSON file of an audit says."""
    text = (FOLDER / f"{one.name}.json").read_text(encoding="utf-8")
    document: dict[str, Any] = json.loads(text)
    return document


def write_audit(one: Listed, folder: Path) -> None:
    """Run a listed audit and write its reports into a folder."""
    forms = ["markdown", "json", *(["html"] if one.page else [])]
    files = {form: folder / f"{one.name}.{ENDINGS[form]}" for form in forms}
    run(one.arguments, files, ROOT)


def write_examples(folder: Path) -> None:
    """Write every form of the two example audits, beside the example planners."""
    for name in ("fails", "holds"):
        files = {form: folder / f"{name}.{ending}" for form, ending in ENDINGS.items()}
        run((f"{name}.py::plan_transfer", "--contract", "head-list", *EXAMPLE), files, EXAMPLES)
    kvreshard("audit", "--configured", *EXAMPLE, "--pages", str(folder / "pages"), cwd=EXAMPLES)


def run(arguments: Sequence[str], files: dict[str, Path], cwd: Path) -> None:
    """Audit once, and write each form to its file."""
    writes = [word for form, file in files.items() for word in ("--write", f"{form}={file}")]
    kvreshard("audit", *arguments, *writes, cwd=cwd)


def kvreshard(*arguments: str, cwd: Path) -> None:
    """Run the command, whose own report goes nowhere.

    Raises:
        RuntimeError: it is wrong usage, or it broke down.
    """
    done = subprocess.run(
        [str(Path(sys.executable).with_name("kvreshard")), *arguments],
        cwd=cwd,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode not in DECIDED or "Traceback" in done.stderr:
        said = done.stderr or done.stdout
        raise RuntimeError(f"kvreshard {' '.join(arguments)}: {done.returncode}\n{said}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
