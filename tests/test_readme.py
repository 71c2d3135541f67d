# SPDX-License-Identifier: Apache-2.0
"""The README's Python is run, in order, and prints what the README shows."""

from __future__ import annotations

import doctest
import re
from pathlib import Path
from typing import Any

import pytest

README = Path(__file__).resolve().parent.parent / "README.md"
BLOCK = re.compile(r"^```(python|pycon)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def examples() -> list[tuple[int, str, str]]:
    text = README.read_text(encoding="utf-8")
    return [
        (text.count("\n", 0, match.start(2)), match[1], match[2]) for match in BLOCK.finditer(text)
    ]


def test_every_python_block_runs_and_prints_what_it_shows() -> None:
    # One namespace for the whole page: a reader types the blocks one after the other.
    names: dict[str, Any] = {}
    for line, kind, source in examples():
        if kind == "python":
            exec(compile("\n" * line + source, str(README), "exec"), names)
            continue
        test = doctest.DocTestParser().get_doctest(source, names, README.name, str(README), line)
        assert test.examples, f"README.md:{line}: a pycon block without a prompt"
        # The runner clears the namespace of a test when it is done, unless told not to.
        test.globs = names
        report: list[str] = []
        runner = doctest.DocTestRunner(verbose=False, optionflags=doctest.ELLIPSIS)
        result = runner.run(test, out=report.append, clear_globs=False)
        assert result.failed == 0, "".join(report)


@pytest.mark.parametrize(
    "name",
    [
        "plan_transfer",
        "expected_senders",
        "expected_receivers",
        "validate_region_lengths",
        "compute_sender_transfer_plan",
    ],
)
def test_every_public_function_has_an_example(name: str) -> None:
    assert any(re.search(rf"\b{name}\(", source) for _, _, source in examples())
