# SPDX-License-Identifier: Apache-2.0
"""The GitHub Action and the pre-commit hook: their shape, and the shell step run as it is."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from kvreshard.proofs.audit.annotations import workflow_commands

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "tools" / "audit_action.sh"

needs_shell = pytest.mark.skipif(
    shutil.which("bash") is None or shutil.which("git") is None, reason="no bash or no git"
)

# Stands for the command line: notes how it was called, and answers by the target's name.
COMMAND = """\
#!{python}
import json, os, sys
words = sys.argv[1:]
given, files = [], {{}}
while words:
    word = words.pop(0)
    if word == "--format":
        form = words.pop(0)
    elif word == "--output":
        files[form] = words.pop(0)
    elif word == "--write":
        name, _, file = words.pop(0).partition("=")
        files[name] = file
    else:
        given.append(word)
with open(os.environ["CALLS"], "a") as calls:
    calls.write(json.dumps(given) + "\\n")
words = given
text = " ".join(words)
if "silent" in text:
    sys.exit(0)
if "broken" in text:
    raise RuntimeError
results = [
    {{
        "ruleId": "no_two_writes_overlap",
        "level": "error",
        "message": {{"text": "100% of\\nit {{{{x}}}}"}},
        "locations": [
            {{
                "physicalLocation": {{
                    "artifactLocation": {{"uri": "src/a%20b,c.py"}},
                    "region": {{"startLine": 7}},
                }}
            }}
        ],
    }}
]
for form, output in files.items():
    content = f"# {{form}} of {{words[-1]}}"
    if form == "sarif":
        content = json.dumps({{"runs": [{{"results": results if "fails" in text else []}}]}})
    with open(output, "w") as file:
        file.write(content)
