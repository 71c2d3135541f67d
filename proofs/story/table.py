# SPDX-License-Identifier: Apache-2.0
"""The tables of a story as rows of text, which the renderers only align."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from kvreshard.proofs.story.model import Mark
from kvreshard.proofs.story.words import counted, peers_of, per_head, producers

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kvreshard.proofs.story.model import ConsumerBlock, LengthCase, PeerView, Slot, Story

# A story is read on one screen; the JSON has all rows.
ROWS_SHOWN = 24


@dataclass(frozen=True)
class Table:
    """A table: its title, the names of its columns, its rows, and what it leaves out.

    A cell may have several lines.
    """

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    left_out: str = ""


def tables_of(story: Story) -> tuple[Table, ...]:
    """Return the tables that show a story's fault, and only those."""
    made = []
    if story.lengths:
        made.append(_length_table(story))
    if any(not block.is_right for block in story.blocks):
        made.append(head_map(story))
    if any(not view.is_right for view in story.peers):
        made.append(_peer_table(story.peers))
    return tuple(made)


def head_map(story: Story) -> Table:
    """Return which producer wrote which head, slot by slot."""
    rows = [
        (_is_bad(slot), _slot_row(block, slot)) for block in story.blocks for slot in block.slots
    ]
    rows += [
        (True, (f"d{block.consumer_tp_rank}", "-", "-", "-", f"no head from p{p}", "<-- NO HEADS"))
        for block in story.blocks
        for p in block.empty_copies
    ]
    columns = ("rank", "slot", "from byte", "must hold", "now holds", "")
    title = "Who wrote what, slot by slot of each consumer rank's block"
    return Table(title, columns, *_shown(rows, "slot"))


def _is_bad(slot: Slot) -> bool:
    return slot.marks != (Mark.OK,)


def _slot_row(block: ConsumerBlock, slot: Slot) -> tuple[str, ...]:
    size = block.bytes_per_head
    return (
        f"d{block.consumer_tp_rank}",
        str(slot.slot),
        f"{slot.slot * size:,}",
        "no slot" if slot.wanted is None else f"head {slot.wanted}",
        _written(slot),
        "\n".join(f"<-- {mark.value}" if _is_bad(slot) else mark.value for mark in slot.marks),
    )


def _written(slot: Slot) -> str:
    """Say what a slot holds; heads of several producers on a line each."""
    ranks: dict[int | None, list[int]] = {}
    for writer in slot.writers:
        ranks.setdefault(writer.head, []).append(writer.producer_tp_rank)
    told = [
        f"not a head of {producers(who)}" if head is None else f"head {head} from {producers(who)}"
        for head, who in ranks.items()
    ]
    return "\n".join(told) or "nothing new"


def _peer_table(views: Sequence[PeerView]) -> Table:
    rows = [(not view.is_right, _peer_row(view)) for view in views]
    columns = ("rank", "reckons with", "really", "")
    title = "Who waits for whom: a consumer for its senders, a producer for those it sends to"
    return Table(title, columns, *_shown(rows, "rank"))


def _peer_row(view: PeerView) -> tuple[str, ...]:
    consumer = view.side == "consumer"
    counted_on, real = peers_of(view.side, view.counted), peers_of(view.side, view.actual)
    faults = [f"IN VAIN: {peers_of(view.side, view.in_vain)}"] if view.in_vain else []
    if view.overlooked:
        faults.append(f"OVERLOOKED: {peers_of(view.side, view.overlooked)}")
    if not faults:
        faults = ["ANOTHER ORDER"]
    return (
        f"d{view.tp_rank}" if consumer else f"p{view.tp_rank}",
        f"waits for {counted_on}" if consumer else f"counts on {counted_on}",
        f"gets from {real}" if consumer else f"sends to {real}",
        "ok" if view.is_right else "\n".join(f"<-- {fault}" for fault in faults),
    )


def _length_table(story: Story) -> Table:
    lengths = story.lengths
    if lengths is None:
        raise ValueError("lengths=None; legal here is a story about the length check")
    rows = [
        (True, _length_row(case, lengths.producer_heads, lengths.consumer_heads))
        for case in lengths.wrong[:_LENGTHS_SHOWN]
    ]
    title = (
        f"What the length check says to blocks of so many bytes: a producer's holds "
        f"{counted(lengths.producer_heads, 'head')}, a consumer's {lengths.consumer_heads}"
    )
    columns = ("producer", "consumer", "bytes per head", "check says", "right is")
    left = lengths.wrong_count - len(rows)
    note = f"of {lengths.tried:,} pairs of lengths tried, {lengths.wrong_count:,} are judged wrong"
    shown = tuple(row for _, row in rows)
    return Table(title, columns, shown, note + ("; the first are shown" if left else ""))


_LENGTHS_SHOWN = 6


def _length_row(case: LengthCase, mine: int, theirs: int) -> tuple[str, ...]:
    each = f"{per_head(case.producer_bytes, mine)} and {per_head(case.consumer_bytes, theirs)}"
    return (
        f"{case.producer_bytes:,}",
        f"{case.consumer_bytes:,}",
        each,
        "<-- ACCEPTED" if case.accepted else "<-- REFUSED",
        "accept" if case.plannable else "refuse",
    )


def _shown(
    rows: Sequence[tuple[bool, tuple[str, ...]]], what: str
) -> tuple[tuple[tuple[str, ...], ...], str]:
    """Return the rows to show, and a note on the others: all if they fit, else the bad ones."""
    if len(rows) <= ROWS_SHOWN:
        return tuple(row for _, row in rows), ""
    bad = [row for is_bad, row in rows if is_bad]
    fine, more = len(rows) - len(bad), max(len(bad) - ROWS_SHOWN, 0)
    notes = [f"{counted(fine, what)} that {'is' if fine == 1 else 'are'} ok"] if fine else []
    notes += [f"{counted(more, what)} more like these"] if more else []
    return tuple(bad[:ROWS_SHOWN]), f"not shown: {' and '.join(notes)}"
