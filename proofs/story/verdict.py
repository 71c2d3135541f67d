# SPDX-License-Identifier: Apache-2.0
"""What goes wrong in a story, in one sentence, and what it does to a request, in another."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kvreshard.proofs.broken.names import (
    CONTENT,
    COVERED,
    HOLDER,
    LENGTHS,
    OVERLAP,
    PEERS,
    READ,
    WRITE,
)
from kvreshard.proofs.story.model import Mark
from kvreshard.proofs.story.words import counted, heads, peers_of, per_head, producers

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kvreshard.proofs.judge import Violation
    from kvreshard.proofs.story.model import ConsumerBlock, LengthCase, Lengths, PeerView, Slot

# For each invariant that copies can break, the marks that show it, the one that tells most first.
_SHOWN_BY = {
    COVERED: (Mark.MISSING, Mark.DOUBLED),
    OVERLAP: (Mark.DOUBLED,),
    READ: (Mark.READ_OUTSIDE,),
    WRITE: (Mark.WRITE_OUTSIDE,),
    CONTENT: (Mark.WRONG_HEAD, Mark.READ_OUTSIDE),
    HOLDER: (Mark.WRONG_HEAD,),
}

_EFFECT = {
    Mark.MISSING: (
        "What is not written keeps the bytes that were there before, and no transfer fails."
    ),
    Mark.DOUBLED: (
        "The same bytes are sent again, and where two writers differ it is left to chance which "
        "of them comes last."
    ),
    Mark.WRONG_HEAD: (
        "As many bytes arrive as are expected, and they are another head's: attention reads the "
        "wrong keys and values, and no transfer fails."
    ),
    Mark.READ_OUTSIDE: (
        "What is read belongs to another block, perhaps another request's, or the engine refuses "
        "an address outside the region."
    ),
    Mark.WRITE_OUTSIDE: (
        "What is written lands in a neighbouring block, perhaps another request's, or the engine "
        "refuses an address outside the region."
    ),
}


def verdict_of(
    violation: Violation,
    blocks: Sequence[ConsumerBlock],
    views: Sequence[PeerView],
    lengths: Lengths | None,
) -> str:
    """Return one sentence that says what goes wrong, to whom and how much of it."""
    H, P, D = (
        violation.total_num_kv_heads,
        violation.producer_tp_size,
        violation.consumer_tp_size,
    )
    moved = f"With {counted(H, 'KV head')} moved from TP {P} to TP {D}, "
    if violation.invariant == PEERS:
        return moved + _peer_fault(_first_wrong(views)) + "."
    if violation.invariant == LENGTHS and lengths:
        return moved + _length_fault(lengths, lengths.wrong[0]) + "."
    block = _block(violation, blocks)
    mark = _mark(violation, block)
    return moved + (_slot_fault(block, mark) if mark else _empty_fault(block)) + "."


def consequence_of(
    violation: Violation,
    blocks: Sequence[ConsumerBlock],
    views: Sequence[PeerView],
    lengths: Lengths | None,
) -> str:
    """Return what the fault does to a request."""
    if violation.invariant == PEERS:
        return _peer_effect(_first_wrong(views))
    if violation.invariant == LENGTHS and lengths:
        return _length_effect(lengths.wrong[0])
    mark = _mark(violation, _block(violation, blocks))
    if mark is Mark.MISSING:
        return _EFFECT[mark] + _taken_for_ready(views, violation.consumer_tp_rank)
    return _EFFECT[mark] if mark else "A peer is kept waiting for a transfer that moves nothing."


def _taken_for_ready(views: Sequence[PeerView], rank: int | None) -> str:
    """Say that a consumer that lacks bytes has nothing left to wait for, if it is so."""
    for view in views:
        if view.side == "consumer" and view.tp_rank == rank and view.is_right:
            waits = f" The consumer waits for {producers(view.counted)}"
            return f"{waits}, and then takes the request for ready."
    return ""


def _block(violation: Violation, blocks: Sequence[ConsumerBlock]) -> ConsumerBlock:
    return next(one for one in blocks if one.consumer_tp_rank == violation.consumer_tp_rank)


def _mark(violation: Violation, block: ConsumerBlock) -> Mark | None:
    seen = {mark for slot in block.slots for mark in slot.marks}
    return next((mark for mark in _SHOWN_BY[violation.invariant] if mark in seen), None)


def _slot_fault(block: ConsumerBlock, mark: Mark) -> str:
    slots = [slot for slot in block.slots if mark in slot.marks]
    first, rank = slots[0], f"consumer rank {block.consumer_tp_rank}"
    size = f"{block.bytes_with(mark):,} of {block.expected:,} bytes of its block"
    if mark is Mark.MISSING:
        verb = "reaches" if len(slots) == 1 else "reach"
        return f"{heads(_wanted(slots))} never {verb} {rank}: {size} are lost"
    if mark is Mark.DOUBLED:
        who, head = producers([one.producer_tp_rank for one in first.writers]), _wanted([first])
        return f"{heads(head)} of {rank} is written by {who}: {size} are written more than once"
    if mark is Mark.WRONG_HEAD:
        bad = next(w for w in first.writers if w.head not in (None, first.wanted))
        return (
            f"p{bad.producer_tp_rank} writes head {bad.head} where {rank} keeps "
            f"{heads(_wanted([first]))}: {size} hold another head"
        )
    if mark is Mark.READ_OUTSIDE:
        bad = next(writer for writer in first.writers if writer.head is None)
        return (
            f"p{bad.producer_tp_rank} reads outside its own block for {rank}: "
            f"{block.bytes_with(mark):,} bytes that are sent are no head of it"
        )
    who = producers([writer.producer_tp_rank for writer in first.writers])
    many = block.bytes_with(mark)
    verb = "writes" if len(first.writers) == 1 else "write"
    return (
        f"{who} {verb} outside the block of {rank}: {many:,} bytes land beside its "
        f"{block.expected:,}"
    )


def _empty_fault(block: ConsumerBlock) -> str:
    who = producers(block.empty_copies)
    verb = "sends" if len(block.empty_copies) == 1 else "send"
    return f"{who} {verb} consumer rank {block.consumer_tp_rank} a copy of no heads"


def _wanted(slots: Sequence[Slot]) -> list[int]:
    return [slot.wanted for slot in slots if slot.wanted is not None]


def _first_wrong(views: Sequence[PeerView]) -> PeerView:
    return next(view for view in views if not view.is_right)


def _peer_fault(view: PeerView) -> str:
    waits, sends, silent = _RECKONS[view.side]
    unasked = sorted({peer for peer in view.in_vain if peer not in view.actual})
    again = sorted({peer for peer in view.in_vain if peer in view.actual})
    faults = []
    if unasked:
        faults.append(f"{waits[0]} {peers_of(view.side, unasked)}, {silent}")
    if again:
        faults.append(f"{waits[0]} {peers_of(view.side, again)} more than once")
    if view.overlooked:
        faults.append(f"{waits[1]} {peers_of(view.side, view.overlooked)}, {sends}")
    if not faults:
        faults.append(f"{waits[0]} {peers_of(view.side, view.counted)} in another order")
    return f"{view.side} rank {view.tp_rank} {', and '.join(faults)}"


_RECKONS = {
    "consumer": (
        ("waits for", "does not wait for"),
        "from whom bytes come",
        "from whom nothing comes",
    ),
    "producer": (
        ("counts on", "does not count on"),
        "to whom it sends",
        "to whom it sends nothing",
    ),
}


def _peer_effect(view: PeerView) -> str:
    if view.side == "consumer":
        if view.in_vain:
            return "The consumer never has all that it waits for, and the request hangs."
        return "The consumer takes the request for ready before all of its bytes are there."
    if view.in_vain:
        return "The producer waits for a peer that never answers, and keeps the request's blocks."
    return "The producer may free blocks that are still to be read."


def _length_fault(lengths: Lengths, case: LengthCase) -> str:
    mine, theirs = lengths.producer_heads, lengths.consumer_heads
    pair = f"blocks of {case.producer_bytes:,} and {case.consumer_bytes:,} bytes"
    both = f"{counted(mine, 'head')} and {counted(theirs, 'head')}"
    holding = f"{counted(mine, 'head')} each" if mine == theirs else both
    each = per_head(case.producer_bytes, mine), per_head(case.consumer_bytes, theirs)
    if case.plannable:
        return f"the check refuses {pair}, which fit: {holding}, of {each[0]} bytes"
    return (
        f"the check accepts {pair}, which do not fit: {holding}, of {each[0]} and {each[1]} bytes"
    )


def _length_effect(case: LengthCase) -> str:
    if case.plannable:
        return "A pair of groups that could be served is turned away."
    return (
        "The plan moves whole heads of one size, which these blocks do not have, so that copies "
        "start or end inside a head."
    )
