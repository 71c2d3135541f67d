# SPDX-License-Identifier: Apache-2.0
"""What the ledger says about a formula: whether it may be emitted, and what is proved of it."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any

from kvreshard.codegen.selection import divides

if TYPE_CHECKING:
    from collections.abc import Iterable

    from kvreshard.spec.formula import Formula

Row = dict[str, Any]
Ledger = dict[str, Any]

SCHEMA = 1
_HOLDS = ("proved", "satisfied")
_SAYS_SOMETHING = ("invariant", "election", "lemma")


class EmissionRefused(Exception):  # noqa: N818 - a refusal is the outcome, not a fault
    """The ledger does not prove every formula; `reasons` lists each formula and what it lacks."""

    def __init__(self, reasons: list[str]) -> None:
        """Keep the reasons and make the message of them."""
        super().__init__("nothing is emitted:\n" + "\n".join(f"  {reason}" for reason in reasons))
        self.reasons = reasons


def demand_proof(
    ledger: Ledger, spec_hash: str, formulas: Iterable[Formula], invariants: Iterable[str]
) -> None:
    """Refuse unless the ledger proves every obligation of the formulas, for this specification.

    Args:
        ledger: the ledger of a proof run.
        spec_hash: the specification that the ledger has to be about.
        formulas: what is to be emitted. Each needs an obligation that says something about it,
            and one of definedness if it divides; none may be unproved.
        invariants: names of the invariants. Each needs an obligation.

    Raises:
        EmissionRefused: with every reason, not only the first.
    """
    if not ledger or not ledger.get("obligations"):
        raise EmissionRefused(["the ledger is missing or empty: run `make prove`"])
    if ledger.get("schema") != SCHEMA:
        raise EmissionRefused([f"the ledger has schema {ledger.get('schema')!r}, not {SCHEMA}"])
    about = ledger.get("spec_hash")
    if about != spec_hash:
        raise EmissionRefused(
            [f"the ledger is about spec {about}, not {spec_hash}: run `make prove`"]
        )
    stated = {row["invariant"] for row in ledger["obligations"] if row["kind"] == "invariant"}
    reasons = [f"{name}: no obligation states it" for name in invariants if name not in stated]
    reasons += [reason for made in formulas for reason in _reasons(ledger, made)]
    if reasons:
        raise EmissionRefused(reasons)


def demand_no_overflow(ledger: Ledger, formulas: Iterable[Formula]) -> None:
    """Refuse unless the ledger proves of each formula that its integers fit 64 bits.

    Raises:
        EmissionRefused: with every reason, not only the first.
    """
    rows = {row["name"]: row for row in ledger["obligations"] if row["kind"] == "overflow"}
    results = {
        made.name: rows.get(f"{made.name}/does_not_overflow", {}).get("result", "not stated")
        for made in formulas
    }
    reasons = [
        f"{name}: that it does not overflow is {result}"
        for name, result in results.items()
        if result != "proved"
    ]
    if reasons:
        raise EmissionRefused(reasons)


def invariants_proved(ledger: Ledger, name: str) -> list[str]:
    """Return the names of the invariants proved about a formula, in the ledger's order."""
    rows = _rows(ledger, name)
    return list(dict.fromkeys(row["invariant"] for row in rows if row["kind"] == "invariant"))


def ledger_hash(ledger: Ledger) -> str:
    """Return the SHA-256 of a ledger's content, whatever its formatting, in hexadecimal."""
    text = json.dumps(ledger, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode("utf-8")).hexdigest()


def _rows(ledger: Ledger, name: str) -> list[Row]:
    return [row for row in ledger["obligations"] if name in row["formulas"]]


def _reasons(ledger: Ledger, made: Formula) -> list[str]:
    rows = _rows(ledger, made.name)
    kinds = {row["kind"] for row in rows}
    reasons = [
        f"{made.name}: {row['name']} is {row['result']}"
        for row in rows
        if row["result"] not in _HOLDS
    ]
    reasons += [
        f"{made.name}: {row['name']} is contradicted by the second solver"
        for row in rows
        if row.get("second_solver") == "contradicted"
    ]
    if not kinds.intersection(_SAYS_SOMETHING):
        reasons.append(f"{made.name}: no invariant, election or lemma speaks of it")
    if divides(made) and "definedness" not in kinds:
        reasons.append(f"{made.name}: it divides, and no definedness obligation speaks of it")
    return reasons
