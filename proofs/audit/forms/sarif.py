# SPDX-License-Identifier: Apache-2.0
"""Audits as SARIF 2.1.0, which code hosts show beside the lines.

A run is one audit, a rule one invariant in scope. An invariant that fails is an error at the line
that decided it, with the lines before it as a code flow. One that is not decided is `open`, and
since SARIF has such a result carry no level, what stopped the audit is a warning of its own, at
its line. One that holds is `pass`.
"""

from __future__ import annotations

import json
from importlib.metadata import version
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from kvreshard.exit_codes import FAILED, HOLDS, NOT_DECIDED
from kvreshard.proofs.audit.forms.links import uri
from kvreshard.proofs.audit.forms.parts import (
    finding_for,
    how_said,
    method_said,
    place_said,
    reach_said,
    sizes_said,
    smallest_said,
    title,
    word,
)
from kvreshard.proofs.audit.forms.visible import visible, visible_report
from kvreshard.proofs.audit.model import Verdict
from kvreshard.proofs.story.parts import byte_sentences

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from kvreshard.proofs.audit.model import AuditReport, Finding, InvariantResult, Part, Place

SCHEMA = (
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
)
STOPPED = "the_audit_decides_every_invariant_in_scope"
STOPPED_SENTENCE = (
    "The audit can follow each construct of the planner that an invariant in scope depends on, "
    "and so decides each of them."
)
EXIT_CODES = {
    Verdict.HOLDS: HOLDS,
    Verdict.FAILS: FAILED,
    Verdict.NOT_DECIDED: NOT_DECIDED,
}

Json = dict[str, Any]


def as_sarif(report: AuditReport, *more: AuditReport) -> str:
    """Return audits as one SARIF log, a run each, indented, without a newline at its end."""
    runs = [_run(one) for one in (report, *more)]
    return json.dumps({"$schema": SCHEMA, "version": "2.1.0", "runs": runs}, indent=1)


def _run(raw: AuditReport) -> Json:
    report = visible_report(raw)
    # A path has to lead to the file, whatever its characters: it is escaped, and not spelled out.
    places = _Places(raw)
    rules = [*_rules(report), _rule(STOPPED, STOPPED_SENTENCE, "warning", report)]
    results = [_result(report, one, places) for one in report.invariants]
    results += _stopped(report, places)
    index = {rule["id"]: k for k, rule in enumerate(rules)}
    for result in results:
        result["ruleIndex"] = index[result["ruleId"]]
    return {
        "tool": {"driver": {"name": "kvreshard", "version": version("kvreshard"), "rules": rules}},
        "automationDetails": {
            "id": f"kvreshard/audit/{quote(raw.source.target, errors='replace')}/"
        },
        "invocations": [_invocation(report, places)],
        "artifacts": places.artifacts(),
        "columnKind": "unicodeCodePoints",
        "results": results,
        "properties": _properties(report),
    }


def _rules(report: AuditReport) -> Iterator[Json]:
    for result in report.invariants:
        yield _rule(result.name, result.sentence, "error", report)


def _rule(name: str, sentence: str, level: str, report: AuditReport) -> Json:
    return {
        "id": name,
        "shortDescription": {"text": sentence},
        "fullDescription": {"text": sentence},
        "help": {"text": f"{sentence}\nTo see the whole report: {report.command}"},
        "defaultConfiguration": {"level": level},
    }


class _Places:
    """The files of a run and places in them."""

    def __init__(self, report: AuditReport) -> None:
        """Take the report with its texts as they are."""
        self._source = report.source
        self._files = [report.source.file]
        for place in (*report.stopped_by, *(p for f in report.findings for p in f.branch)):
            if place.file not in self._files:
                self._files.append(place.file)

    def artifacts(self) -> list[Json]:
        """Return the files, of which the audited one has a hash."""
        made: list[Json] = [
            {"location": {"uri": uri(file)}, "sourceLanguage": "python"} for file in self._files
        ]
        made[0]["roles"] = ["analysisTarget"]
        made[0]["hashes"] = {"sha-256": self._source.sha256}
        return made

    def function(self) -> Json:
        """Return where the audited function is."""
        part: Part = self._source.function
        return self._location(
            self._source.file,
            {"startLine": part.first_line, "endLine": part.last_line},
            f"the function {visible(part.name)}",
        )

    def line(self, place: Place) -> Json:
        """Return a line, of a file of the raw report or of the one made visible."""
        file = next((one for one in self._files if place.file in (one, visible(one))), place.file)
        return self._location(file, {"startLine": place.line}, place.what)

    def _location(self, file: str, region: Json, what: str) -> Json:
        where = {"uri": uri(file), "index": self._files.index(file)}
        return {
            "physicalLocation": {"artifactLocation": where, "region": region},
            "message": {"text": message(visible(what))},
        }


