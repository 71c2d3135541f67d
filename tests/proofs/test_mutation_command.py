# SPDX-License-Identifier: Apache-2.0
"""`kvreshard mutate`, as a person runs it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner

from kvreshard.cli import main
from kvreshard.proofs.mutation import command, document
from kvreshard.proofs.mutation import matrix as matrices
from kvreshard.proofs.mutation.refute import DoesNotReplayError
from kvreshard.proofs.mutation.survivors import Explanation

if TYPE_CHECKING:
    from pathlib import Path

POSITION = "position_at@0:mod_to_floordiv"
CONTENT = "every_written_byte_holds_the_same_head_token_and_position"


@pytest.fixture(autouse=True)
def _nothing_is_kept_or_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KVRESHARD_CACHE", str(tmp_path / "cache" / "proofs"))
    monkeypatch.setattr(matrices, "write", lambda *_: pytest.fail("a filtered run writes"))
    monkeypatch.setattr(document, "write", lambda *_: pytest.fail("a filtered run writes"))


def run(*arguments: str) -> Any:
    return CliRunner().invoke(main, ["mutate", "--jobs", "1", *arguments])


def test_a_filtered_run_prints_its_tables_and_writes_nothing() -> None:
    result = run("--filter", POSITION)
    assert result.exit_code == 0, result.output
    lines = [line.split() for line in result.stdout.splitlines()]
    assert ["position_at", "3", "1", "1", "0", "0", "0", "0"] in lines
    assert [CONTENT[:47], "1", "1", "1", "0"] in lines
    assert (
        "1 mutants (0 duplicates dropped): 1 killed, 0 equivalent, 0 right, 0 survivor, "
        "0 undecided" in result.stdout
    )


def test_json_is_the_matrix_and_nothing_else() -> None:
    result = run("--filter", POSITION, "--json")
    assert result.exit_code == 0
    matrix = json.loads(result.stdout)
    assert matrix["schema"] == 1
    assert [row["name"] for row in matrix["mutants"]] == [POSITION]
    assert matrix["mutants"][0]["cells"][CONTENT]["killed_by"] == f"{CONTENT}/bytes"


@pytest.mark.parametrize("form", [(), ("--json",)])
def test_a_filter_that_chooses_nothing_is_wrong_usage(form: tuple[str, ...]) -> None:
    result = run("--filter", "zzz", *form)
    assert result.exit_code == 2
    assert result.stdout == ""
    assert result.stderr.splitlines()[-1] == (
        "Error: Invalid value for '--filter': no mutant has 'zzz' in its name; "
        "legal: a part of a name such as byte_address@0:value_plus_1"
    )


def test_a_survivor_without_an_explanation_is_told_and_fails(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    nothing = Explanation("survivor", "nothing was proved", open=("an_obligation",))
    monkeypatch.setattr(command, "explain", lambda *_, **__: nothing)
    result = run("--filter", "elect_spread@1:variable_plus_1")
    assert result.exit_code == 1
    told = result.stdout.partition("survivor: ")[2].splitlines()
    assert told[0] == "elect_spread@1:variable_plus_1"
    assert told[2:] == ["  nothing was proved", "  not proved: an_obligation"]


def test_a_model_that_does_not_replay_stops_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: Any, **__: Any) -> None:
        raise DoesNotReplayError("some claim with {'H': 1}: the goal holds")

    monkeypatch.setattr(command, "mutate_all", fails)
    result = run()
    assert result.exit_code == 1
    assert result.stderr == (
        "the solver's model is none in plain Python: some claim with {'H': 1}: the goal holds\n"
    )
