# SPDX-License-Identifier: Apache-2.0
"""The README's Python is run, in order, and prints what the README shows."""

from __future__ import annotations

import doctest
import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from kvreshard.cli import main
from kvreshard.proofs.broken import BROKEN

README = Path(__file__).resolve().parent.parent / "README.md"
LEDGER = README.parent / "proofs" / "ledger.json"
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


def test_the_funnel_shown_is_that_of_the_ledger() -> None:
    shown = dict(re.findall(r"^  ([a-z][a-z -]*[a-z]) +(\d+)$", README.read_text("utf-8"), re.M))
    ledger = json.loads(LEDGER.read_text("utf-8"))
    proved = Counter(row["scope"] for row in ledger["obligations"] if row["result"] == "proved")
    summary = ledger["summary"]
    assert {name: int(count) for name, count in shown.items()} == {
        "declared": summary["obligations"],
        "in scope": summary["obligations"],
        "non-vacuous": summary["obligations"],
        "proved unbounded": proved["unbounded"],
        "proved bounded": proved["bounded"],
        "scenarios satisfied": summary["results"]["satisfied"],
        "refuted or vacuous": 0,
        "unknown": 0,
        "distinct statements": summary["distinct_statements"],
        "orphans": 0,
    }


def test_what_the_second_solver_said_is_shown_as_the_ledger_has_it() -> None:
    shown = re.findall(r"^  (as proved|bounded) +(\d.*)$", README.read_text("utf-8"), re.M)
    counted = json.loads(LEDGER.read_text("utf-8"))["summary"]["second_solver"]
    assert shown == [
        (group.replace("_", " "), ", ".join(f"{count} {result}" for result, count in said.items()))
        for group, said in counted.items()
    ]


def test_the_refutation_shown_is_what_the_command_prints() -> None:
    shown = re.compile(r"^\$ kvreshard (refute .*)\n((?:.*\n)*?)```$", re.MULTILINE)
    block = shown.search(README.read_text("utf-8"))
    assert block
    printed = CliRunner().invoke(main, block[1].split()).output
    for part in block[2].split("...\n"):
        assert part in printed


@pytest.mark.parametrize("document", ["README.md", "CHANGELOG.md"])
def test_the_broken_planners_are_counted_right(document: str) -> None:
    text = " ".join((README.parent / document).read_text("utf-8").split())
    reported = sum(bool(planner.seen_in) for planner in BROKEN.values())
    counted = re.search(r"(\d+) (?:broken )?planners[a-z ]*, (\d+) of them restated", text)
    assert counted
    assert (int(counted[1]), int(counted[2])) == (len(BROKEN), reported)


def test_the_table_shown_counts_the_rows_of_the_ledger() -> None:
    rows = json.loads(LEDGER.read_text("utf-8"))["obligations"]
    counted = Counter((row["invariant"], row["scope"]) for row in rows if row["invariant"])
    shown = re.findall(r"^(\w+) +(\d+) of (\d+) +(\d+) of (\d+)$", README.read_text("utf-8"), re.M)
    assert {name for name, *_ in shown} == {name for name, _ in counted}
    for name, *numbers in shown:
        unbounded, bounded = counted[name, "unbounded"], counted[name, "bounded"]
        assert [int(number) for number in numbers] == [unbounded, unbounded, bounded, bounded]
