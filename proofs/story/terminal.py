# SPDX-License-Identifier: Apache-2.0
"""A story as plain text for a terminal: no colour, and prose that fits 80 columns."""

from __future__ import annotations

import textwrap
from itertools import zip_longest
from typing import TYPE_CHECKING

from kvreshard.proofs.story.parts import byte_sentences, input_rows, seen_in, title
from kvreshard.proofs.story.table import tables_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kvreshard.proofs.story.model import Story
    from kvreshard.proofs.story.table import Table

WIDTH = 80


def as_terminal(story: Story) -> str:
    """Return a story as lines of text, the last one without a newline."""
    return "\n".join(_lines(story))


def _lines(story: Story) -> Iterator[str]:
    yield title(story)
    yield from _prose(story.verdict)
    yield from _prose(story.consequence)
    yield from _heading("The planner")
    yield from _prose(story.origin.sentence)
    yield from _prose(seen_in(story))
    yield from _heading("Input")
    for label, said in input_rows(story):
        yield from _labelled(label, said)
    for table in tables_of(story):
        yield from _heading(table.title)
        yield from table_lines(table)
    sentences = list(byte_sentences(story))
    if sentences:
        yield from _heading("Bytes")
        for sentence in sentences:
            yield from _prose(sentence)
    yield from _heading("Broken invariant")
    yield f"  {story.invariant}"
    yield from _prose(f'"{story.invariant_sentence}"')
    if story.also_violated:
        yield "  Broken by this input as well:"
        yield from (f"    {name}" for name in story.also_violated)
    yield from _heading("Why this input")
    yield from _prose(story.why_this_input)
    if story.reported:
        yield from _heading("As reported")
        yield from _prose(story.reported.verdict)
        yield f"  $ {story.reported.command}"
    yield from _heading("A test to paste: put a call of your planner in place of each raise")
    yield ""
    yield from story.test.splitlines()
    yield from _heading("To see this again")
    yield f"  $ {story.command}"


def _heading(text: str) -> Iterator[str]:
    yield ""
    yield from textwrap.wrap(text, WIDTH)


def _prose(text: str) -> Iterator[str]:
    yield from textwrap.wrap(
        text,
        WIDTH,
        initial_indent="  ",
        subsequent_indent="  ",
        break_long_words=False,
        break_on_hyphens=False,
    )


def _labelled(label: str, text: str) -> Iterator[str]:
    yield from textwrap.wrap(
        text, WIDTH, initial_indent=f"  {label:<10}", subsequent_indent=" " * 12
    )


def table_lines(table: Table) -> Iterator[str]:
    """Yield a table's lines, columns aligned, indented by two spaces."""
    rows = [table.columns, *table.rows]
    lines = [line for row in rows for line in _cell_lines(row)]
    widths = [max(len(line[k]) for line in lines) for k in range(len(table.columns))]
    for row in lines:
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        yield f"  {'  '.join(cells)}".rstrip()
    if table.left_out:
        yield from _prose(f"({table.left_out})")


def _cell_lines(row: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """Spread the lines of a row's cells over as many rows."""
    yield from zip_longest(*(cell.split("\n") for cell in row), fillvalue="")
