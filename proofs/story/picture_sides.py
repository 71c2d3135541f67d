# SPDX-License-Identifier: Apache-2.0
"""The two sides of a head map's picture: producer ranks with heads, consumer ranks with slots."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from kvreshard.proofs.story.head_map import Fold, Kind, is_faulty
from kvreshard.proofs.story.model import Mark
from kvreshard.proofs.story.svg import element, text
from kvreshard.proofs.story.words import counted, heads, producers

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kvreshard.proofs.story.head_map import ConsumerBox, HeadMap, ProducerBox
    from kvreshard.proofs.story.model import Slot

# In units of the picture, which is scaled to the width that there is.
WIDTH = 520
LEFT_EDGE, RIGHT_EDGE = 126, 246  # where cells end and begin, and copies run between
LINE = 16
_CELL_WIDTH, _ROW, _PAD, _GAP = 82, 30, 4, 10
_LEFT_BOX, _LEFT_CELL = 2, LEFT_EDGE - _CELL_WIDTH
_RIGHT_TEXT = RIGHT_EDGE + _CELL_WIDTH + 6
_RIGHT_BOX_END = WIDTH - 2
# Letters that fit a line of small text, in each place.
_IN_CELL, _IN_LEFT_ROW, _IN_RIGHT_ROW, _IN_SLOT = 12, 17, 36, 21

SIGNS = {
    Mark.MISSING: "\u00d7",
    Mark.DOUBLED: "2\u00d7",
    Mark.WRONG_HEAD: "\u2260",
    Mark.READ_OUTSIDE: "!",
    Mark.WRITE_OUTSIDE: "!",
}
NO_HEADS = "! NO HEADS"


@dataclass
class Side:
    """One side of the picture while it is laid out, from its top downwards.

    Attributes:
        height: where the next row starts.
        drawn: elements so far.
        spans: from a thing to its upper and lower edge: ("head", rank, head), ("rank", rank) and
            ("outside", rank) of a producer, ("slot", rank, slot) and ("empty", rank, producer)
            of a consumer.
    """

    height: float = 0
    drawn: list[str] = field(default_factory=list)
    spans: dict[tuple[str | int | None, ...], tuple[float, float]] = field(default_factory=dict)

    def take(self, height: float) -> float:
        """Use so much of the height, and return where that starts."""
        top = self.height
        self.height += height
        return top


def words(x: float, y: float, said: str, name: str) -> str:
    """Return a line of text of a class."""
    return element("text", {"x": x, "y": y, "class": name, "fill": "currentColor"}, text(said))


def producer_side(shown: HeadMap) -> Side:
    """Lay out the producer ranks."""
    side = Side()
    for one in shown.producers:
        if isinstance(one, Fold):
            said = f"{producers(range(one.first, one.last + 1))}: {_left_out(one.count, 'rank')}"
            _fold(side, said, _LEFT_BOX, LEFT_EDGE + _PAD, _IN_LEFT_ROW)
        else:
            _producer_box(side, one)
        side.take(_GAP)
    return side


def _left_out(count: int, one: str) -> str:
    return "left out" if count == 1 else f"{counted(count, one)} left out"


def _producer_box(side: Side, box: ProducerBox) -> None:
    outer, side.drawn = side.drawn, []
    top = side.take(_PAD)
    for one in box.heads:
        if isinstance(one, Fold):
            said = f"{counted(one.count, 'head')} left out"
            _fold(side, said, _LEFT_CELL, LEFT_EDGE, _IN_CELL)
            continue
        y = side.take(_ROW)
        side.spans["head", box.tp_rank, one] = y, y + _ROW
        side.drawn.append(_cell(_LEFT_CELL, y, _ROW, f"head {one}", "held"))
    bottom = side.take(_PAD) + _PAD
    side.spans["rank", box.tp_rank] = top, bottom
    frame = _frame(_LEFT_BOX, LEFT_EDGE + _PAD, top, bottom)
    label = words(_LEFT_BOX + 8, (top + bottom) / 2 + 5, f"p{box.tp_rank}", "rank")
    if box.read_outside:
        y = side.take(_ROW + _PAD) + _PAD
        side.spans["outside", box.tp_rank] = y, y + _ROW
        side.drawn.append(_cell(_LEFT_CELL, y, _ROW, "outside", Kind.READ_OUTSIDE.value))
    attributes: dict[str, str | float] = {"class": "producer", "data-rank": box.tp_rank}
    side.drawn = [*outer, element("g", attributes, frame, label, *side.drawn)]


def consumer_side(shown: HeadMap) -> Side:
    """Lay out the consumer ranks."""
    side = Side()
    for one in shown.consumers:
        if isinstance(one, Fold):
            ranks = f"d{one.first}" if one.count == 1 else f"d{one.first} to d{one.last}"
            said = f"{ranks}: {_left_out(one.count, 'rank')}, {of_slots(one)}"
            _fold(side, said, RIGHT_EDGE - _PAD, _RIGHT_BOX_END, _IN_RIGHT_ROW)
        else:
            _consumer_box(side, one)
        side.take(_GAP)
    if shown.unknown:
        said = f"{counted(len(shown.unknown), 'other consumer rank')}: not known what they got"
        _fold(side, said, RIGHT_EDGE - _PAD, _RIGHT_BOX_END, _IN_RIGHT_ROW)
        side.take(_GAP)
    return side


def of_slots(fold: Fold) -> str:
    """Say how many slots are left out with a fold, and what is wrong with them."""
    if not fold.marks:
        return f"{counted(fold.slots, 'slot')} as {'it' if fold.slots == 1 else 'they'} should be"
    marks = ", ".join(f"{count} {mark.value}" for mark, count in fold.marks)
    return f"{counted(fold.slots, 'slot')}, of them {marks}"


def _consumer_box(side: Side, box: ConsumerBox) -> None:
    outer, side.drawn = side.drawn, []
    for one in box.before:
        _slot(side, box.tp_rank, one)
    top = side.take(_PAD)
    for one in box.inside:
        _slot(side, box.tp_rank, one)
    bottom = side.take(_PAD) + _PAD
    for one in box.after:
        _slot(side, box.tp_rank, one)
    for producer in box.empty_copies:
        _empty_copy(side, box.tp_rank, producer)
    frame = _frame(RIGHT_EDGE - _PAD, _RIGHT_BOX_END, top, bottom)
    label = words(_RIGHT_BOX_END - 8, (top + bottom) / 2 + 5, f"d{box.tp_rank}", "rank end")
    attributes: dict[str, str | float] = {"class": "consumer", "data-rank": box.tp_rank}
    side.drawn = [*outer, element("g", attributes, frame, label, *side.drawn)]


def _slot(side: Side, rank: int, slot: Slot | Fold) -> None:
    if isinstance(slot, Fold):
        which = f"slot {slot.first}"
        if slot.count > 1:
            which = f"slots {slot.first} to {slot.last}"
        said = f"{which} left out: {of_slots(slot)}"
        _fold(side, said, RIGHT_EDGE, _RIGHT_BOX_END - 40, _IN_RIGHT_ROW - 6)
        return
    lines = list(_slot_lines(slot))
    height = max(_ROW, LINE * len(lines) + 8)
    y = side.take(height)
    side.spans["slot", rank, slot.slot] = y, y + height
    name = mark_name(slot.marks[0])
    said = f"slot {slot.slot}" if slot.wanted is None else f"head {slot.wanted}"
    first = y + height / 2 - LINE * (len(lines) - 1) / 2 + 5
    side.drawn.append(
        element(
            "g",
            {"class": f"slot {name}", "data-slot": slot.slot},
            _cell(RIGHT_EDGE, y, height, said, name),
            *(words(_RIGHT_TEXT, first + LINE * k, *line) for k, line in enumerate(lines)),
        )
    )


def mark_name(mark: Mark) -> str:
    """Return the class of a mark in the picture's style."""
    return mark.value.lower().replace(" ", "-")


