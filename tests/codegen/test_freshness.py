# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from fixture_ledger import fixture_ledger

from kvreshard.codegen import emit
from kvreshard.codegen.files import write_generated
from kvreshard.codegen.freshness import stale_files, verify_vendored
from kvreshard.codegen.validate import validate_translation

if TYPE_CHECKING:
    from pathlib import Path

EMITTED = emit.planner_path()


def test_the_checked_in_module_is_fresh() -> None:
    assert [str(stale) for stale in stale_files()] == []


@pytest.fixture
def written(tmp_path: Path) -> Path:
    """Return a freshly written module in a place of its own."""
    write_generated(fixture_ledger(), tmp_path)
    return tmp_path / "planner.py"


def test_what_was_just_written_is_fresh(written: Path) -> None:
    assert written.exists()
    assert stale_files(fixture_ledger(), written.parent) == []


def test_one_character_makes_it_stale_and_invalid(written: Path) -> None:
    text = written.read_text(encoding="utf-8")
    edited = text.replace("return overlap_end_value - over", "return overlap_end_value + over")
    written.write_text(edited, encoding="utf-8", newline="\n")
    (stale,) = stale_files(fixture_ledger(), written.parent)
    line = text.splitlines().index("    return overlap_end_value - overlap_start_value") + 1
    assert str(stale) == (
        "planner.py is stale, run `make generate`; "
        f"line {line}: expected '    return overlap_end_value - overlap_start_value', "
        "found '    return overlap_end_value + overlap_start_value'"
    )
    failed = [verdict for verdict in validate_translation(edited) if not verdict.ok]
    assert [verdict.name for verdict in failed] == ["copied_head_count"]


def test_line_endings_count_in_the_checked_in_module(written: Path) -> None:
    written.write_bytes(written.read_bytes().replace(b"\n", b"\r\n"))
    assert len(stale_files(fixture_ledger(), written.parent)) == 1


def test_a_module_that_is_not_there_is_stale(written: Path) -> None:
    written.unlink()
    (stale,) = stale_files(fixture_ledger(), written.parent)
    assert stale.difference.line == 1


def test_a_copy_is_the_emitted_text_whatever_its_name_and_line_endings(tmp_path: Path) -> None:
    copy = tmp_path / "kv_plan.py"
    copy.write_bytes(EMITTED.read_bytes().replace(b"\n", b"\r\n"))
    result = verify_vendored(str(copy))
    assert result.matches
    assert result.difference is None
    assert result.spec_hash == result.emitted_spec_hash
    assert str(result) == f"{copy} is the emitted planner, for spec {result.spec_hash}"


def test_the_first_line_that_differs_is_named(tmp_path: Path) -> None:
    lines = EMITTED.read_text(encoding="utf-8").split("\n")
    copy = tmp_path / "copy.py"
    copy.write_text("\n".join([*lines[:200], lines[200] + "  # mine", *lines[201:]]), "utf-8")
    result = verify_vendored(copy)
    assert not result.matches
    assert str(result) == (
        f"{copy} is not the emitted planner, though its header names the same spec, "
        f"{result.spec_hash}; line 201: expected {lines[200]!r}, "
        f"found {lines[200] + '  # mine'!r}"
    )


def test_a_copy_for_another_spec_is_named_as_such(tmp_path: Path) -> None:
    text = EMITTED.read_text(encoding="utf-8")
    here = verify_vendored(EMITTED).spec_hash
    assert here is not None
    copy = tmp_path / "copy.py"
    copy.write_text(text.replace(here, "0" * 64), "utf-8")
    assert str(verify_vendored(copy)).startswith(
        f"{copy} is not the emitted planner, its header names another spec: {'0' * 64}, "
        f"where this kvreshard has {here}; line 4: "
    )


def test_what_is_no_copy_is_named_as_such(tmp_path: Path) -> None:
    copy = tmp_path / "copy.py"
    copy.write_bytes(b"\xff not utf-8\n")
    result = verify_vendored(copy)
    assert not result.matches
    assert "and its header names no spec; line 1: " in str(result)


@pytest.mark.parametrize("cut", [1, 40])
def test_a_copy_that_is_cut_short_differs(tmp_path: Path, cut: int) -> None:
    copy = tmp_path / "copy.py"
    copy.write_bytes(EMITTED.read_bytes()[:-cut])
    assert not verify_vendored(copy).matches


def test_a_file_that_is_not_there_is_an_os_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        verify_vendored(tmp_path / "none.py")
