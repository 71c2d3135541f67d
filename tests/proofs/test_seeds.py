# SPDX-License-Identifier: Apache-2.0
"""Proving with many seeds."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from kvreshard.proofs import question, seeds
from kvreshard.proofs.obligations import Obligation, obligations
from kvreshard.proofs.question import text_hash

DECLARED = obligations()
SOME = [item for item in DECLARED if item.name.startswith("lemma/a_")][:4]


def run(console: Console, monkeypatch: pytest.MonkeyPatch) -> tuple[seeds.Spread, ...]:
    monkeypatch.setattr(seeds, "obligations", lambda: [*SOME, *SOME])
    return seeds.prove_with_seeds(console, seeds=3, use_cache=False, jobs=2)


@pytest.fixture
def console() -> Console:
    return Console(file=io.StringIO(), width=200)


def output(console: Console) -> str:
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_each_statement_is_proved_once_for_each_seed(
    console: Console, monkeypatch: pytest.MonkeyPatch
) -> None:
    spreads = run(console, monkeypatch)
    assert [spread.name for spread in spreads] == [item.name for item in SOME]
    for spread in spreads:
        assert len(spread.rlimits) == 3
        assert min(spread.rlimits) > 0
        assert spread.ratio >= 1
        assert spread.flakes == ()
    assert f"{len(SOME)} statements, 3 seeds each: 0 flake" in output(console)


def test_a_seed_that_does_not_prove_it_is_a_flake(
    console: Console, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(question, "RLIMIT", 10)
    spreads = run(console, monkeypatch)
    flaky = [spread for spread in spreads if spread.flakes]
    assert flaky
    assert all(flake.startswith("seed ") and "unknown" in flake for flake in flaky[0].flakes)
    assert f"{flaky[0].name}: seed 0: unknown" in output(console)


def test_every_statement_put_in_one_query_is_asked() -> None:
    asked = {text_hash(item) for item in seeds.in_one_query(DECLARED)}

    def elsewhere(item: Obligation) -> bool:
        return item.kind == "scenario" or bool(item.road and item.road.fixed)

    assert asked == {text_hash(item) for item in DECLARED if not elsewhere(item)}