def message(text: str) -> str:
    """Return a text as a SARIF message: no placeholders in it, and no links."""
    return text.replace("{", "{{").replace("}", "}}").replace("](", "] (")


def _result(report: AuditReport, result: InvariantResult, places: _Places) -> Json:
    if result.verdict is Verdict.FAILS:
        return _failure(report, result, places)
    passed = result.verdict is Verdict.HOLDS
    stopped = [places.line(place) for place in report.stopped_by]
    return {
        "ruleId": result.name,
        "kind": "pass" if passed else "open",
        "level": "none",
        "message": {"text": message(f"{word(result.verdict)}: {how_said(result)}.")},
        "locations": [places.function() if passed or not stopped else stopped[0]],
    }


def _failure(report: AuditReport, result: InvariantResult, places: _Places) -> Json:
    made: Json = {"ruleId": result.name, "kind": "fail", "level": "error"}
    finding = finding_for(report, result)
    if finding is None:
        said = f"{result.sentence} It does not hold: {how_said(result)}."
        return {**made, "message": {"text": message(said)}, "locations": [places.function()]}
    made["message"] = {"text": message(" ".join(_told(report, finding)))}
    branch = [places.line(place) for place in finding.branch]
    made["locations"] = branch[-1:] or [places.function()]
    if branch:
        steps = [{"location": location} for location in branch]
        made["codeFlows"] = [{"threadFlows": [{"locations": steps}]}]
    H, P, D = finding.story.sizes
    made["properties"] = {
        "totalNumKvHeads": H,
        "producerTpSize": P,
        "consumerTpSize": D,
        "reach": finding.reach.value if finding.reach else None,
    }
    return made


def _told(report: AuditReport, finding: Finding) -> Iterator[str]:
    story = finding.story
    yield f"{sizes_said(finding)}: {story.verdict}"
    yield story.consequence
    yield reach_said(report, finding)
    yield from byte_sentences(story)
    yield smallest_said(finding)
    yield f"To see the whole report: {report.command}"


def _stopped(report: AuditReport, places: _Places) -> Iterator[Json]:
    """Yield what stopped the audit as warnings, or what stopped a better proof for information."""
    undecided = report.verdict is Verdict.NOT_DECIDED
    state = {"kind": "fail", "level": "warning"} if undecided else _FOR_INFORMATION
    for place in report.stopped_by:
        said = f"{place.what} at {place_said(place)} stopped the audit. {report.sentence}"
        yield _stop(
            said if undecided else f"{place.what} stopped a proof.", places.line(place), state
        )
    if undecided and not report.stopped_by:
        yield _stop(report.sentence, places.function(), state)


_FOR_INFORMATION = {"kind": "informational", "level": "none"}


def _stop(said: str, location: Json, state: Json) -> Json:
    return {"ruleId": STOPPED, **state, "message": {"text": message(said)}, "locations": [location]}


def _invocation(report: AuditReport, places: _Places) -> Json:
    undecided = report.verdict is Verdict.NOT_DECIDED
    return {
        "commandLine": report.command,
        "executionSuccessful": not undecided,
        "exitCode": EXIT_CODES[report.verdict],
        "exitCodeDescription": report.sentence,
        "toolExecutionNotifications": _notifications(report, places) if undecided else [],
    }


def _notifications(report: AuditReport, places: _Places) -> list[Json]:
    at: Iterable[Json] = [places.line(place) for place in report.stopped_by] or [places.function()]
    return [
        {"level": "error", "message": {"text": message(report.sentence)}, "locations": [one]}
        for one in at
    ]


def _properties(report: AuditReport) -> Json:
    return {
        "title": title(report),
        "verdict": report.verdict.value,
        "sentence": report.sentence,
        "method": method_said(report),
        "required": report.required.value if report.required else None,
        "origin": report.source.origin,
        "contract": report.contract.name,
        "domain": report.contract.domain,
        "outside": list(report.contract.outside),
        "outOfScope": [{"name": name, "reason": reason} for name, reason in report.out_of_scope],
        "assumptions": list(report.assumptions),
        "solver": report.solver,
    }
