# SPDX-License-Identifier: Apache-2.0
"""The ledger that is checked in is about this specification, and nothing is missing from it."""

from __future__ import annotations

import copy
import importlib.metadata
import json
import re
from typing import Any

import pytest

from kvreshard.proofs import ledger as ledger_module
from kvreshard.proofs.ledger import LEDGER_PATH, all_hold, build, orphans, text, write
from kvreshard.proofs.lemma import LEMMAS
from kvreshard.proofs.obligations import Obligation, obligations
from kvreshard.proofs.question import SEEDS, text_hash
from kvreshard.proofs.run import Verdict
from kvreshard.spec.canonical import spec_formulas, spec_hash
from kvreshard.spec.formula import FORMULAS
from kvreshard.spec.invariants import INVARIANTS
from kvreshard.spec.regimes import REGIMES


@pytest.fixture(scope="module")
def declared() -> tuple[Obligation, ...]:
    return obligations()


@pytest.fixture(scope="module")
def checked_in() -> dict[str, Any]:
    """Return the ledger of this checkout."""
    assert LEDGER_PATH.exists(), f"there is no {LEDGER_PATH.name}: run `make prove`"
    loaded: dict[str, Any] = json.loads(LEDGER_PATH.read_text(encoding="utf-8"))
    return loaded


@pytest.fixture(scope="module")
def made(declared: tuple[Obligation, ...]) -> dict[str, Any]:
    """Return a ledger in which everything is shown, of verdicts that no solver gave."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ledger_module, "text_hash", lambda item: f"hash of {item.name}")
        return build([shown(item) for item in declared])


@pytest.fixture
def ledger(made: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Return such a ledger to be spoilt."""
    # A test of another module may have registered formulas of its own.
    monkeypatch.setattr(ledger_module, "FORMULAS", spec_formulas())
    return copy.deepcopy(made)


def shown(item: Obligation, seconds: float = 1.0) -> Verdict:
    result = "satisfied" if item.kind == "scenario" else "proved"
    return Verdict(item, result, 4, 1000, seconds, cached=seconds == 0)


