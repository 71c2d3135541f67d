# SPDX-License-Identifier: Apache-2.0
"""The emitted file as a file: what it imports, how it is laid out, how fast it loads."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from kvreshard.generated import planner

FILE = Path(planner.__file__)
VENDORED_RULES = "E,F,UP,B,ISC,SIM,I,G"


def test_it_imports_neither_a_solver_nor_an_array_library() -> None:
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-c", "import kvreshard.generated.planner"],
        capture_output=True,
        text=True,
        check=True,
    )
    imported = {line.rsplit("|", 1)[-1].strip() for line in done.stderr.splitlines()}
    assert "kvreshard.generated.planner" in imported
    heavy = {"z3", "torch", "numpy", "jinja2", "dataclasses"}
    assert not {name.split(".")[0] for name in imported} & heavy


def test_a_copy_runs_on_its_own(tmp_path: Path) -> None:
    copy = tmp_path / "vendored_planner.py"
    copy.write_bytes(FILE.read_bytes())
    done = subprocess.run(
        [
            sys.executable,
            "-I",
            "-S",
            "-c",
            (
                f"import sys; sys.path.insert(0, {str(tmp_path)!r}); import vendored_planner as v; "
                "print(v.compute_sender_transfer_plan(2, 8, 0, 1, 65536, 262144, True, 4))"
            ),
        ],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == "(True, 0, 65536, 65536)"


def test_it_has_a_header_and_no_assertions() -> None:
    text = FILE.read_text(encoding="utf-8")
    first, second = text.splitlines()[:2]
    assert first == "# SPDX-License-Identifier: Apache-2.0"
    assert second.startswith("# DO NOT EDIT.")
    assert "`make generate`" in second
    assert not any(isinstance(node, ast.Assert) for node in ast.walk(ast.parse(text)))


def test_the_interface_is_what_it_was() -> None:
    assert planner.__all__ == [
        "TransferPlan",
        "compute_sender_transfer_plan",
        "expected_receivers",
        "expected_senders",
        "plan_transfer",
        "validate_region_lengths",
    ]
    assert planner.TransferPlan._fields == (
        "sends",
        "src_head_offset",
        "dst_head_offset",
        "head_count",
    )


@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param(["check"], id="check"),
        pytest.param(["format", "--check"], id="format"),
        pytest.param(["check", "--isolated", "--select", VENDORED_RULES], id="vendored-check"),
        pytest.param(["format", "--check", "--isolated"], id="vendored-format"),
    ],
)
def test_linters_and_formatters_leave_it_alone(arguments: list[str]) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "ruff", *arguments, "--no-cache", str(FILE)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
