# SPDX-License-Identifier: Apache-2.0
"""`kvreshard audit` as a reviewer runs it, on small planners in files."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner, Result

from kvreshard.cli import main

if TYPE_CHECKING:
    from pathlib import Path

# Head by head: each consumer slot is sent by the first of the ranks that hold its head.
RIGHT = """\
def plan(
    total_num_kv_heads, producer_tp_size, producer_tp_rank, consumer_tp_size, consumer_tp_rank
):
    mine = producer_tp_rank * total_num_kv_heads // producer_tp_size
    theirs = consumer_tp_rank * total_num_kv_heads // consumer_tp_size
    start = max(mine, theirs)
    end = min(
        mine + max(total_num_kv_heads // producer_tp_size, 1),
        theirs + max(total_num_kv_heads // consumer_tp_size, 1),
    )
    if start >= end or producer_tp_rank % max(producer_tp_size // total_num_kv_heads, 1):
        return []
    return [(start - mine, start - theirs, end - start)]
"""
# Every replica of a head sends it.
DOUBLED = RIGHT.replace(" or producer_tp_rank % max(producer_tp_size // total_num_kv_heads, 1)", "")
PARAMETERS = RIGHT[RIGHT.index("(") : RIGHT.index(":")]
# Few of the cases that are proved.
FEW = ("--where", "P == D", "--sweep-to", "8")


def run(*words: str | Path) -> Result:
    return CliRunner().invoke(main, ["audit", *map(str, words)])


def written(folder: Path, source: str, name: str = "planner.py") -> str:
    (folder / name).write_text(source, encoding="utf-8")
    return f"{folder / name}::plan"


def test_a_right_planner_is_proved_for_all_sizes(tmp_path: Path) -> None:
    result = run(written(tmp_path, RIGHT), "--contract", "head-list", *FEW)
    assert result.exit_code == 0, result.output
    assert "proved for all sizes" in result.output
    assert "proved in a range" not in result.output


def test_a_domain_beyond_the_proof_is_proved_in_a_range(tmp_path: Path) -> None:
    where = ("--where", "H == 6 and P == 3", "--range", "6", "--sweep-to", "6")
    target = written(tmp_path, RIGHT)
    result = run(target, "--contract", "head-list", *where)
    assert result.exit_code == 0, result.output
    assert "proved in a range" in result.output
    demanding = run(target, "--contract", "head-list", *where, "--require", "all-sizes")
    assert demanding.exit_code == 3
    assert "NOT DECIDED" in demanding.output


def test_a_wrong_planner_is_told_at_its_smallest_input(tmp_path: Path) -> None:
    where = ("--where", "P % D == 0 and D <= H <= P", "--sweep-to", "8")
    result = run(written(tmp_path, DOUBLED), "--contract", "head-list", *where, "--format", "json")
    assert result.exit_code == 1
    report = json.loads(result.stdout)
    story = report["findings"][0]["story"]
    sizes = [story["input"][f"{n}"] for n in SIZES]
    assert sizes == [1, 2, 1]
    assert story["invariant"]["name"] == "every_consumer_head_is_covered_exactly_once"
    verdicts = {one["name"]: one["verdict"] for one in report["invariants"]}
    assert verdicts["every_written_byte_holds_the_same_head_token_and_position"] == "holds"


SIZES = ("total_num_kv_heads", "producer_tp_size", "consumer_tp_size")


@pytest.mark.parametrize(
    ("body", "line", "what"),
    [
        ("    while True:\n        pass\n", 5, "a while statement"),
        ("    return [(int(producer_tp_size / 2), 0, 1)]\n", 5, "which gives a float"),
        ("    return nowhere.plan(producer_tp_size)\n", 5, "nowhere"),
    ],
)
def test_what_is_not_known_is_not_decided_and_its_line_is_named(
    tmp_path: Path, body: str, line: int, what: str
) -> None:
    target = written(tmp_path, f"import nowhere\ndef plan{PARAMETERS}:\n{body}")
    result = run(target, "--contract", "head-list", "--format", "markdown")
    assert result.exit_code == 3, result.output
    assert f"planner.py:{line}" in result.output
    assert what in result.output


HOSTILE = """\
import os
os.system("touch {marker}")
memory = "x" * 10 ** 11
while True:
    pass
def plan{parameters}:
    {body}
"""


@pytest.mark.parametrize(
    ("body", "limit"),
    [
        ("while True: pass", "time"),
        ("return [(0, 0, len(bytearray(10 ** 11)))]", "memory"),
        ("return __import__('os').system('touch {marker}')", ""),
    ],
)
def test_a_hostile_file_is_not_run_unless_asked_and_is_bounded_then(
    tmp_path: Path, body: str, limit: str
) -> None:
    marker = tmp_path / "marker"
    source = HOSTILE.format(
        marker=marker, parameters=PARAMETERS, body=body.replace("{marker}", str(marker))
    )
    target = written(tmp_path, source)
    assert run(target, "--contract", "head-list").exit_code == 3
    result = run(target, "--contract", "head-list", "--exec", "--seconds", "2", "--memory", "256")
    assert result.exit_code == 3, result.output
    assert f"execution stopped: {''}" in " ".join(result.output.split())
    assert limit in result.output
    assert not marker.exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "0 targets; legal: one, spelled"),
        (("{target}",), "--contract is missing; legal: "),
        (("{target}", "--contract", "hed-list"), "contract=hed-list; legal: "),
        (("{target}x", "--contract", "head-list"), "planx"),
        (("{target}", "--contract", "vllm-mooncake"), "does not fit plan"),
        (("{target}", "--contract", "head-list", "--where", "P %"), "where=P %; legal: "),
        (("{target}", "--contract", "head-list", "--where", "P"), "where=P; legal: "),
        (("{target}", "--contract", "head-list", "--where", "H < 0"), "no sizes up to"),
        (("{target}", "--contract", "head-list", "--at", "4", "3", "1"), "P=3 is not legal"),
        (("{target}", "--contract", "head-list", "--changed"), "--changed is for --configured"),
        (("--configured", "--contract", "head-list"), "--configured takes no target"),
        (("{target}", "--contract", "head-list", "--write", "x=y"), "--write x=y; legal: "),
    ],
)
def test_wrong_usage_names_the_field_and_what_is_legal(
    tmp_path: Path, words: tuple[str, ...], said: str
) -> None:
    target = written(tmp_path, RIGHT)
    result = run(*(word.replace("{target}", target) for word in words))
    assert result.exit_code == 2, result.output
    assert said in " ".join(result.output.split())
    assert "Traceback" not in result.output


def test_each_form_is_written_to_its_file(tmp_path: Path) -> None:
    forms = {"markdown": "md", "html": "html", "json": "json", "sarif": "sarif", "junit": "xml"}
    more = [w for form, end in forms.items() for w in ("--write", f"{form}={tmp_path}/r.{end}")]
    pages = tmp_path / "pages"
    result = run(
        written(tmp_path, DOUBLED), "--contract", "head-list", *FEW, *more, "--pages", pages
    )
    assert result.exit_code == 1
    assert all((tmp_path / f"r.{end}").stat().st_size for end in forms.values())
    assert sorted(page.name for page in pages.iterdir()) == ["1-plan.html", "index.html"]
    assert "1-plan.html" in (pages / "index.html").read_text(encoding="utf-8")


def test_the_configuration_says_what_is_audited(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    written(tmp_path, DOUBLED)
    (tmp_path / ".kvreshard.toml").write_text(
        '[[audit]]\ntarget = "planner.py::plan"\ncontract = "head-list"\n', encoding="utf-8"
    )
    few = ("--where", "D == 1 and H == 1", "--sweep-to", "4")
    untouched = run("--configured", "--changed", "other.py")
    assert (untouched.exit_code, untouched.stdout) == (0, "")
    assert "No configured planner" in untouched.stderr
    assert run("--configured", "--changed", "planner.py", *few).exit_code == 1


def test_the_contracts_are_listed() -> None:
    result = CliRunner().invoke(main, ["audit", "--list-contracts"])
    assert result.exit_code == 0
    assert "vllm-mooncake\n  vLLM's MooncakeConnector" in result.output
