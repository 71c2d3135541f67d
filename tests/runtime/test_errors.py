# SPDX-License-Identifier: Apache-2.0
"""Every hypothesis the runtime names is one that a reader can look up."""

from __future__ import annotations

import ast
import json
from pathlib import Path

from kvreshard.proofs.assumptions import ASSUMPTIONS

ROOT = Path(__file__).resolve().parents[2]


def names_in(source: str) -> set[str]:
    """First arguments of HypothesisError, through a variable that holds one name at most."""
    tree = ast.parse(source)
    constants = {
        target.id: node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    found = set()
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
            continue
        if node.func.id == "HypothesisError":
            first = node.args[0]
            value = constants[first.id] if isinstance(first, ast.Name) else first
            assert isinstance(value, ast.Constant), ast.unparse(node)
            found.add(str(value.value))
    return found


def test_every_hypothesis_named_is_in_the_ledger_or_an_assumption() -> None:
    ledger = json.loads((ROOT / "proofs" / "ledger.json").read_text())
    known = {name for proof in ledger["obligations"] for name in proof["hypotheses"]}
    known |= {assumption.name for assumption in ASSUMPTIONS}
    named = {
        name
        for path in sorted((ROOT / "runtime").rglob("*.py"))
        for name in names_in(path.read_text())
    }
    assert "rank_is_in_range" in named
    assert named <= known
