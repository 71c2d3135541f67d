# SPDX-License-Identifier: Apache-2.0
"""Audits as JUnit's XML, which continuous integration shows as tests.

A suite is one audit, a test one invariant: a failure where it fails, an error where it is not
decided, skipped where it is out of scope. The elements and attributes are those of Jenkins' schema
`junit-10.xsd`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from xml.etree import ElementTree

from kvreshard.proofs.audit.forms.parts import (
    finding_for,
    how_said,
    method_said,
    place_said,
    required_said,
)
from kvreshard.proofs.audit.forms.terminal import finding_as_text
from kvreshard.proofs.audit.forms.visible import visible_report
from kvreshard.proofs.audit.model import Verdict

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kvreshard.proofs.audit.model import AuditReport, InvariantResult


def as_junit(report: AuditReport, *more: AuditReport) -> str:
    """Return audits as one XML document, a suite each, which ends without a newline."""
    suites = ElementTree.Element("testsuites", {"name": "kvreshard audit"})
    suites.extend([_suite(visible_report(one)) for one in (report, *more)])
    for count in ("tests", "failures", "errors"):
        suites.set(count, str(sum(int(suite.get(count, "0")) for suite in suites)))
    ElementTree.indent(suites, " ")
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(suites, "unicode")


def _suite(report: AuditReport) -> ElementTree.Element:
    cases = [_case(report, result) for result in report.invariants]
    cases += [_skipped(report, name, reason) for name, reason in report.out_of_scope]
    suite = ElementTree.Element("testsuite", {"name": report.source.target})
    kinds = {"failures": "failure", "errors": "error", "skipped": "skipped"}
    suite.set("tests", str(len(cases)))
    for count, kind in kinds.items():
        suite.set(count, str(sum(case.find(kind) is not None for case in cases)))
    properties = ElementTree.SubElement(suite, "properties")
    for name, value in _properties(report):
        ElementTree.SubElement(properties, "property", {"name": name, "value": value})
    suite.extend(cases)
    return suite


def _properties(report: AuditReport) -> Iterator[tuple[str, str]]:
    source, contract = report.source, report.contract
    yield "verdict", report.verdict.value
    yield "sentence", report.sentence
    yield "method", method_said(report)
    if report.required:
        yield "required", report.required.value
    yield "origin", source.origin
    yield "file", source.file
    yield "sha256", source.sha256
    yield "lines", f"{source.function.first_line}-{source.function.last_line}"
    yield "contract", contract.name
    yield "domain", contract.domain
    yield from (("outside", sentence) for sentence in contract.outside)
    yield from (("assumption", sentence) for sentence in report.assumptions)
    yield "solver", report.solver
    yield "command", report.command


def _named(report: AuditReport, name: str) -> ElementTree.Element:
    return ElementTree.Element("testcase", {"name": name, "classname": report.source.function.name})


def _skipped(report: AuditReport, name: str, reason: str) -> ElementTree.Element:
    case = _named(report, name)
    ElementTree.SubElement(case, "skipped", {"message": f"out of scope: {reason}"})
    return case


def _case(report: AuditReport, result: InvariantResult) -> ElementTree.Element:
    case = _named(report, result.name)
    if result.verdict is Verdict.FAILS:
        said = {"type": "counterexample", "message": _message(report, result)}
        failure = ElementTree.SubElement(case, "failure", said)
        failure.text = "\n".join(_story(report, result))
    elif result.verdict is Verdict.NOT_DECIDED:
        said = {"type": "not decided", "message": f"not decided: {how_said(result)}"}
        error = ElementTree.SubElement(case, "error", said)
        error.text = "\n".join(_undecided(report, result))
    else:
        said_so = ElementTree.SubElement(case, "system-out")
        said_so.text = f"{result.sentence}\nholds: {how_said(result)}"
    return case


def _message(report: AuditReport, result: InvariantResult) -> str:
    finding = finding_for(report, result)
    return finding.story.verdict if finding else how_said(result)


def _story(report: AuditReport, result: InvariantResult) -> Iterator[str]:
    yield result.sentence
    finding = finding_for(report, result)
    if finding:
        yield finding_as_text(report, finding)


def _undecided(report: AuditReport, result: InvariantResult) -> Iterator[str]:
    yield result.sentence
    yield report.sentence
    if report.required:
        yield required_said(report)
    yield from (f"{place_said(place)}: {place.what}" for place in report.stopped_by)