sys.exit(1 if "fails" in text else 3 if "undecided" in text else 0)
"""


@dataclass
class Step:
    """What a run of the step left behind."""

    code: int
    log: str
    calls: list[list[str]]
    outputs: dict[str, str]
    summary: str
    temporary: Path


def run_step(folder: Path, **inputs: str) -> Step:
    """Run the step in a folder, with a stand-in for the command line."""
    outside = folder.parent / f"{folder.name}-outside"
    (outside / "bin").mkdir(parents=True)
    command = outside / "bin" / "kvreshard"
    command.write_text(COMMAND.format(python=sys.executable), encoding="utf-8")
    command.chmod(0o755)
    environment = {
        **os.environ,
        "PATH": f"{outside}/bin:{Path(sys.executable).parent}:{os.environ['PATH']}",
        "RUNNER_TEMP": str(outside),
        "GITHUB_OUTPUT": str(outside / "output"),
        "GITHUB_STEP_SUMMARY": str(outside / "summary"),
        "CALLS": str(outside / "calls"),
        **dict.fromkeys(("TARGETS", "CONTRACT", "REQUIRE", "FORMAT", "BASE"), ""),
        "EXEC": "false",
        **inputs,
    }
    done = subprocess.run(
        ["bash", str(SCRIPT)],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )

    def text(name: str) -> str:
        path = outside / name
        return path.read_text(encoding="utf-8") if path.exists() else ""

    return Step(
        code=done.returncode,
        log=done.stdout + done.stderr,
        calls=[json.loads(line) for line in text("calls").splitlines()],
        outputs=dict(line.split("=", 1) for line in text("output").splitlines()),
        summary=text("summary"),
        temporary=outside,
    )


@needs_shell
def test_targets_are_audited_one_by_one_and_the_gravest_counts(tmp_path: Path) -> None:
    step = run_step(
        tmp_path,
        TARGETS="  a.py::holds \n\nb.py::fails\nc.py::undecided\n",
        CONTRACT="head-list",
        REQUIRE="range",
        EXEC="true",
        FORMAT="html",
    )
    given = ["--require", "range", "--exec", "--contract", "head-list", "--"]
    assert step.calls == [
        ["audit", *given, target] for target in ("a.py::holds", "b.py::fails", "c.py::undecided")
    ]
    assert (step.code, step.outputs["verdict"]) == (1, "fails")
    sarif = Path(step.outputs["sarif"])
    assert sorted(file.name for file in sarif.iterdir()) == ["1.sarif", "2.sarif", "3.sarif"]
    assert step.summary.count("# markdown of ") == 3
    assert (sarif.parent / "2.html").read_text().startswith("# html of")
    assert (
        "::error title=no_two_writes_overlap,file=src/a b%2Cc.py,line=7::100%25 of%0Ait {x}"
        in step.log.splitlines()
    )


@needs_shell
@pytest.mark.parametrize(
    ("targets", "code", "verdict"),
    [
        ("holds", 0, "holds"),
        ("fails", 1, "fails"),
        ("broken", 2, "wrong usage"),
        ("undecided", 3, "not decided"),
        ("holds undecided holds", 3, "not decided"),
        ("undecided broken holds", 2, "wrong usage"),
        ("broken undecided", 2, "wrong usage"),
        ("fails broken undecided", 1, "fails"),
        ("undecided fails", 1, "fails"),
    ],
)
def test_the_exit_code_is_the_gravest(
    tmp_path: Path, targets: str, code: int, verdict: str
) -> None:
    step = run_step(tmp_path, TARGETS=targets.replace(" ", "\n"), CONTRACT="c")
    assert (step.code, step.outputs["verdict"]) == (code, verdict)
    assert ("::error title=kvreshard audit::no report" in step.log) is ("broken" in targets)


@needs_shell
@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ({"TARGETS": "a.py::f"}, "contract is missing; legal: the name or path of one"),
        ({"EXEC": "yes"}, "exec=yes; legal: true, false"),
    ],
)
def test_wrong_inputs_are_refused(tmp_path: Path, inputs: dict[str, str], message: str) -> None:
    step = run_step(tmp_path, **inputs)
    assert step.code == 2
    assert f"::error title=kvreshard audit::{message}" in step.log
    assert step.calls == []


@needs_shell
def test_an_input_is_never_taken_for_shell_text(tmp_path: Path) -> None:
    marker = tmp_path / "marker"
    hostile = f"$(touch {marker})`touch {marker}`; touch {marker}"
    step = run_step(tmp_path, TARGETS=hostile, CONTRACT=hostile, REQUIRE=hostile)
    assert step.calls[0][1:6] == ["--require", hostile, "--contract", hostile, "--"]
    assert not marker.exists()


def git(folder: Path, *words: str) -> str:
    done = subprocess.run(
        ["git", "-c", "user.name=a", "-c", "user.email=a@b", *words],
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip()


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository with two commits; the second adds, changes, removes and renames a file."""
    folder = tmp_path / "repository"
    folder.mkdir()
    git(folder, "init", "--quiet")
    for name in ("changed.py", "gone.py", "same.py"):
        (folder / name).write_text(f"# {name}\n" * 9)
    git(folder, "add", ".")
    git(folder, "commit", "--quiet", "--message", "first")
    (folder / "changed.py").write_text("2\n")
    (folder / "gone.py").unlink()
    (folder / "a new file.py").write_text("3\n")
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message", "second")
    return folder


@needs_shell
def test_what_changed_since_the_base_is_handed_on(repository: Path) -> None:
    step = run_step(repository, BASE=git(repository, "rev-parse", "HEAD~1"))
    assert step.calls[0] == [
        "audit",
        "--configured",
        "--changed",
        "--",
        "a new file.py",
        "changed.py",
        "gone.py",
    ]
    assert (step.code, step.outputs["verdict"]) == (0, "holds")


@needs_shell
@pytest.mark.parametrize("base", ["", "0" * 40, "--output=x"])
def test_without_the_base_everything_is_audited(repository: Path, base: str) -> None:
    step = run_step(repository, BASE=base)
    assert step.calls[0] == ["audit", "--configured"]
    assert "everything configured is audited" in step.log


@needs_shell
def test_where_nothing_changed_nothing_is_audited_and_it_is_said(repository: Path) -> None:
    step = run_step(repository, BASE=git(repository, "rev-parse", "HEAD"))
    assert (step.code, step.outputs["verdict"], step.calls) == (0, "nothing to audit", [])
    assert step.summary == "No configured planner is among the changed files.\n"


