# SPDX-License-Identifier: Apache-2.0
"""An audit as one HTML page that needs nothing else: no script, no other file, no network."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from kvreshard.proofs.audit.forms.environment import template
from kvreshard.proofs.audit.forms.parts import (
    FILL_IN,
    audited_rows,
    branch_title,
    contract_rows,
    counts_said,
    finding_title,
    how_said,
    method_said,
    paste_title,
    place_said,
    reach_said,
    required_said,
    sizes_said,
    smallest_said,
    stopped_title,
    sweep_sentences,
    title,
    word,
)
from kvreshard.proofs.audit.forms.visible import visible_report
from kvreshard.proofs.audit.model import Verdict
from kvreshard.proofs.story.parts import byte_sentences, input_rows
from kvreshard.proofs.story.picture import head_map_svg
from kvreshard.proofs.story.table import tables_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from kvreshard.proofs.audit.model import AuditReport, Finding, Place

# A verdict's class and sign; the sign and the word say what the colour says.
SHOWN = {
    Verdict.HOLDS: ("holds", "\u2713"),
    Verdict.FAILS: ("fails", "\u2717"),
    Verdict.NOT_DECIDED: ("undecided", "?"),
}

View = dict[str, Any]


def as_html(report: AuditReport) -> str:
    """Return an audit as a page, which ends without a newline."""
    return template("report.html.j2").render(_view(visible_report(report)))


def badge(verdict: Verdict) -> View:
    """Return what a template needs to show a verdict."""
    name, sign = SHOWN[verdict]
    return {"name": name, "sign": sign, "word": word(verdict)}


def _view(report: AuditReport) -> View:
    return {
        "title": title(report),
        "badge": badge(report.verdict),
        "sentence": report.sentence,
        "method": method_said(report),
        "required": required_said(report),
        "stopped_by": _places(report.stopped_by),
        "findings": [_finding(report, finding) for finding in report.findings],
        "counts": counts_said(report),
        "invariants": [
            {
                "badge": badge(result.verdict),
                "name": result.name,
                "sentence": result.sentence,
                "how": how_said(result),
            }
            for result in report.invariants
        ],
        "out_of_scope": report.out_of_scope,
        "audited": audited_rows(report),
        "contract": contract_rows(report),
        "sweep": list(sweep_sentences(report)),
        "stopped_title": stopped_title(report),
        "resting": [*report.assumptions, f"Decided with {report.solver}."],
        "fill_in": FILL_IN,
        "command": report.command,
    }


def _finding(report: AuditReport, finding: Finding) -> View:
    story = finding.story
    said = list(byte_sentences(story))
    known = [smallest_said(finding), *([finding.replayed] if finding.replayed else [])]
    return {
        "title": finding_title(report, finding),
        "said": [story.verdict, story.consequence, reach_said(report, finding)],
        "picture": _picture(report, finding) if story.blocks else None,
        "input": input_rows(story),
        "bytes": said,
        "invariant": story.invariant,
        "invariant_sentence": story.invariant_sentence,
        "also": story.also_violated,
        "branch_title": branch_title(report),
        "branch": _places(finding.branch),
        "known": known,
        "tables": [
            {
                "title": table.title,
                # A fault that is not of the copies is not in the picture.
                "open": all(block.is_right for block in story.blocks),
                "columns": table.columns,
                "rows": [[_lines(cell) for cell in row] for row in table.rows],
                "left_out": table.left_out,
            }
            for table in tables_of(story)
        ],
        "paste_title": paste_title(finding),
        "test": story.test.rstrip("\n"),
    }


def _picture(report: AuditReport, finding: Finding) -> Markup:
    story = finding.story
    picture = head_map_svg(
        story.producer_heads,
        story.consumer_heads,
        story.blocks,
        title=f"Head map for {sizes_said(finding)}",
        description=" ".join([story.verdict, *byte_sentences(story)]),
        # Two counterexamples of a page may be alike.
        key=str(report.findings.index(finding)),
    )
    # It is markup already: head_map_svg escapes what it is given.
    return Markup(picture)


def _lines(cell: str) -> list[str]:
    return [line.replace("<--", "\u2190") for line in cell.split("\n")]


def _places(places: Iterable[Place]) -> list[tuple[str, str]]:
    return [(place_said(place), place.what) for place in places]
