# SPDX-License-Identifier: Apache-2.0
"""A story as Markdown, for a pull request or an issue."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kvreshard.proofs.story.parts import byte_sentences, input_rows, seen_in, title
from kvreshard.proofs.story.table import tables_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from kvreshard.proofs.story.model import Story


def as_markdown(story: Story) -> str:
    """Return a story as Markdown, which ends without a newline."""
    return "\n".join(_lines(story))


def _lines(story: Story) -> Iterator[str]:
    name = story.origin.name
    yield f"## {title(story).replace(name, f'`{name}`', 1)}"
    yield from ("", f"**{story.verdict}** {story.consequence}")
    yield from ("", f"The planner: {story.origin.sentence} {seen_in(story)}")
    yield from ("", "### Input", "")
    yield from table_lines(("", ""), [(f"`{label}`", said) for label, said in input_rows(story)])
    for table in tables_of(story):
        yield from ("", f"### {table.title}", "")
        yield from table_lines(table.columns, table.rows)
        if table.left_out:
            yield from ("", f"({table.left_out})")
    said = list(byte_sentences(story))
    if said:
        yield from ("", "### Bytes", "")
        yield from (f"- {sentence}" for sentence in said)
    yield from ("", "### Broken invariant", "")
    yield from (f"`{story.invariant}`", "", f"> {story.invariant_sentence}")
    if story.also_violated:
        names = ", ".join(f"`{name}`" for name in story.also_violated)
        yield from ("", f"Broken by this input as well: {names}.")
    yield from ("", "### Why this input", "", story.why_this_input)
    if story.reported:
        yield from ("", "### As reported", "", story.reported.verdict)
        yield from ("", "```console", f"$ {story.reported.command}", "```")
    yield from ("", "### A test to paste", "", "Put a call of your planner in place of each raise.")
    yield from ("", "```python", story.test.rstrip("\n"), "```")
    yield from ("", "### To see this again", "", "```console", f"$ {story.command}", "```")


def table_lines(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yield a table's lines. Cells are Markdown already, but for line breaks and arrows."""
    yield _row(columns)
    yield _row(["---"] * len(columns))
    yield from (_row(row) for row in rows)


def _row(cells: Sequence[str]) -> str:
    escaped = (cell.replace("<--", "←").replace("\n", "<br>") for cell in cells)
    return f"| {' | '.join(escaped)} |"
