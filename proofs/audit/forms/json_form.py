# SPDX-License-Identifier: Apache-2.0
"""An audit as JSON; `audit.schema.json` beside this file is its JSON schema.

The object has these keys, all of them always there. Lines count from 1; ranks, heads and slots
from 0. Texts are given as they are, so that a name may hold any character.

schema
    "kvreshard.audit/1". The number goes up when a key goes away or changes its meaning; a new key
    may come without that.
verdict, sentence
    "holds", "fails" or "not decided"; and that in one sentence.
method, required
    "proved for all sizes", "proved in a range", "checked exhaustively on a finite domain", or
    null: how every invariant in scope was decided, and what the user demanded.
source
    target (what the user named), origin, file, sha256 (of the file's bytes), function and needs:
    the audited function, and what it needs of the same file, each with name, first_line and
    last_line.
contract
    name, sentence, domain, outside (what it leaves out, a sentence each) and guard (a function
    that is asked before anything is sent, or null).
invariants
    For each invariant in scope: name, sentence, verdict, method (null where it is not decided or
    fails), detail, and failing: how many of the sizes tried break it.
out_of_scope
    For each of the other invariants: name and reason.
findings
    For each counterexample, the smallest first: reach ("refused before sending", "reaches the
    engine", or null where the contract has no guard); branch: the lines that decided what
    happened, in order, each with file, line and what; smallest: what is known of smaller inputs;
    replayed: what running the target gave, empty if it was not run; and story: an object of the
    schema "kvreshard.story/1".
sweep
    null where nothing could be run, or what came of trying the small sizes: maximum (of H, P and
    D), tried, failing, refused (of the failing ones, by the guard), reaching (the others),
    turned_away (of the right ones, by the guard), executed (whether the target was run).
stopped_by
    The constructs that stopped a proof, or the audit: file, line, what.
assumptions, solver, command
    What the verdict rests on, a sentence each; the solver and its version; what to run to get
    this report again.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from kvreshard.proofs.story.json_form import document as story_document

if TYPE_CHECKING:
    from kvreshard.proofs.audit.model import (
        AuditReport,
        ContractUsed,
        Finding,
        InvariantResult,
        Method,
        Part,
        Place,
        Source,
        Sweep,
    )

SCHEMA = "kvreshard.audit/1"


def as_json(report: AuditReport) -> str:
    """Return an audit as JSON, indented, without a newline at its end."""
    return json.dumps(document(report), indent=1)


def document(report: AuditReport) -> dict[str, Any]:
    """Return an audit as the object that is written."""
    return {
        "schema": SCHEMA,
        "verdict": report.verdict.value,
        "sentence": report.sentence,
        "method": method_word(report.method),
        "required": method_word(report.required),
        "source": source_object(report.source),
        "contract": contract_object(report.contract),
        "invariants": [_invariant(result) for result in report.invariants],
        "out_of_scope": [{"name": name, "reason": reason} for name, reason in report.out_of_scope],
        "findings": [_finding(finding) for finding in report.findings],
        "sweep": _sweep(report.sweep),
        "stopped_by": [place_object(place) for place in report.stopped_by],
        "assumptions": list(report.assumptions),
        "solver": report.solver,
        "command": report.command,
    }


def method_word(method: Method | None) -> str | None:
    """Return a method as it is written, null if there is none."""
    return method.value if method else None


def source_object(source: Source) -> dict[str, Any]:
    """Return a source as the object that is written."""
    return {
        "target": source.target,
        "origin": source.origin,
        "file": source.file,
        "sha256": source.sha256,
        "function": _part(source.function),
        "needs": [_part(part) for part in source.needs],
    }


def _part(part: Part) -> dict[str, Any]:
    return {"name": part.name, "first_line": part.first_line, "last_line": part.last_line}


def contract_object(contract: ContractUsed) -> dict[str, Any]:
    """Return how a planner was called as the object that is written."""
    return {
        "name": contract.name,
        "sentence": contract.sentence,
        "domain": contract.domain,
        "outside": list(contract.outside),
        "guard": contract.guard,
    }


def _invariant(result: InvariantResult) -> dict[str, Any]:
    return {
        "name": result.name,
        "sentence": result.sentence,
        "verdict": result.verdict.value,
        "method": method_word(result.method),
        "detail": result.detail,
        "failing": result.failing,
    }


def _finding(finding: Finding) -> dict[str, Any]:
    return {
        "reach": finding.reach.value if finding.reach else None,
        "branch": [place_object(place) for place in finding.branch],
        "smallest": finding.smallest,
        "replayed": finding.replayed,
        "story": story_document(finding.story),
    }


def place_object(place: Place) -> dict[str, Any]:
    """Return a place as the object that is written."""
    return {"file": place.file, "line": place.line, "what": place.what}


def _sweep(sweep: Sweep | None) -> dict[str, Any] | None:
    if sweep is None:
        return None
    return {
        "maximum": sweep.maximum,
        "tried": sweep.tried,
        "failing": sweep.failing,
        "refused": sweep.refused,
        "reaching": sweep.reaching,
        "turned_away": sweep.turned_away,
        "executed": sweep.executed,
    }
