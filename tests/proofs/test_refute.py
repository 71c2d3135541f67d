# SPDX-License-Identifier: Apache-2.0
"""The command `kvreshard refute`: what it prints, refuses and exits with."""

from __future__ import annotations

import json
import re
import sys
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner
from story_snapshots import FOLDER

from kvreshard.cli import main
from kvreshard.proofs.broken import BROKEN

if TYPE_CHECKING:
    from click.testing import Result

NAME = "the_lowest_rank_alone_sends"


def refute(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["refute", *arguments])


@pytest.mark.parametrize(("form", "ending"), [("terminal", "txt"), ("markdown", "md")])
def test_it_tells_the_smallest_input_and_exits_with_1(form: str, ending: str) -> None:
    result = refute(NAME, "--format", form)
    assert result.exit_code == 1
    assert result.output == (FOLDER / f"{NAME}.{ending}").read_text(encoding="utf-8")


def test_the_terminal_is_the_default() -> None:
    assert refute(NAME).output == refute(NAME, "--format", "terminal").output


def test_it_tells_a_given_input_as_json() -> None:
    result = refute(NAME, "--at", "4", "8", "1", "--format", "json")
    assert result.exit_code == 1
    assert result.output == (FOLDER / f"{NAME}_as_reported.json").read_text(encoding="utf-8")


def test_vllm_52516_in_the_terminal() -> None:
    output = refute(NAME, "--at", "4", "8", "1").output
    assert "65,536 of 262,144 bytes written, 196,608 lost" in output


def test_bytes_per_head_can_be_given() -> None:
    result = refute(NAME, "--bytes-per-head", "10", "--format", "json")
    assert json.loads(result.output)["blocks"][0]["written_bytes"] == 10


def test_the_command_in_a_story_tells_the_same_story() -> None:
    told = refute(NAME, "--bytes-per-head", "10", "--format", "json").output
    command = json.loads(told)["command"].split()[2:]
    assert refute(*command, "--format", "json").output == told


def test_an_input_that_is_handled_right_exits_with_0() -> None:
    result = refute(NAME, "--at", "4", "8", "8")
    assert result.exit_code == 0
    assert result.output == f"{NAME} breaks no invariant at H=4, P=8, D=8\n"


def test_the_list_names_every_planner() -> None:
    result = refute("--list")
    assert result.exit_code == 0
    assert re.findall(r"^(\w+)$", result.output, re.MULTILINE) == list(BROKEN)
    flat = " ".join(result.output.split())
    assert all(planner.sentence in flat for planner in BROKEN.values())
    assert max(len(line) for line in result.output.splitlines()) <= 80


def test_an_unknown_name_is_answered_with_the_names_close_ones_first() -> None:
    result = refute("every_replica_send")
    assert result.exit_code == 2
    problem, *names = result.output.split("Error: ")[1].splitlines()
    assert problem == "NAME=every_replica_send is not a broken planner; legal:"
    assert names[0].strip() == "every_replica_sends"
    assert sorted(name.strip() for name in names) == sorted(BROKEN)


def test_a_missing_name_is_answered_with_the_names() -> None:
    result = refute()
    assert result.exit_code == 2
    assert "NAME is missing; legal:\n  the_lowest_rank_alone_sends\n" in result.output


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (
            ("--at", "4", "3", "1"),
            "'--at': P=3 is not legal for H=4; legal: a divisor or a multiple of H",
        ),
        (
            ("--at", "4", "8", "6"),
            "'--at': D=6 is not legal for H=4; legal: a divisor or a multiple of H",
        ),
        (
            ("--at", "4", "1", "8"),
            f"'--at': H=4, P=1, D=8 is not an input that {NAME} is meant for; legal: D divides P",
        ),
        (("--at", "0", "1", "1"), "'--at': 0 is not in the range 1<=x<=128."),
        (("--at", "256", "1", "1"), "'--at': 256 is not in the range 1<=x<=128."),
        (("--bytes-per-head", "0"), "'--bytes-per-head': 0 is not in the range x>=1."),
        (("--format", "pdf"), "'pdf' is not one of 'terminal', 'markdown', 'json'."),
    ],
)
def test_bad_input_is_named_with_what_is_legal(arguments: tuple[str, ...], problem: str) -> None:
    result = refute(NAME, *arguments)
    assert result.exit_code == 2
    assert problem in result.output


def test_without_z3_nothing_is_decided(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "z3", None)
    for module in [name for name in sys.modules if name.startswith("kvreshard.")]:
        if "story" in module or ".spec" in module:
            monkeypatch.delitem(sys.modules, module)
    result = refute(NAME)
    assert result.exit_code == 3
    assert "pip install 'kvreshard[prove]'" in result.output
