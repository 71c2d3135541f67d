# SPDX-License-Identifier: Apache-2.0
"""A comparison of two planners as Markdown, for a comment on a pull request."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kvreshard.proofs.audit.forms.diff_parts import (
    COLUMNS,
    compared_rows,
    difference_sentences,
    difference_title,
    method_said,
    side_by_side,
    sweep_sentences,
    title,
    word,
)
from kvreshard.proofs.audit.forms.markdown import fenced, folded, places, prose, row_said
from kvreshard.proofs.audit.forms.visible import visible_report
from kvreshard.proofs.story.markdown import table_lines

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kvreshard.proofs.audit.difference_model import Difference, DiffReport


def as_markdown(report: DiffReport) -> str:
    """Return a comparison as Markdown, which ends without a newline."""
    return "\n".join(_lines(visible_report(report)))


def _lines(report: DiffReport) -> Iterator[str]:
    yield f"## {prose(f'{word(report.verdict)}: {title(report)}')}"
    said = f"{method_said(report)} {report.detail}".rstrip()
    yield from ("", f"**{prose(report.sentence)}** {prose(said)}")
    if report.stopped_by:
        yield from ("", "What stopped a proof:", "", *places(report.stopped_by))
    for difference in report.differences:
        yield from _difference(report, difference)
    yield from ("", "### Small sizes, one by one", "")
    yield from (f"- {prose(sentence)}" for sentence in sweep_sentences(report))
    yield from folded("What was compared, and how it was called", _compared(report))
    yield from ("", *fenced(f"$ {report.command}", "console"))


def _difference(report: DiffReport, difference: Difference) -> Iterator[str]:
    yield from ("", f"### {difference_title(report, difference)}", "")
    yield from (f"- {prose(sentence)}" for sentence in difference_sentences(difference))
    table = side_by_side(difference)
    rows = [[_cell(cell) for cell in row] for row in table.rows]
    yield from ("", *table_lines(COLUMNS, rows), "")
    if table.left_out:
        yield from (f"({prose(table.left_out)})", "")
    yield prose(difference.why)


def _cell(text: str) -> str:
    return prose(text.replace("<--", "\u2190")) if text else ""


def _compared(report: DiffReport) -> Iterator[str]:
    for heading, named in compared_rows(report):
        yield from (f"{heading}:", "")
        yield from table_lines(("", ""), [(row.label, row_said(row)) for row in named])
        yield ""
    yield from ("The verdict rests on:", "")
    yield from (f"- {prose(sentence)}" for sentence in report.assumptions)
    yield f"- Decided with {prose(report.solver)}."
