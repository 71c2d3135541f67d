# SPDX-License-Identifier: Apache-2.0
"""A ledger that claims every formula proved, for tests that are not about proofs."""

from __future__ import annotations

from typing import Any

from kvreshard.codegen.selection import divides, emitted_formulas
from kvreshard.spec.canonical import spec_hash
from kvreshard.spec.invariants import INVARIANTS


def row(name: str, kind: str, formulas: list[str], **changes: Any) -> dict[str, Any]:
    """Return one obligation of the ledger's schema, proved unless the changes say otherwise."""
    made: dict[str, Any] = {
        "name": name,
        "kind": kind,
        "invariant": None,
        "regime": None,
        "scope": "unbounded",
        "result": "proved",
        "formulas": formulas,
    }
    return made | changes


def fixture_ledger() -> dict[str, Any]:
    """Return a ledger in which every obligation of every emitted formula is proved."""
    names = [made.name for made in emitted_formulas()]
    divided = [made.name for made in emitted_formulas() if divides(made)]
    obligations = [
        row(f"{invariant}/unbounded", "invariant", names, invariant=invariant)
        for invariant in INVARIANTS
    ]
    obligations.append(row("every_division_is_defined", "definedness", divided))
    obligations += [row(f"{name}/does_not_overflow", "overflow", [name]) for name in names]
    return {
        "schema": 1,
        "spec_hash": spec_hash(),
        "summary": {},
        "solver": {"name": "none", "version": "(a test's ledger: nothing is proved)"},
        "obligations": obligations,
    }
