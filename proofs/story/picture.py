# SPDX-License-Identifier: Apache-2.0
"""A head map as a picture: one inline SVG element that stands alone.

Producer ranks and their heads are on the left, consumer ranks and their slots on the right, and
each copy is an arrow, with a band if it has several heads. What is wrong with a slot is told by
colour, by the kind of its border, and in words. The picture follows the reader's dark or light
setting, needs no script, and keeps its outlines where a page forbids styles.

Each copy is an element of class `copy` with `data-producer`, `data-consumer`, `data-kind`,
`data-heads` and `data-slots`: numbers with a blank between; a head that was read from outside
the producer's block is `none`.
"""

from __future__ import annotations

import hashlib
import textwrap
from typing import TYPE_CHECKING

from kvreshard.proofs.story.head_map import Fold, Kind, head_map_of
from kvreshard.proofs.story.model import Mark
from kvreshard.proofs.story.picture_copies import copy_of
from kvreshard.proofs.story.picture_sides import (
    LINE,
    NO_HEADS,
    RIGHT_EDGE,
    SIGNS,
    WIDTH,
    consumer_side,
    mark_name,
    producer_side,
    words,
)
from kvreshard.proofs.story.picture_style import STYLE
from kvreshard.proofs.story.svg import element, text
from kvreshard.proofs.story.words import counted, listed

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from kvreshard.proofs.story.head_map import HeadMap, Heads
    from kvreshard.proofs.story.model import ConsumerBlock

_TOP, _MARGIN = 36, 8
_LETTERS = 66
_MEANINGS = {
    Mark.MISSING: "that nobody writes",
    Mark.DOUBLED: "written more than once",
    Mark.WRONG_HEAD: "with another head",
    Mark.READ_OUTSIDE: "with what is no head of the sender",
    Mark.WRITE_OUTSIDE: "that the block does not have",
}


def head_map_svg(
    producer_heads: Heads,
    consumer_heads: Heads,
    blocks: Sequence[ConsumerBlock],
    *,
    title: str,
    description: str,
    key: str = "",
) -> str:
    """Return the picture of a head map as an `<svg>` element, without a newline at its end.

    Args:
        producer_heads, consumer_heads: for each rank the heads it holds, in the order of its block.
        blocks: of the consumer ranks, all or some, with the writers of each slot.
        title, description: what a reader who cannot see the picture is told.
        key: goes into the ids; two pictures of one page that are alike in all else need two keys.

    Raises:
        ValueError: a block is of a rank, or a writer is a rank, that the group does not have.
    """
    shown = head_map_of(producer_heads, consumer_heads, blocks)
    body, height = _body(shown)
    said = repr((producer_heads, consumer_heads, tuple(blocks), title, description, key))
    ident = f"head-map-{hashlib.sha256(said.encode('utf-8', 'replace')).hexdigest()[:12]}"
    return element(
        "svg",
        {
            "xmlns": "http://www.w3.org/2000/svg",
            "class": "kvreshard-head-map",
            "viewBox": f"{-_MARGIN} 0 {WIDTH + 2 * _MARGIN} {height:.10g}",
            "width": "100%",
            "role": "img",
            "aria-labelledby": f"{ident}-title {ident}-desc",
            "fill": "none",
        },
        element("title", {"id": f"{ident}-title"}, text(title)),
        element("desc", {"id": f"{ident}-desc"}, text(description)),
        element("style", {}, STYLE),
        element(
            "rect", {"class": "paper", "x": -_MARGIN, "width": "100%", "height": "100%", "rx": 8}
        ),
        *body,
    )


def _body(shown: HeadMap) -> tuple[list[str], float]:
    left, right = producer_side(shown), consumer_side(shown)
    height = max(left.height, right.height)
    lowered = _TOP + (height - left.height) / 2, _TOP + (height - right.height) / 2
    # The faulty ones last, so that they lie on top.
    runs = sorted(shown.runs, key=lambda run: run.kind is not Kind.OK)
    foot = list(_foot(shown))
    first = _TOP + height + LINE
    body = [
        words(12, 22, "Producer ranks", "head"),
        words(RIGHT_EDGE, 22, "Consumer ranks", "head"),
        *(_lowered(by, side.drawn) for by, side in zip(lowered, (left, right), strict=True)),
        *(copy_of(run, left, right, lowered) for run in runs),
        *(words(12, first + LINE * k, *line) for k, line in enumerate(foot)),
    ]
    return body, first + LINE * len(foot)


def _lowered(by: float, drawn: list[str]) -> str:
    return element("g", {"transform": f"translate(0 {by:.10g})"}, *drawn)


def _foot(shown: HeadMap) -> Iterator[tuple[str, str]]:
    """Say in lines of text what is wrong, all in all, and what is not drawn."""
    empty = sum(run.kind is Kind.EMPTY for run in shown.runs)
    if not shown.marks:
        fine = "as it should be" if shown.slot_count == 1 else "all as they should be"
        yield f"{counted(shown.slot_count, 'slot')}, {fine}", "small"
    for mark, count in shown.marks:
        said = f"{SIGNS[mark]} {mark.value}: {counted(count, 'slot')} {_MEANINGS[mark]}"
        yield said, f"mark {mark_name(mark)}"
    if empty:
        yield f"{NO_HEADS}: {empty} of the copies", "mark empty"
    left_out = list(_left_out(shown))
    if left_out:
        said = f"Not drawn: {listed(left_out)}, with the copies to and from them"
        for line in textwrap.wrap(said, _LETTERS):
            yield line, "small"


def _left_out(shown: HeadMap) -> Iterator[str]:
    ranks = sum(one.count for one in shown.producers if isinstance(one, Fold))
    if ranks:
        yield counted(ranks, "producer rank")
    heads = sum(
        head.count
        for box in shown.producers
        if not isinstance(box, Fold)
        for head in box.heads
        if isinstance(head, Fold)
    )
    if heads:
        yield f"{counted(heads, 'head')} of the producer ranks drawn"
    slots = sum(_hidden_slots(shown))
    if slots:
        yield f"{counted(slots, 'slot')} of consumer ranks"


def _hidden_slots(shown: HeadMap) -> Iterator[int]:
    for box in shown.consumers:
        rows = [box] if isinstance(box, Fold) else [*box.before, *box.inside, *box.after]
        yield sum(row.slots for row in rows if isinstance(row, Fold))
