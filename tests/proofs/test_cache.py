# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from kvreshard.proofs import cache as cache_module
from kvreshard.proofs.cache import Cache, default_directory
from kvreshard.proofs.question import Question
from kvreshard.proofs.roads import Road
from kvreshard.proofs.solve import Answer

QUESTION = Question(
    "(assert true)", (0, 1), 1000, Road(("total_num_kv_heads",), maximum=8), (1, 2, 3)
)
ANSWER = Answer("unsat", 3, 250, 0.5, "")


@pytest.fixture
def cache(tmp_path: Path) -> Cache:
    """Return a cache that holds one answer."""
    made = Cache(tmp_path / "answers")
    made.keep(QUESTION, ANSWER)
    return made


def test_an_answer_is_found_again(cache: Cache, tmp_path: Path) -> None:
    assert cache.find(QUESTION) == ANSWER
    assert Cache(tmp_path / "answers").find(QUESTION) == ANSWER
    assert cache.find(replace(QUESTION)) == ANSWER


@pytest.mark.parametrize(
    "other",
    [
        replace(QUESTION, text="(assert false)"),
        replace(QUESTION, seeds=(0, 2)),
        replace(QUESTION, seeds=(0,)),
        replace(QUESTION, rlimit=1001),
        replace(QUESTION, road=None),
        replace(QUESTION, road=Road(("total_num_kv_heads",), maximum=9)),
        replace(QUESTION, road=Road(("producer_tp_size",), maximum=8)),
        replace(QUESTION, road=Road(("total_num_kv_heads",), "consumer_tp_size", maximum=8)),
        replace(QUESTION, values=(1, 2)),
    ],
    ids=[
        "text",
        "seed",
        "fewer_seeds",
        "limit",
        "no_road",
        "maximum",
        "fixed",
        "cases",
        "values",
    ],
)
def test_another_question_is_not_answered(cache: Cache, other: Question) -> None:
    assert cache.find(other) is None


def test_another_solver_is_not_answered_for(
    cache: Cache, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cache_module, "solver_version", lambda: "0.0.0")
    assert Cache(tmp_path / "answers").find(QUESTION) is None
    assert cache.find(QUESTION) == ANSWER


@pytest.mark.parametrize(
    "damage", ["", "{", "[]", "null", '{"result": "unsat"}', '{"verdict": "unsat"}', "\udcff"]
)
def test_a_damaged_file_is_ignored_and_replaced(cache: Cache, tmp_path: Path, damage: str) -> None:
    (path,) = (tmp_path / "answers").rglob("*.json")
    path.write_bytes(damage.encode("utf-8", "surrogateescape"))
    assert cache.find(QUESTION) is None
    cache.keep(QUESTION, ANSWER)
    assert cache.find(QUESTION) == ANSWER


def test_no_draft_stays_behind(cache: Cache, tmp_path: Path) -> None:
    cache.keep(QUESTION, ANSWER)
    files = [path for path in (tmp_path / "answers").rglob("*") if path.is_file()]
    assert [path.suffix for path in files] == [".json"]


def test_without_a_directory_nothing_is_kept() -> None:
    cache = Cache(None)
    cache.keep(QUESTION, ANSWER)
    assert cache.find(QUESTION) is None


def test_the_directory_can_be_chosen(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("KVRESHARD_CACHE", str(tmp_path / "mine"))
    assert default_directory() == tmp_path / "mine"
    monkeypatch.delenv("KVRESHARD_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert default_directory() == tmp_path / "kvreshard" / "proofs"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    assert default_directory() == tmp_path / ".cache" / "kvreshard" / "proofs"


def test_a_directory_that_cannot_be_written_is_a_warning_not_an_end(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("", encoding="utf-8")
    cache = Cache(blocked / "inside")
    with pytest.warns(UserWarning, match="answers are not kept"):
        cache.keep(QUESTION, ANSWER)
    cache.keep(QUESTION, ANSWER)
    assert cache.find(QUESTION) is None
