# SPDX-License-Identifier: Apache-2.0
"""A plan for a terminal, with rich."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

from rich.console import Console, Group
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from kvreshard.plan_words import (
    PROVED,
    copied_heads,
    group_title,
    offsets,
    sizes,
    totals,
    verdict,
    waiting,
)
from kvreshard.proofs.story.head_map import Fold, head_map_of
from kvreshard.proofs.story.words import counted, producers, who_holds_what

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.console import RenderableType

    from kvreshard.head_plan import HeadPlan
    from kvreshard.plan_request import GroupPlan, Planned
    from kvreshard.proofs.story.head_map import ConsumerBox

# A plan is read on one screen; the JSON form has all rows.
ROWS_SHOWN = 24


def print_plan(planned: Planned, console: Console) -> None:
    """Print the answer."""
    console.print(Text(verdict(planned), "bold red" if planned.faults else "bold green"))
    console.print(Text(PROVED))
    console.print(Text(f"Shape: {planned.shape.name}, from {planned.shape.source}"))
    for said in planned.shape.notes:
        console.print(Text(f"Note: {said}"))
    for said in planned.warnings:
        console.print(Text(f"Not checked: {said}", "yellow"))
    for group in planned.groups:
        console.print()
        console.print(Text(group_title(planned, group), "bold underline"))
        console.print(_group(group))
    console.print()
    console.print(Text(f"To see this again: {planned.command}", "dim"), soft_wrap=True)


def plan_text(planned: Planned) -> str:
    """Return the answer as text without colour, 100 columns wide."""
    out = io.StringIO()
    print_plan(planned, Console(file=out, width=100, highlight=False, force_terminal=False))
    return out.getvalue()


def _group(group: GroupPlan) -> Group:
    plan = group.plan
    parts: list[RenderableType] = [_heading("Who holds what")]
    parts += [
        _line(f"prefill: {who_holds_what(plan.producer_heads, 'p')}"),
        _line(f"decode: {who_holds_what(plan.consumer_heads, 'd')}"),
    ]
    parts += [_heading("Head map: each slot of a consumer rank's block, and who writes it")]
    parts += [_line(said) for said in _head_map(plan)]
    parts += [_heading("Copies of each block"), _copies(group)]
    left = len(plan.copies) - ROWS_SHOWN
    if left > 0:
        parts.append(_line(f"and {left:,} more, which --format json has"))
    parts += [_heading("Who waits for whom")]
    waits = [f"{who} {what}" for who, what in waiting(plan)]
    parts += [_line(said) for said in waits[:ROWS_SHOWN]]
    if len(waits) > ROWS_SHOWN:
        parts.append(_line(f"and {len(waits) - ROWS_SHOWN} more, which --format json has"))
    parts += [_heading("In all")]
    parts += [_line(said) for said in totals(group)]
    parts += [_line(said) for said in sizes(group)]
    return Group(*parts)


def _heading(said: str) -> Text:
    return Text(f"\n{said}", "bold")


def _line(said: str) -> Padding:
    return Padding(Text(said), (0, 0, 0, 2), expand=False)


def _copies(group: GroupPlan) -> Table:
    table = Table("from", "to", "heads", "source offset", "target offset", "length")
    for column in table.columns[3:]:
        column.justify = "right"
    joint = "\n" if len(group.regions) > 1 else ", "
    for copy in group.plan.copies[:ROWS_SHOWN]:
        numbers = copy.src_head_offset, copy.dst_head_offset, copy.head_count
        table.add_row(
            f"p{copy.producer_tp_rank}",
            f"d{copy.consumer_tp_rank}",
            copied_heads(copy),
            *(joint.join(offsets(number, group)) for number in numbers),
        )
    return table


def _head_map(plan: HeadPlan) -> Iterator[str]:
    """Yield the map that the picture draws, with the same rows left out."""
    shown = head_map_of(plan.producer_heads, plan.consumer_heads, plan.blocks)
    for box in shown.consumers:
        if isinstance(box, Fold):
            ranks = f"d{box.first}" if box.count == 1 else f"d{box.first} to d{box.last}"
            yield f"{ranks}: {counted(box.slots, 'slot')} left out, all as they should be"
        else:
            yield from _box(box)


def _box(box: ConsumerBox) -> Iterator[str]:
    for slot in (*box.before, *box.inside, *box.after):
        if isinstance(slot, Fold):
            yield f"d{box.tp_rank} slots {slot.first} to {slot.last}: left out"
            continue
        marks = ", ".join(mark.value for mark in slot.marks)
        who = producers([writer.producer_tp_rank for writer in slot.writers])
        yield f"d{box.tp_rank} slot {slot.slot}  head {slot.wanted}  <-- {who}  {marks}"
