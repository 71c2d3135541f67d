# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
import z3
from click.testing import CliRunner

from kvreshard.cli import main
from kvreshard.codegen import check, emit, files
from kvreshard.proofs.ledger import LEDGER_PATH
from kvreshard.proofs.question import smt2

if TYPE_CHECKING:
    from pathlib import Path

    from click.testing import Result

COMMANDS = (
    "audit",
    "check",
    "cores",
    "demo",
    "diff",
    "generate",
    "mutate",
    "plan",
    "prove",
    "prove-cvc5",
    "prove-seeds",
    "refute",
    "verify-vendored",
)
EMITTED = emit.planner_path()


@pytest.fixture(autouse=True)
def _own_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("KVRESHARD_CACHE", str(tmp_path / "cache"))


@pytest.fixture(autouse=True)
def no_ledger_written(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Keep the ledger of the checkout as it is, and list what would have been written."""
    written: list[object] = []
    monkeypatch.setattr("kvreshard.proofs.ledger.write", written.append)
    return written


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, arguments)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help(name: str) -> None:
    result = run(name, "--help")
    assert result.exit_code == 0
    assert result.output.startswith(f"Usage: main {name} ")


@pytest.mark.parametrize("flag", ["--help", "-h"])
def test_the_help_lists_the_commands_and_the_exit_codes(flag: str) -> None:
    result = run(flag)
    assert result.exit_code == 0
    assert sorted(main.commands) == list(COMMANDS)
    listed = result.output.split("Commands:")[1].splitlines()[1:]
    assert [line.split()[0] for line in listed if line[2:3].strip()] == list(COMMANDS)
    assert "0 it holds, 1 it does not, 2 wrong usage, 3 not decided" in result.output


@pytest.mark.parametrize(
    "arguments",
    [
        ["prove", "--jobs", "0"],
        ["prove", "--no-such-option"],
        ["check", "--enumerate-to", "0"],
        ["verify-vendored"],
        ["verify-vendored", "no_such_file.py"],
        ["no-such-command"],
    ],
    ids=" ".join,
)
def test_wrong_usage_exits_with_2(arguments: list[str]) -> None:
    result = run(*arguments)
    assert result.exit_code == 2
    assert "Usage: " in result.output


# prove


def test_a_filter_that_matches_nothing_fails(no_ledger_written: list[object]) -> None:
    result = run("prove", "--filter", "nothing_has_this_name")
    assert result.exit_code == 1
    assert "no obligation has 'nothing_has_this_name' in its name" in result.output
    assert "holds" not in result.output
    assert no_ledger_written == []


def test_a_filtered_run_proves_and_leaves_the_ledger_alone(
    no_ledger_written: list[object],
) -> None:
    before = LEDGER_PATH.read_bytes() if LEDGER_PATH.exists() else None
    result = run("prove", "--filter", "lemma/exact_division", "--no-cache", "--jobs", "1")
    assert result.exit_code == 0, result.output
    assert "chosen obligations holds" in result.output
    assert "in scope                1" in result.output
    assert no_ledger_written == []
    assert (LEDGER_PATH.read_bytes() if LEDGER_PATH.exists() else None) == before


def test_a_filtered_run_includes_the_lemmas_it_rests_on_and_prints_json_alone() -> None:
    wanted = "lemma/division_forgets_a_multiple"
    result = run("prove", "--filter", wanted, "--json", "--jobs", "1")
    assert result.exit_code == 0, result.output
    ledger = json.loads(result.stdout)
    assert ledger["schema"] == 1
    assert {row["name"] for row in ledger["obligations"]} == {
        "lemma/multiplication_keeps_order",
        "lemma/division_brackets",
        "lemma/a_bracketed_quotient_is_the_quotient",
        wanted,
    }
    assert {row["result"] for row in ledger["obligations"]} == {"proved"}
    assert "chosen obligations holds" in result.stderr


def test_the_export_can_be_read_by_a_solver(tmp_path: Path) -> None:
    folder = tmp_path / "new" / "smt2"
    wanted = "six_heads_move_from_three_ranks_to_two"
    assert run("prove", "--smt2", str(folder), "--filter", wanted).exit_code == 0
    result = run("prove", "--smt2", str(folder), "--filter", "not_empty/split_to_split")
    assert result.output == f"4 obligations written to {folder}\n"
    results = {}
    for path in folder.iterdir():
        solver = z3.Solver()
        solver.from_string(path.read_text(encoding="utf-8"))
        assert solver.assertions()
        results[path.name] = str(solver.check())
    only = "only_a_holder_of_the_head_sends_it.not_empty.split_to_split"
    assert results == {
        f"{wanted}.split_to_split_indivisible.smt2": "sat",
        f"{only}_divisible.bounded.smt2": "unsat",
        f"{only}_divisible.unbounded.smt2": "unsat",
        f"{only}_indivisible.bounded.smt2": "unsat",
        f"{only}_indivisible.unbounded.smt2": "unsat",
    }


def test_an_export_of_nothing_fails(tmp_path: Path) -> None:
    result = run("prove", "--smt2", str(tmp_path), "--filter", "nothing_has_this_name")
    assert result.exit_code == 1
    assert result.output == f"0 obligations written to {tmp_path}\n"


def test_an_export_is_the_text_that_is_proved(tmp_path: Path) -> None:
    run("prove", "--smt2", str(tmp_path), "--filter", "lemma/exact_division")
    (path,) = tmp_path.glob("*.smt2")
    a, b = z3.Ints("a b")
    quotient = a / b
    expected = smt2([b >= 1, a % b == 0, z3.Not(z3.And(a == quotient * b))])
    comment, text = path.read_text(encoding="utf-8").split("\n", 1)
    assert comment == "; Where nothing remains, the quotient times the divisor is the dividend."
    assert text == expected


# generate


def test_a_refusal_to_generate_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    before = EMITTED.read_bytes()
    monkeypatch.setattr(emit, "load_ledger", lambda: {"schema": 1, "obligations": []})
    result = run("generate")
    assert result.exit_code == 1
    assert result.output == (
        "Error: nothing is emitted:\n  the ledger is missing or empty: run `make prove`\n"
    )
    assert EMITTED.read_bytes() == before


# check and verify-vendored


@pytest.fixture
def copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a copy of the emitted module, which is checked in its place."""
    twin = EMITTED.with_name("planner_numpy.py")
    (tmp_path / twin.name).write_bytes(twin.read_bytes())
    made = tmp_path / "planner.py"
    text = EMITTED.read_text(encoding="utf-8")
    made.write_text(text, encoding="utf-8", newline="\n")
    monkeypatch.setattr(check, "planner_path", lambda: made)
    monkeypatch.setattr(files, "generated_folder", lambda: tmp_path)
    # That the text is what the ledger gives is another test's business.
    monkeypatch.setattr(emit, "load_ledger", dict)
    monkeypatch.setattr(files, "render_generated", lambda _: {"planner.py": text})
    return made


def edit(path: Path, old: str, new: str) -> int:
    """Replace a text that occurs once, and return the number of its line."""
    text = path.read_text(encoding="utf-8")
    assert text.count(old) == 1
    path.write_text(text.replace(old, new), encoding="utf-8", newline="\n")
    return text[: text.index(old)].count("\n") + 1


@pytest.mark.usefixtures("copy")
def test_the_module_as_it_lies_passes_the_check() -> None:
    result = run("check", "--enumerate-to", "3")
    assert result.exit_code == 0, result.output
    text = " ".join(result.output.split())
    proved = "formula functions proved equal to the specification"
    assert f"translation: planner.py: 21 {proved} " in text
    assert (
        f"translation: planner_numpy.py: 19 {proved}, and to fit 64 bits within the bounds " in text
    )
    assert "freshness: generated/ is what the specification gives" in result.output
    assert ", 0 violations" in " ".join(result.output.split())


def test_an_edit_is_seen_by_translation_freshness_and_enumeration(copy: Path) -> None:
    line = edit(
        copy,
        "return overlap_end_value - overlap_start_value",
        "return overlap_end_value - overlap_start_value + 1",
    )
    result = run("check", "--enumerate-to", "2")
    text = " ".join(result.output.split())
    assert result.exit_code == 1
    assert "translation: planner.py: copied_head_count (line " in text
    assert f"freshness: planner.py is stale, run `make generate`; line {line}: " in text
    assert "enumeration: " in text
    assert "every_read_is_inside_the_producer_block does not hold" in text
    assert "smallest: H=1 heads, producer TP P=1, consumer TP D=1" in text


def test_an_edited_comment_is_stale_and_nothing_else(copy: Path) -> None:
    copy.write_text(copy.read_text(encoding="utf-8") + "# mine\n", encoding="utf-8", newline="\n")
    result = run("check", "--enumerate-to", "2")
    assert result.exit_code == 1
    assert "freshness: planner.py is stale" in result.output
    assert "copied_head_count (line" not in result.output
    assert "does not hold" not in result.output


def test_a_module_that_does_not_load_is_reported(copy: Path) -> None:
    copy.write_text("raise RuntimeError('broken')\n", encoding="utf-8")
    result = run("check", "--enumerate-to", "2")
    assert result.exit_code == 1
    assert "enumeration: the module does not load: RuntimeError('broken')" in result.output


def test_a_vendored_copy_is_recognised(tmp_path: Path) -> None:
    copy = tmp_path / "vendored.py"
    copy.write_bytes(EMITTED.read_bytes())
    result = run("verify-vendored", str(copy))
    assert result.exit_code == 0
    assert result.output.startswith(f"{copy} is the emitted planner, for spec ")
    copy.write_bytes(copy.read_bytes() + b"# mine\n")
    result = run("verify-vendored", str(copy))
    assert result.exit_code == 1
    assert result.output.startswith(f"{copy} is not the emitted planner, ")


# Without the extra


@pytest.mark.parametrize(
    ("missing", "name"),
    [("z3", "prove"), ("z3", "generate"), ("z3", "check"), ("jinja2", "generate")],
)
def test_a_missing_package_is_named_with_its_extra(missing: str, name: str) -> None:
    program = (
        f"import sys; sys.modules[{missing!r}] = None; "
        f"from kvreshard.cli import main; main([{name!r}])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert done.returncode == 3
    assert done.stderr == (
        f"Error: this needs {missing}, which comes with the extra `prove`: "
        "pip install 'kvreshard[prove]', or `make prove` in a checkout\n"
    )


def test_a_copy_can_be_verified_without_the_extra() -> None:
    program = (
        "import sys; sys.modules['z3'] = sys.modules['jinja2'] = None; "
        f"from kvreshard.cli import main; main(['verify-vendored', {str(EMITTED)!r}])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_smt2_and_json_do_not_go_together(tmp_path: Path) -> None:
    result = CliRunner().invoke(main, ["prove", "--json", "--smt2", str(tmp_path)])
    assert result.exit_code == 2
    assert "--smt2 proves nothing" in result.output
    assert list(tmp_path.iterdir()) == []