def rows_of(ledger: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {row["name"]: row for row in ledger["obligations"]}


# As it is checked in


def test_the_checked_in_ledger_is_about_this_specification(checked_in: dict[str, Any]) -> None:
    assert checked_in["schema"] == 1
    assert checked_in["spec_hash"] == spec_hash()


def test_the_checked_in_ledger_is_of_the_pinned_solver(checked_in: dict[str, Any]) -> None:
    (pin,) = {
        found[1]
        for need in importlib.metadata.requires("kvreshard") or []
        if (found := re.match(r"z3-solver==([\d.]+)", need))
    }
    version = checked_in["solver"]["version"]
    # The package may have a number more than the solver that it holds.
    assert pin == version or re.fullmatch(re.escape(version) + r"\.\d+", pin)
    assert checked_in["solver"]["name"] == "z3"
    assert checked_in["solver"]["seeds"] == list(SEEDS)
    assert len(SEEDS) >= 3


def test_every_obligation_has_its_row_with_the_text_that_was_proved(
    checked_in: dict[str, Any], declared: tuple[Obligation, ...]
) -> None:
    assert [row["name"] for row in checked_in["obligations"]] == [item.name for item in declared]
    found = {row["name"]: row["smt2_sha256"] for row in checked_in["obligations"]}
    assert found == {item.name: text_hash(item) for item in declared}


def test_every_row_says_what_the_obligation_says(
    checked_in: dict[str, Any], declared: tuple[Obligation, ...]
) -> None:
    rows = rows_of(checked_in)
    for item in declared:
        row = rows[item.name]
        expected = shown(item)
        assert (row["kind"], row["sentence"]) == (item.kind, item.sentence)
        assert (row["result"], row["reason"]) == (expected.result, "")
        assert row["hypotheses"] == [one.name for one in item.hypotheses]
        assert row["lemmas"] == list(item.lemmas())
        assert row["formulas"] == list(item.formulas())
        assert row["queries"] >= (1 if item.kind == "scenario" else 2)
    assert all_hold(checked_in)
    assert checked_in["summary"]["obligations"] == len(declared)
    assert set(checked_in["summary"]["results"]) == {"proved", "satisfied"}


def test_every_invariant_is_shown_in_every_regime_and_both_scopes(
    checked_in: dict[str, Any],
) -> None:
    rows = [row for row in checked_in["obligations"] if row["kind"] == "invariant"]
    for name in INVARIANTS:
        for regime in REGIMES:
            here = [row for row in rows if (row["invariant"], row["regime"]) == (name, regime.name)]
            parts = {scope: set() for scope in ("unbounded", "bounded")}  # type: dict[str, set[str]]
            for row in here:
                parts[row["scope"]].add(row["part"])
                assert row["range"] == ([1, 256] if row["scope"] == "bounded" else None)
            assert parts["bounded"] == parts["unbounded"] != set()


def test_bounded_rows_used_a_query_for_every_producer_that_has_a_consumer(
    checked_in: dict[str, Any],
) -> None:
    sizes = range(1, 257)
    split = {H: [size for size in sizes if H % size == 0] for H in sizes}
    replicated = {H: [size for size in sizes if size > H and size % H == 0] for H in sizes}
    of = {"split": split, "replicated": replicated}
    looked_at = 0
    for row in checked_in["obligations"]:
        fixed = (row["road"] or "").split(" fixed value by value")[0]
        if row["scope"] != "bounded" or fixed == row["road"]:
            continue
        looked_at += 1
        producer, _, consumer, divisibility = row["regime"].split("_")
        needed = {
            (H, P) if "producer_tp_size" in fixed else (H,)
            for H in sizes
            for P in of[producer][H]
            for D in of[consumer][H]
            if (P % D == 0 or D % P == 0) == (divisibility == "divisible")
        }
        # One more asks whether the hypotheses can hold.
        assert row["queries"] - 1 >= len(needed), row["name"]
    assert looked_at >= 6


def test_nothing_is_lonely_in_the_checked_in_ledger(
    checked_in: dict[str, Any],
    declared: tuple[Obligation, ...],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(ledger_module, "FORMULAS", spec_formulas())
    assert orphans(declared, checked_in) == []


def test_the_checked_in_ledger_is_written_as_it_would_be_now(checked_in: dict[str, Any]) -> None:
    assert LEDGER_PATH.read_text(encoding="utf-8") == text(checked_in)


# Orphans


def test_a_whole_ledger_has_no_orphans(
    ledger: dict[str, Any], declared: tuple[Obligation, ...]
) -> None:
    assert orphans(declared, ledger) == []


def test_an_obligation_without_a_row_is_an_orphan(
    ledger: dict[str, Any], declared: tuple[Obligation, ...]
) -> None:
    name = "every_legal_pair_is_in_exactly_one_regime"
    ledger["obligations"] = [row for row in ledger["obligations"] if row["name"] != name]
    assert orphans(declared, ledger) == [f"obligation {name} has no row"]


def test_a_row_without_an_obligation_is_an_orphan(
    ledger: dict[str, Any], declared: tuple[Obligation, ...]
) -> None:
    ledger["obligations"].append(ledger["obligations"][0] | {"name": "made_up"})
    assert orphans(declared, ledger) == ["row made_up belongs to no obligation"]


@pytest.mark.parametrize("scope", ["bounded", "unbounded"])
def test_an_invariant_without_an_obligation_in_a_regime_is_an_orphan(
    ledger: dict[str, Any], declared: tuple[Obligation, ...], scope: str
) -> None:
    name, regime = "no_two_writes_overlap", "split_to_split_indivisible"
    ledger["obligations"] = [
        row
        for row in ledger["obligations"]
        if (row["invariant"], row["regime"], row["scope"]) != (name, regime, scope)
    ]
    kept = {row["name"] for row in ledger["obligations"]}
    assert orphans([item for item in declared if item.name in kept], ledger) == [
        f"invariant {name} has no {scope} obligation in {regime}"
    ]


def test_a_lemma_that_nothing_uses_is_an_orphan(
    ledger: dict[str, Any], declared: tuple[Obligation, ...]
) -> None:
    name = next(iter(LEMMAS))
    for row in ledger["obligations"]:
        row["lemmas"] = [one for one in row["lemmas"] if one != name]
    assert orphans(declared, ledger) == [f"lemma {name} is used by nothing"]


def test_a_formula_that_nothing_speaks_of_is_an_orphan(
    ledger: dict[str, Any], declared: tuple[Obligation, ...]
) -> None:
    for row in ledger["obligations"]:
        row["formulas"] = [one for one in row["formulas"] if one != "replica_set"]
    assert orphans(declared, ledger) == ["formula replica_set is in no obligation"]


# Building


def test_what_varies_between_runs_is_not_in_the_ledger(declared: tuple[Obligation, ...]) -> None:
    some = declared[::40]
    first = text(build([shown(item, seconds=12.5) for item in some]))
    again = text(build([shown(item, seconds=0) for item in some]))
    assert first == again
    assert "12.5" not in first
    assert str(LEDGER_PATH.parent) not in first
    assert not re.search(r"seconds|\bcached\b|rlimit_used|largest", first)


def test_the_summary_counts_results_and_kinds(made: dict[str, Any]) -> None:
    rows = made["obligations"]
    assert made["summary"]["obligations"] == len(rows) == sum(made["summary"]["kinds"].values())
    scenarios = sum(row["kind"] == "scenario" for row in rows)
    assert made["summary"]["results"] == {"proved": len(rows) - scenarios, "satisfied": scenarios}


@pytest.mark.parametrize("result", ["refuted", "unknown", "vacuous", "timeout", ""])
def test_one_row_that_is_not_shown_spoils_the_ledger(ledger: dict[str, Any], result: str) -> None:
    assert all_hold(ledger)
    ledger["obligations"][-1]["result"] = result
    assert not all_hold(ledger)


def test_what_is_written_can_be_read_back(made: dict[str, Any], tmp_path: Any) -> None:
    path = tmp_path / "ledger.json"
    write(made, path)
    assert json.loads(path.read_text(encoding="utf-8")) == made
    assert path.read_bytes().endswith(b"}\n")
    assert b"\r" not in path.read_bytes()


def test_every_registered_formula_of_the_specification_is_looked_for() -> None:
    assert set(spec_formulas()) <= set(FORMULAS)
