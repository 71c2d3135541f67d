# SPDX-License-Identifier: Apache-2.0
"""How forms for a terminal are laid out: headings, indented prose, pairs, places of source."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

from rich.console import Console, Group
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from kvreshard.proofs.audit.forms.parts import place_said

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from rich.console import RenderableType

    from kvreshard.proofs.audit.forms.parts import Row
    from kvreshard.proofs.audit.model import Place

WIDTH = 80


def as_text(parts: Iterable[RenderableType]) -> str:
    """Return parts as lines of text of WIDTH columns without colour, without a last newline."""
    out = io.StringIO()
    print_parts(parts, Console(file=out, width=WIDTH, color_system=None, force_terminal=False))
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines())


def print_parts(parts: Iterable[RenderableType], console: Console) -> None:
    """Print parts; what is there to be copied keeps its lines as they are, however long."""
    for part in parts:
        console.print(part, soft_wrap=isinstance(part, Text), highlight=False)


def section(heading: str, body: RenderableType, *, colour: str = "") -> Iterator[RenderableType]:
    """Yield a heading and what stands under it."""
    yield Text()
    yield Group(Text(heading, style=f"bold {colour}".strip()))
    yield body


def indented(body: RenderableType) -> Padding:
    """Return a body as it stands under a heading."""
    return Padding(body, (0, 0, 0, 2))


def prose(sentences: Iterable[str]) -> RenderableType:
    """Return sentences, each on lines of its own; empty ones are left out."""
    return indented(Group(*(Text(sentence) for sentence in sentences if sentence)))


def listed(sentences: Iterable[str]) -> RenderableType:
    """Return sentences as a list."""
    return pairs(("-", sentence) for sentence in sentences)


def rows(made: Iterable[Row]) -> RenderableType:
    """Return rows as pairs, each entry on a line of its own."""
    return pairs((row.label, "\n".join(row.said)) for row in made)


def pairs(labelled: Iterable[tuple[str, str]]) -> RenderableType:
    """Return labels, each beside what is said."""
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    for label, said in labelled:
        grid.add_row(Text(label), Text(said, overflow="fold"))
    return indented(grid)


def places(named: Iterable[Place]) -> RenderableType:
    """Return places of source, each with what is to be said of it."""
    shown = (Text(f"{place_said(place)}: {place.what}", overflow="fold") for place in named)
    return indented(Group(*shown))
