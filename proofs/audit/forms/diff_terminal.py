# SPDX-License-Identifier: Apache-2.0
"""A comparison of two planners for a terminal. Nothing is said by colour alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Group
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from kvreshard.proofs.audit.difference_model import Equality
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
from kvreshard.proofs.audit.forms.layout import (
    as_text,
    indented,
    listed,
    places,
    print_parts,
    prose,
    rows,
    section,
)
from kvreshard.proofs.audit.forms.visible import visible_report

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.console import Console, RenderableType

    from kvreshard.proofs.audit.difference_model import Difference, DiffReport

COLOURS = {Equality.EQUAL: "green", Equality.DIFFERENT: "red", Equality.NOT_DECIDED: "yellow"}


def as_terminal(report: DiffReport) -> str:
    """Return a comparison as lines of text of 80 columns without colour."""
    return as_text(_parts(visible_report(report)))


def print_diff(report: DiffReport, console: Console) -> None:
    """Print a comparison to a console, in its width and with colour where it has any."""
    print_parts(_parts(visible_report(report)), console)


def _parts(report: DiffReport) -> Iterator[RenderableType]:
    colour = COLOURS[report.verdict]
    head = Text(f"{word(report.verdict)}: {title(report)}", style=f"bold {colour}")
    said = [Text(report.sentence, style="bold"), Text(method_said(report))]
    if report.detail:
        said.append(Text(report.detail))
    yield Panel(Group(*said), title=head, title_align="left", border_style=colour)
    if report.stopped_by:
        yield from section("What stopped a proof", places(report.stopped_by))
    for difference in report.differences:
        yield from _difference(report, difference)
    yield from section("Small sizes, one by one", prose(sweep_sentences(report)))
    for heading, named in compared_rows(report):
        yield from section(heading, rows(named))
    resting = [*report.assumptions, f"Decided with {report.solver}."]
    yield from section("What the verdict rests on", listed(resting))
    yield from section("To see this again", Text(f"  $ {report.command}"))


def _difference(report: DiffReport, difference: Difference) -> Iterator[RenderableType]:
    heading = difference_title(report, difference)
    yield from section(heading, prose(difference_sentences(difference)), colour="red")
    table = side_by_side(difference)
    made = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for number, column in enumerate(COLUMNS):
        # The figures of a column stand under each other.
        made.add_column(Text(column.replace(" ", "\n")), justify="right" if number > 1 else "left")
    for row in table.rows:
        *cells, mark = row
        made.add_row(*(Text(cell) for cell in cells), Text(mark, style="bold red"))
    yield Text()
    yield indented(made)
    yield prose([table.left_out, difference.why])
