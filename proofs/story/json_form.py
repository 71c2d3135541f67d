# SPDX-License-Identifier: Apache-2.0
"""A story as JSON.

The object has these keys, all of them always there. Ranks, heads and slots count from 0.

schema
    "kvreshard.story/1". The number goes up when a key goes away or changes its meaning; a new key
    may come without that.
planner
    name, sentence, and seen_in: a list of public reports, empty for a made-up planner.
verdict, consequence
    What goes wrong, and what it does to a request, each in one sentence.
input
    total_num_kv_heads, producer_tp_size, consumer_tp_size, election, bytes_per_head.
invariant
    name, sentence, consumer_tp_rank (where it was seen; null at a producer or a whole group), and
    seen: what was seen first.
also_violated
    Names of the other invariants that this input violates.
producer_heads, consumer_heads
    For each rank the heads that it holds, in the order of its block.
blocks
    For each consumer rank: consumer_tp_rank; expected_bytes, written_bytes (each counted once),
    missing_bytes, wrong_bytes (written with what does not belong there), doubled_bytes,
    outside_bytes (written outside the block); first_wrong_byte, an offset in the block, or null;
    empty_copies: producer ranks that sent a copy of no heads; and slots. A slot has slot,
    first_byte, wanted_head (null outside the block), marks ("ok", "MISSING", "DOUBLED",
    "WRONG HEAD", "READ OUTSIDE", "WRITE OUTSIDE") and writers: producer_tp_rank and head (null if
    it was read outside the producer's block).
peers
    For each rank: side ("consumer" or "producer"), tp_rank, counted (the ranks of the other side
    that it waits for or counts on) and actual (those that send to it, or that it sends to).
lengths
    null, or producer_heads and consumer_heads (how many one rank holds), tried, wrong_count, and
    wrong: the first of those that are wrong, each with producer_bytes, consumer_bytes, accepted,
    plannable.
why_this_input
    What was searched, in words.
reported
    null, or the input of the public report where it is another one: total_num_kv_heads,
    producer_tp_size, consumer_tp_size, verdict, command.
test
    The text of a pytest file for the reader's own planner.
command
    Tells the story again.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kvreshard.proofs.story.model import ConsumerBlock, PeerView, Slot, Story

SCHEMA = "kvreshard.story/1"


def as_json(story: Story) -> str:
    """Return a story as JSON, indented, without a newline at its end."""
    return json.dumps(document(story), indent=1)


def document(story: Story) -> dict[str, Any]:
    """Return a story as the object that is written."""
    return {
        "schema": SCHEMA,
        "planner": {
            "name": story.origin.name,
            "sentence": story.origin.sentence,
            "seen_in": list(story.origin.seen_in),
        },
        "verdict": story.verdict,
        "consequence": story.consequence,
        "input": {
            **_sizes(story.sizes),
            "election": story.election,
            "bytes_per_head": story.bytes_per_head,
        },
        "invariant": {
            "name": story.invariant,
            "sentence": story.invariant_sentence,
            "consumer_tp_rank": story.consumer_tp_rank,
            "seen": story.seen,
        },
        "also_violated": list(story.also_violated),
        "producer_heads": [list(held) for held in story.producer_heads],
        "consumer_heads": [list(held) for held in story.consumer_heads],
        "blocks": [_block(block) for block in story.blocks],
        "peers": [_peers(view) for view in story.peers],
        "lengths": _lengths(story),
        "why_this_input": story.why_this_input,
        "reported": story.reported
        and {
            **_sizes(story.reported.sizes),
            "verdict": story.reported.verdict,
            "command": story.reported.command,
        },
        "test": story.test,
        "command": story.command,
    }


def _sizes(sizes: tuple[int, int, int]) -> dict[str, int]:
    names = ("total_num_kv_heads", "producer_tp_size", "consumer_tp_size")
    return dict(zip(names, sizes, strict=True))


def _block(block: ConsumerBlock) -> dict[str, Any]:
    bad = block.first_bad_slot
    return {
        "consumer_tp_rank": block.consumer_tp_rank,
        "expected_bytes": block.expected,
        "written_bytes": block.written,
        "missing_bytes": block.missing,
        "wrong_bytes": block.wrong,
        "doubled_bytes": block.doubled,
        "outside_bytes": block.outside,
        "first_wrong_byte": None if bad is None else bad.slot * block.bytes_per_head,
        "empty_copies": list(block.empty_copies),
        "slots": [_slot(slot, block.bytes_per_head) for slot in block.slots],
    }


def _slot(slot: Slot, bytes_per_head: int) -> dict[str, Any]:
    return {
        "slot": slot.slot,
        "first_byte": slot.slot * bytes_per_head,
        "wanted_head": slot.wanted,
        "marks": [mark.value for mark in slot.marks],
        "writers": [
            {"producer_tp_rank": writer.producer_tp_rank, "head": writer.head}
            for writer in slot.writers
        ],
    }


def _peers(view: PeerView) -> dict[str, Any]:
    return {
        "side": view.side,
        "tp_rank": view.tp_rank,
        "counted": list(view.counted),
        "actual": list(view.actual),
    }


def _lengths(story: Story) -> dict[str, Any] | None:
    lengths = story.lengths
    if lengths is None:
        return None
    return {
        "producer_heads": lengths.producer_heads,
        "consumer_heads": lengths.consumer_heads,
        "tried": lengths.tried,
        "wrong_count": lengths.wrong_count,
        "wrong": [
            {
                "producer_bytes": case.producer_bytes,
                "consumer_bytes": case.consumer_bytes,
                "accepted": case.accepted,
                "plannable": case.plannable,
            }
            for case in lengths.wrong
        ],
    }
