# SPDX-License-Identifier: Apache-2.0
"""An audit for a terminal, with rich. Nothing is said by colour alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Group
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from kvreshard.proofs.audit.forms.layout import (
    as_text,
    indented,
    listed,
    pairs,
    places,
    print_parts,
    prose,
    rows,
    section,
)
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
    reach_said,
    required_said,
    smallest_said,
    stopped_title,
    sweep_sentences,
    title,
    word,
)
from kvreshard.proofs.audit.forms.visible import visible_report
from kvreshard.proofs.audit.model import Verdict
from kvreshard.proofs.story.parts import byte_sentences, input_rows
from kvreshard.proofs.story.table import tables_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.console import Console, RenderableType

    from kvreshard.proofs.audit.model import AuditReport, Finding
    from kvreshard.proofs.story.table import Table as StoryTable

COLOURS = {Verdict.HOLDS: "green", Verdict.FAILS: "red", Verdict.NOT_DECIDED: "yellow"}


def as_terminal(report: AuditReport) -> str:
    """Return an audit as lines of text of 80 columns without colour, the last without a newline.

    Lines that are there to be copied, such as the command, may be longer.
    """
    return as_text(_parts(visible_report(report)))


def finding_as_text(report: AuditReport, finding: Finding) -> str:
    """Return one counterexample of a report with visible texts in the same way, with its test."""
    return as_text([*_finding(report, finding), *_test(finding)])


def print_audit(report: AuditReport, console: Console) -> None:
    """Print an audit to a console, in its width and with colour where it has any."""
    print_parts(_parts(visible_report(report)), console)


def _parts(report: AuditReport) -> Iterator[RenderableType]:
    yield _verdict(report)
    if report.stopped_by:
        yield from section(stopped_title(report), places(report.stopped_by))
    for finding in report.findings:
        yield from _finding(report, finding)
    yield from section(f"Invariants: {counts_said(report)}", _invariants(report))
    yield from section("What was audited", rows(audited_rows(report)))
    yield from section("How it was called", rows(contract_rows(report)))
    yield from section("Small sizes, one by one", prose(sweep_sentences(report)))
    resting = [*report.assumptions, f"Decided with {report.solver}."]
    yield from section("What the verdict rests on", listed(resting))
    for finding in report.findings:
        yield from _test(finding)
    yield from section("To see this again", Text(f"  $ {report.command}"))


def _verdict(report: AuditReport) -> Panel:
    colour = COLOURS[report.verdict]
    said = [Text(report.sentence, style="bold"), Text(f"Method: {method_said(report)}.")]
    if report.required:
        said.append(Text(required_said(report)))
    head = Text(f"{word(report.verdict)}: {title(report)}", style=f"bold {colour}")
    return Panel(Group(*said), title=head, title_align="left", border_style=colour)


def _finding(report: AuditReport, finding: Finding) -> Iterator[RenderableType]:
    story = finding.story
    yield from section(
        finding_title(report, finding),
        prose([story.verdict, story.consequence, reach_said(report, finding)]),
        colour="red",
    )
    yield from section("Input", pairs(input_rows(story)))
    for table in tables_of(story):
        yield from section(table.title, _story_table(table))
    said = list(byte_sentences(story))
    if said:
        yield from section("Bytes", prose(said))
    yield from section("Broken invariant", _broken(finding))
    if finding.branch:
        yield from section(branch_title(report), places(finding.branch))
    known = [smallest_said(finding), *([finding.replayed] if finding.replayed else [])]
    yield from section("Why this input", prose(known))


def _test(finding: Finding) -> Iterator[RenderableType]:
    yield from section(paste_title(finding), prose([FILL_IN]))
    yield Text()
    yield Text(finding.story.test.rstrip("\n"))


def _broken(finding: Finding) -> RenderableType:
    story = finding.story
    said = [Text(story.invariant, style="bold"), Text(f'"{story.invariant_sentence}"')]
    if story.also_violated:
        said.append(Text("Broken by this input as well:"))
        said += [Text(f"  {name}") for name in story.also_violated]
    return indented(Group(*said))


def _invariants(report: AuditReport) -> RenderableType:
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    for result in report.invariants:
        verdict = Text(word(result.verdict), style=COLOURS[result.verdict])
        grid.add_row(verdict, Group(Text(result.name), Text(how_said(result), style="dim")))
    for name, reason in report.out_of_scope:
        left_out = Group(Text(name), Text(reason, style="dim"))
        grid.add_row(Text("out of scope", style="dim"), left_out)
    return indented(grid)


def _story_table(table: StoryTable) -> RenderableType:
    made = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for column in table.columns:
        made.add_column(Text(column), overflow="fold")
    for row in table.rows:
        made.add_row(*(_cell(cell) for cell in row))
    if not table.left_out:
        return indented(made)
    return indented(Group(made, Text(f"({table.left_out})")))


def _cell(text: str) -> Text:
    return Text(text, style="bold red" if text.startswith("<--") else "")