@needs_shell
def test_where_no_planner_changed_it_is_said(repository: Path) -> None:
    (repository / "silent.py").write_text("4\n")
    git(repository, "add", ".")
    git(repository, "commit", "--quiet", "--message", "third")
    step = run_step(repository, BASE=git(repository, "rev-parse", "HEAD~1"))
    assert (step.code, step.outputs["verdict"]) == (0, "nothing to audit")


def test_annotations_leave_out_what_is_no_failure() -> None:
    results: list[dict[str, Any]] = [
        {"kind": "pass", "level": "none", "message": {"text": "held"}},
        {"kind": "open", "message": {"text": "not decided"}},
        {"level": "warning", "ruleId": "r", "message": {"text": "stopped"}},
        {"level": "note", "ruleId": "r", "message": {"text": "noted"}},
        {
            "ruleId": "r",
            "message": {"text": "two lines"},
            "locations": [
                {
                    "physicalLocation": {
                        "artifactLocation": {"uri": "a.py"},
                        "region": {"startLine": 1, "endLine": 2},
                    }
                }
            ],
        },
    ]
    assert list(workflow_commands({"runs": [{"results": results}, {}]})) == [
        "::warning title=r::stopped",
        "::notice title=r::noted",
        "::warning title=r,file=a.py,line=1,endLine=2::two lines",
    ]


# Shapes


def test_the_action_has_the_shape_of_a_composite_action() -> None:
    yaml = pytest.importorskip("yaml", reason="reading YAML takes PyYAML")
    action = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
    assert set(action) == {"name", "description", "inputs", "outputs", "runs"}
    assert action["runs"]["using"] == "composite"
    for entry in action["inputs"].values():
        assert entry["description"]
        assert isinstance(entry["default"], str)
    steps = action["runs"]["steps"]
    assert all("uses" in step or {"run", "shell"} <= set(step) for step in steps)
    by_id = {step["id"]: step for step in steps if "id" in step}
    for name, output in action["outputs"].items():
        assert output["value"] == f"${{{{ steps.audit.outputs.{name} }}}}"
    assert set(by_id) == {"audit"}
    used = set(re.findall(r"inputs\.([\w-]+)", json.dumps(action)))
    assert used == set(action["inputs"])


def test_no_input_reaches_a_shell_but_through_the_environment() -> None:
    text = (ROOT / "action.yml").read_text(encoding="utf-8")
    runs = re.findall(r"^ +run: (.*)$", text, re.MULTILINE)
    assert len(runs) == text.count("shell: bash") == 2
    assert not [line for line in runs if "${{" in line or line in {"|", ">"}]
    assert runs[1] == 'bash "$KVRESHARD/tools/audit_action.sh"'


def test_the_script_reads_what_the_action_gives_it() -> None:
    action = (ROOT / "action.yml").read_text(encoding="utf-8")
    script = SCRIPT.read_text(encoding="utf-8")
    given = set(re.findall(r"^        ([A-Z]+): ", action, re.MULTILINE)) - {"KVRESHARD"}
    said = re.search(r"Reads ([A-Z, ]+) and ([A-Z]+) from", script)
    assert said
    assert given == {*said[1].split(", "), said[2]}
    assert all(f"${name}" in script or f"${{{name}" in script for name in given)


def test_the_hook_has_the_shape_of_a_hook() -> None:
    yaml = pytest.importorskip("yaml", reason="reading YAML takes PyYAML")
    (hook,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))
    assert hook["id"] == "kvreshard-audit"
    assert hook["language"] == "python"
    assert hook["entry"].split()[:2] == ["kvreshard", "audit"]
    assert hook["additional_dependencies"] == [".[prove]"]


def test_the_document_names_every_input_and_output() -> None:
    action = (ROOT / "action.yml").read_text(encoding="utf-8")
    document = (ROOT / "docs" / "ci.md").read_text(encoding="utf-8")
    inputs, outputs = action.split("\noutputs:\n")
    for block in (inputs.split("\ninputs:\n")[1], outputs.split("\nruns:\n")[0]):
        names = re.findall(r"^  ([\w-]+):$", block, re.MULTILINE)
        assert names
        assert [name for name in names if f"`{name}`" not in document] == []
    assert "kvreshard-audit" in document