def _slot_lines(slot: Slot) -> Iterator[tuple[str, str]]:
    for mark in slot.marks:
        if mark is not Mark.OK:
            yield f"{SIGNS[mark]} {mark.value}", f"mark {mark_name(mark)}"
    for said in _written(slot):
        for line in textwrap.wrap(said, _IN_SLOT):
            yield line, "small"


def _written(slot: Slot) -> Iterator[str]:
    ranks: dict[int | None, list[int]] = {}
    for writer in slot.writers:
        ranks.setdefault(writer.head, []).append(writer.producer_tp_rank)
    for head, who in ranks.items():
        what = "no head" if head is None else heads([head])
        yield f"{what} from {producers(who)}" if is_faulty(slot) else f"from {producers(who)}"
    if not ranks:
        yield "nobody writes it"


def _empty_copy(side: Side, rank: int, producer: int) -> None:
    y = side.take(_ROW)
    side.spans["empty", rank, producer] = y, y + _ROW
    said = f"{NO_HEADS} from p{producer}"
    side.drawn.append(words(RIGHT_EDGE + 4, y + _ROW / 2 + 5, said, "mark empty"))


# Shapes


def _frame(left: float, right: float, top: float, bottom: float) -> str:
    place = {"x": left, "y": top, "width": right - left, "height": bottom - top}
    return element("rect", {**place, "class": "frame", "stroke": "currentColor", "rx": 6})


def _cell(x: float, y: float, height: float, said: str, name: str) -> str:
    place = {"x": x + 1, "y": y + 2, "width": _CELL_WIDTH - 2, "height": height - 4}
    boxes = [element("rect", {**place, "class": f"cell {name}", "stroke": "currentColor", "rx": 3})]
    if name == mark_name(Mark.DOUBLED):
        inner = {"x": x + 4, "y": y + 5, "width": _CELL_WIDTH - 8, "height": height - 10}
        boxes.append(element("rect", {**inner, "class": "cell inner", "stroke": "currentColor"}))
    return "".join((*boxes, words(x + _CELL_WIDTH / 2, y + height / 2 + 5, said, "in-cell")))


def _fold(side: Side, said: str, left: float, right: float, letters: int) -> None:
    lines = textwrap.wrap(said, letters)
    height = LINE * len(lines) + 10
    y = side.take(height)
    place = {"x": left + 1, "y": y + 2, "width": right - left - 2, "height": height - 4}
    box = element("rect", {**place, "class": "fold", "stroke": "currentColor", "rx": 3})
    told = (words(left + 8, y + LINE * (k + 1) + 2, line, "small") for k, line in enumerate(lines))
    side.drawn.append(element("g", {"class": "left-out"}, box, *told))
