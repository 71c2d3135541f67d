# SPDX-License-Identifier: Apache-2.0
"""The sentences of a story that all renderers share: input, bytes, invariants."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kvreshard.proofs.story.model import Mark
from kvreshard.proofs.story.words import counted, who_holds_what

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from kvreshard.proofs.story.model import ConsumerBlock, Slot, Story


def title(story: Story) -> str:
    """Say which planner is refuted, and in what."""
    H, P, D = story.sizes
    return f"{story.origin.name} is refuted at H={H}, P={P}, D={D}"


def input_rows(story: Story) -> tuple[tuple[str, str], ...]:
    """Return the input as pairs of what it is and its value with an explanation."""
    H, P, D = story.sizes
    return (
        (f"H = {H}", "KV heads of the model (total_num_kv_heads)"),
        (f"P = {P}", f"producer TP size (prefill): {who_holds_what(story.producer_heads, 'p')}"),
        (f"D = {D}", f"consumer TP size (decode): {who_holds_what(story.consumer_heads, 'd')}"),
        ("ranks", "p0 is producer rank 0, d0 is consumer rank 0"),
        ("bytes", f"{story.bytes_per_head:,} for one head in one block"),
        ("election", f"{story.election} (which replica of a head sends)"),
    )


def byte_sentences(story: Story) -> Iterator[str]:
    """Yield what of the block in question was written, and where its first wrong byte is."""
    if all(block.is_right for block in story.blocks):
        written = sum(block.written for block in story.blocks)
        yield f"The copies are right: each of the {written:,} bytes expected is written once."
    block = story.block
    if block is None or block.is_right:
        return
    rank = f"consumer rank {block.consumer_tp_rank}"
    yield (
        f"Block of {rank}: {block.written:,} of {block.expected:,} bytes written, "
        f"{block.missing:,} lost."
    )
    yield from _what_else(block)
    slot = block.first_bad_slot
    yield "No byte of it is wrong." if slot is None else _first_byte(block, slot)
    if len(story.blocks) > 1:
        yield _all_blocks(story.blocks)


def _what_else(block: ConsumerBlock) -> Iterator[str]:
    if block.wrong:
        yield f"Of the bytes written, {block.wrong:,} are not those of the head that belongs there."
    if block.doubled:
        yield f"Of the bytes written, {block.doubled:,} are written more than once."
    if block.outside:
        yield f"Beside the block, {block.outside:,} bytes are written."


def _first_byte(block: ConsumerBlock, slot: Slot) -> str:
    offset = slot.slot * block.bytes_per_head
    rank = f"consumer rank {block.consumer_tp_rank}"
    place = f"offset {offset:,} in the block of {rank}, where slot {slot.slot} starts"
    if slot.marks == (Mark.DOUBLED,):
        return f"First byte that comes twice: {place}; each copy holds the right head."
    reason = {
        Mark.MISSING: "never written",
        Mark.WRONG_HEAD: "written with another head",
        Mark.READ_OUTSIDE: "written with bytes from outside the producer's block",
        Mark.WRITE_OUTSIDE: "written, and not a byte of this block",
    }
    why = next(reason[mark] for mark in reason if mark in slot.marks)
    return f"First wrong byte: {place}: {why}."


def _all_blocks(blocks: Sequence[ConsumerBlock]) -> str:
    written, expected = sum(b.written for b in blocks), sum(b.expected for b in blocks)
    wrong = sum(not block.is_right for block in blocks)
    return (
        f"All consumer ranks together: {written:,} of {expected:,} bytes written; {wrong} of "
        f"{counted(len(blocks), 'block')} wrong."
    )


def seen_in(story: Story) -> str:
    """Say where the fault was reported."""
    reports = ", ".join(story.origin.seen_in)
    return f"Seen in: {reports}." if reports else "Made up, not reported anywhere."
