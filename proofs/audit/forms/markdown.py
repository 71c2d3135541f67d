# SPDX-License-Identifier: Apache-2.0
"""An audit as Markdown, for a comment on a pull request: the verdict first, long parts folded."""

from __future__ import annotations

import html
import re
from typing import TYPE_CHECKING

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
    smallest_said,
    stopped_title,
    sweep_sentences,
    title,
    word,
)
from kvreshard.proofs.audit.forms.visible import visible_report
from kvreshard.proofs.story.markdown import table_lines
from kvreshard.proofs.story.parts import byte_sentences, input_rows
from kvreshard.proofs.story.table import tables_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from kvreshard.proofs.audit.forms.parts import Row
    from kvreshard.proofs.audit.model import AuditReport, Finding, Place

# What would format, link, embed, fold or start a formula. An underscore inside a word does nothing.
_SPECIAL = re.compile(r"[\\`*\[\]|~$#]|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])")
# What would start a list, a rule or a heading at the start of a line.
_START = re.compile(r"^([-+=]|\d+(?=[.)]))")
# What GitHub turns into a link or a message to somebody wherever it stands in prose.
_CALLS = re.compile(r"@(?=\w)|#(?=\d)|(?<=\w):(?=//)|(?<=www)\.", re.IGNORECASE)
_NOTHING = "&#8203;"  # a space of no width


def as_markdown(report: AuditReport) -> str:
    """Return an audit as Markdown, which ends without a newline."""
    return "\n".join(_lines(visible_report(report)))


def prose(text: str) -> str:
    """Return a text of one line as it may stand in prose or a table, with nothing in it to act."""
    entities = text.strip().replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    escaped = _SPECIAL.sub(lambda one: f"\\{one[0]}", entities)
    started = _START.sub(_held, escaped)
    return _CALLS.sub(lambda one: f"{one[0]}{_NOTHING}", started)


def _held(start: re.Match[str]) -> str:
    return f"{start[0]}\\" if start[0].isdigit() else f"\\{start[0]}"


def code(text: str) -> str:
    """Return a text of one line as code, fenced by more backticks than it has in a row."""
    fence = "`" * (1 + _longest_run(text))
    space = " " if "`" in (text[:1], text[-1:]) or not text.strip() else ""
    return f"{fence}{space}{text}{space}{fence}"


def code_cell(text: str) -> str:
    """Return code() for a table, where a bar ends a cell even inside of code."""
    return code(text).replace("|", "\\|")


def fenced(text: str, language: str) -> Iterator[str]:
    """Yield a text of some lines as a block of code."""
    fence = "`" * max(3, 1 + _longest_run(text))
    yield from (f"{fence}{language}", text, fence)


def _longest_run(text: str) -> int:
    return max((len(run) for run in re.findall("`+", text)), default=0)


def _lines(report: AuditReport) -> Iterator[str]:
    yield f"## {prose(f'{word(report.verdict)}: {title(report)}')}"
    known = f"Method: {method_said(report)}. {required_said(report)}".rstrip()
    yield from ("", f"**{prose(report.sentence)}** {known}")
    if report.stopped_by:
        yield from ("", f"{stopped_title(report)}:", "", *places(report.stopped_by))
    for finding in report.findings:
        yield from _finding(report, finding)
    yield from folded(f"Invariants: {counts_said(report)}", _invariants(report))
    yield from folded("What was audited, and how it was called", _audited(report))
    for finding in report.findings:
        yield from folded(paste_title(finding), _test(finding))
    yield from ("", *fenced(f"$ {report.command}", "console"))


def _finding(report: AuditReport, finding: Finding) -> Iterator[str]:
    story = finding.story
    yield from ("", f"### {finding_title(report, finding)}", "")
    yield prose(f"{story.verdict} {story.consequence} {reach_said(report, finding)}")
    for table in tables_of(story):
        yield from ("", *_table(table.columns, table.rows))
        if table.left_out:
            yield from ("", f"({table.left_out})")
    yield ""
    yield from (f"- {prose(sentence)}" for sentence in byte_sentences(story))
    yield f"- Broken invariant: `{story.invariant}`: {prose(story.invariant_sentence)}"
    if story.also_violated:
        names = ", ".join(f"`{name}`" for name in story.also_violated)
        yield f"- Broken by this input as well: {names}."
    yield f"- {prose(smallest_said(finding))}"
    if finding.replayed:
        yield f"- {prose(finding.replayed)}"
    if finding.branch:
        yield from ("", f"{branch_title(report)}:", "", *places(finding.branch))
    yield from folded("The input in words", _table(("", ""), input_rows(story)))


def places(named: Iterable[Place]) -> Iterator[str]:
    """Yield places of source as a list."""
    yield from (f"- {code(place_said(place))}: {prose(place.what)}" for place in named)


def _table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """Yield a table of plain text, with the arrows of the story's tables as one character."""
    yield from table_lines(columns, [[_cell(cell) for cell in row] for row in rows])


def _cell(text: str) -> str:
    return "<br>".join(prose(line.replace("<--", "\u2190")) for line in text.split("\n"))


def folded(summary: str, body: Iterable[str]) -> Iterator[str]:
    """Yield what is folded away under a summary."""
    yield from ("", f"<details><summary>{html.escape(summary)}</summary>", "")
    yield from body
    yield from ("", "</details>")


def _invariants(report: AuditReport) -> Iterator[str]:
    rows = [
        (word(one.verdict), code_cell(one.name), prose(how_said(one))) for one in report.invariants
    ]
    rows += [("out of scope", code_cell(name), prose(why)) for name, why in report.out_of_scope]
    yield from table_lines(("", "invariant", "how"), rows)
    yield ""
    yield from (f"- {code(one.name)}: {prose(one.sentence)}" for one in report.invariants)


def _audited(report: AuditReport) -> Iterator[str]:
    rows = [*audited_rows(report), *contract_rows(report)]
    yield from table_lines(("", ""), [(row.label, row_said(row)) for row in rows])
    yield ""
    yield from (f"- {prose(sentence)}" for sentence in sweep_sentences(report))
    yield from ("", "The verdict rests on:", "")
    yield from (f"- {prose(sentence)}" for sentence in report.assumptions)
    yield f"- Decided with {prose(report.solver)}."


def row_said(row: Row) -> str:
    """Return what a row says as the cell of a table."""
    return "<br>".join(map(code_cell if row.code else prose, row.said))


def _test(finding: Finding) -> Iterator[str]:
    yield from (FILL_IN, "")
    yield from fenced(finding.story.test.rstrip("\n"), "python")
