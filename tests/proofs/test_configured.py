# SPDX-License-Identifier: Apache-2.0
"""The audits that a repository lists, and which of them a change asks for."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest

from kvreshard.proofs.audit.configured import (
    ConfigurationError,
    ConfiguredAudit,
    changed_among,
    read_configured,
)

needs_toml = pytest.mark.skipif(
    not (importlib.util.find_spec("tomllib") or importlib.util.find_spec("tomli")),
    reason="reading TOML takes Python 3.11 or tomli",
)

PLAIN = ConfiguredAudit("src/planner.py::plan", "head-list")
OWN = ConfiguredAudit("src/staging.py::slices", "contracts/staging.py", files=("src/staging/*.py",))
MODULE = ConfiguredAudit("pkg.planner:plan", "head-list")
RELEASED = ConfiguredAudit("vllm==0.33.0:vllm/planner.py::plan", "contracts/mine.py")
ALL = (PLAIN, OWN, MODULE, RELEASED)


@needs_toml
def test_the_example_of_the_document_is_read(tmp_path: Path) -> None:
    document = Path(__file__).resolve().parents[2] / "docs" / "ci.md"
    example = re.search(r"```toml\n(.*?)```", document.read_text(encoding="utf-8"), re.DOTALL)
    assert example
    (tmp_path / "pyproject.toml").write_text(example[1], encoding="utf-8")
    assert read_configured(tmp_path) == (
        ConfiguredAudit("connector/planner.py::plan_transfer", "head-list"),
        ConfiguredAudit(
            "connector/staging.py::slices",
            "contracts/staging.py",
            require="all-sizes",
            files=("connector/staging/*.py",),
        ),
    )


@needs_toml
def test_a_file_of_its_own_comes_first(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text(
        '[[tool.kvreshard.audit]]\ntarget = "a.py::f"\ncontract = "head-list"\n'
    )
    own = tmp_path / ".kvreshard.toml"
    own.write_text('[[audit]]\ntarget = "b.py::f"\ncontract = "byte-list"\nexec = true\n')
    assert read_configured(tmp_path) == (ConfiguredAudit("b.py::f", "byte-list", execute=True),)
    own.write_text("other = 1\n")
    assert read_configured(tmp_path) == (ConfiguredAudit("a.py::f", "head-list"),)


@needs_toml
@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no audits are listed; legal: [[audit]] in .kvreshard.toml, or"),
        ("audit = [", "configuration=.kvreshard.toml: "),
        ("audit = 3", ".kvreshard.toml: audit=3; legal: one table or more, each in [[...]]"),
        ("audit = []", ".kvreshard.toml: audit=[]; legal: one table or more"),
        ("audit = [3]", ".kvreshard.toml: audit[0]=3; legal: a table"),
        ("[[audit]]\ntarget = 'a.py::f'", "audit[0].contract=None; legal: a line of text"),
        ("[[audit]]\ncontract = 'c'", "audit[0].target=None; legal: a line of text"),
        ("[[audit]]\ntarget = '--exec'\ncontract = 'c'", "audit[0].target='--exec'; legal: a line"),
        ("[[audit]]\ntarget = \"a\\nb\"\ncontract = 'c'", "legal: a line of text"),
        ("[[audit]]\ntargets = 'a'", "audit[0].targets; legal: target, contract, require, exec, "),
        (
            "[[audit]]\ntarget = 'a'\ncontract = 'c'\nrequire = 'some'",
            "audit[0].require='some'; legal: all-sizes, range, finite",
        ),
        ("[[audit]]\ntarget = 'a'\ncontract = 'c'\nexec = 'yes'", "exec='yes'; legal: true, false"),
        (
            "[[audit]]\ntarget = 'a'\ncontract = 'c'\nfiles = 'x'",
            "files='x'; legal: a list of patterns",
        ),
    ],
)
def test_what_is_wrong_with_the_list_is_said(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / ".kvreshard.toml").write_text(text)
    with pytest.raises(ConfigurationError) as raised:
        read_configured(tmp_path)
    assert message in str(raised.value)


def test_without_a_reader_of_toml_it_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".kvreshard.toml").write_text("")
    monkeypatch.setattr("importlib.util.find_spec", lambda *_: None)
    with pytest.raises(ConfigurationError, match=r"it reads no TOML; legal: Python 3\.11 or newer"):
        read_configured(tmp_path)


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ([], ()),
        (["README.md"], ()),
        (["src/planner.py"], (PLAIN,)),
        (["./src/../src/planner.py"], (PLAIN,)),
        (["other/src/planner.py"], ()),
        (["contracts/staging.py"], (OWN,)),
        (["src/staging/deep.py"], (OWN,)),
        (["pkg/planner.py"], (MODULE,)),
        (["lib/pkg/planner.py"], (MODULE,)),
        (["pkg/planner/__init__.py"], (MODULE,)),
        (["notpkg/planner.py"], ()),
        (["vllm/planner.py"], ()),
        (["contracts/mine.py"], (RELEASED,)),
        (["src/planner.py", "pkg/planner.py"], (PLAIN, MODULE)),
        (["pyproject.toml"], ALL),
        ([".kvreshard.toml"], ALL),
        (["elsewhere/pyproject.toml"], ()),
    ],
)
def test_a_change_asks_for_what_it_touches(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    changed: list[str],
    expected: tuple[ConfiguredAudit, ...],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert changed_among(ALL, changed, tmp_path) == expected
    absolute = [str(tmp_path / path) for path in changed]
    assert changed_among(ALL, absolute, tmp_path) == expected
