# SPDX-License-Identifier: Apache-2.0
"""The ledger: every obligation and what came of it, as JSON that is checked in.

What varies from run to run (seconds, machine, cache) is not in it, so that proving again writes
the same bytes.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kvreshard.proofs.lemma import LEMMAS
from kvreshard.proofs.question import RLIMIT, ROAD_RLIMIT, SEEDS, text_hash
from kvreshard.proofs.run import HOLDS, Verdict
from kvreshard.proofs.solve import solver_version
from kvreshard.spec.canonical import spec_hash
from kvreshard.spec.formula import FORMULAS
from kvreshard.spec.invariants import INVARIANTS
from kvreshard.spec.regimes import REGIMES

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from kvreshard.proofs.obligations import Obligation

SCHEMA = 1
LEDGER_PATH = Path(__file__).parent / "ledger.json"


def build(verdicts: Sequence[Verdict], opinions: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Return the ledger of a run.

    Args:
        verdicts: what z3 made of each obligation.
        opinions: what the second solver made of each statement, by the hash of its text.
    """
    results = Counter(verdict.result for verdict in verdicts)
    kinds = Counter(verdict.obligation.kind for verdict in verdicts)
    ledger = {
        "schema": SCHEMA,
        "spec_hash": spec_hash(),
        "solver": {"name": "z3", "version": solver_version(), "seeds": list(SEEDS)},
        "summary": {
            "obligations": len(verdicts),
            "results": dict(sorted(results.items())),
            "kinds": dict(sorted(kinds.items())),
            "distinct_statements": len({text_hash(verdict.obligation) for verdict in verdicts}),
        },
        "obligations": [_row(verdict) for verdict in verdicts],
    }
    return with_opinions(ledger, opinions or {})


def with_opinions(ledger: dict[str, Any], opinions: Mapping[str, str]) -> dict[str, Any]:
    """Return the ledger with what the second solver said of each row; None where not asked."""
    rows = [
        {**row, "second_solver": opinions.get(row["smt2_sha256"])} for row in ledger["obligations"]
    ]
    distinct = {row["smt2_sha256"]: row for row in rows}.values()
    counted = {
        group: dict(
            sorted(
                Counter(
                    row["second_solver"] or "not_asked"
                    for row in distinct
                    if (row["scope"] == "bounded") == (group == "bounded")
                ).items()
            )
        )
        for group in ("as_proved", "bounded")
    }
    summary = {**ledger["summary"], "second_solver": counted}
    return {**ledger, "summary": summary, "obligations": rows}


def text(ledger: dict[str, Any]) -> str:
    """Return the ledger as it is written to disk."""
    return json.dumps(ledger, indent=1, ensure_ascii=False) + "\n"


def write(ledger: dict[str, Any], path: Path = LEDGER_PATH) -> None:
    """Write the ledger."""
    path.write_text(text(ledger), encoding="utf-8", newline="\n")


def orphans(obligations: Sequence[Obligation], ledger: dict[str, Any]) -> list[str]:
    """Return what is stated without being shown, or shown without being stated, in words."""
    rows = {row["name"]: row for row in ledger["obligations"]}
    found = [f"obligation {item.name} has no row" for item in obligations if item.name not in rows]
    stated = {item.name for item in obligations}
    found += [f"row {name} belongs to no obligation" for name in rows if name not in stated]
    for name in INVARIANTS:
        for regime in REGIMES:
            for scope in ("unbounded", "bounded"):
                if not any(
                    row["invariant"] == name
                    and row["regime"] == regime.name
                    and row["scope"] == scope
                    for row in rows.values()
                ):
                    found.append(f"invariant {name} has no {scope} obligation in {regime.name}")
    found += [
        f"lemma {name} is used by nothing"
        for name in LEMMAS
        if not any(name in row["lemmas"] for row in rows.values())
    ]
    spoken_of = {name for row in rows.values() for name in row["formulas"]}
    found += [f"formula {name} is in no obligation" for name in FORMULAS if name not in spoken_of]
    return found


def _row(verdict: Verdict) -> dict[str, Any]:
    item = verdict.obligation
    fixed = bool(item.road and item.road.fixed)
    return {
        "name": item.name,
        "kind": item.kind,
        "invariant": item.invariant,
        "part": item.part,
        "regime": item.regime,
        "scope": item.scope,
        "result": verdict.result,
        "reason": verdict.reason,
        "sentence": item.sentence,
        "hypotheses": [hypothesis.name for hypothesis in item.hypotheses],
        "assumed": [hypothesis.name for hypothesis in item.given()],
        "lemmas": list(item.lemmas()),
        "closed": sorted(item.proof.closed),
        "formulas": list(item.formulas()),
        "road": item.road.sentence() if item.road else None,
        "range": [1, item.road.maximum] if item.road else None,
        "queries": verdict.queries,
        "rlimit": ROAD_RLIMIT if fixed else RLIMIT,
        "smt2_sha256": text_hash(item),
    }


def all_hold(ledger: dict[str, Any]) -> bool:
    """Whether there is at least one obligation, and each is shown and not contradicted."""
    rows = ledger["obligations"]
    return bool(rows) and all(
        row["result"] in HOLDS and row["second_solver"] != "contradicted" for row in rows
    )


def contradicted(ledger: dict[str, Any]) -> list[str]:
    """Return the names of the obligations that the second solver contradicts."""
    rows = ledger["obligations"]
    return [row["name"] for row in rows if row["second_solver"] == "contradicted"]
