# SPDX-License-Identifier: Apache-2.0
"""Tell a counterexample of an audit as a story: the blocks that the copies leave, and the words."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

from kvreshard.proofs.audit.judging import IN_SCOPE, Plans, judge_plans
from kvreshard.proofs.judge import Violation, held_heads
from kvreshard.proofs.story.model import ConsumerBlock, Origin, Slot, Story, Writer
from kvreshard.proofs.story.paste import pasted_test
from kvreshard.proofs.story.verdict import consequence_of, verdict_of
from kvreshard.spec.invariants import INVARIANTS

if TYPE_CHECKING:
    from collections.abc import Sequence

ITS_OWN = "the planner's own"
# Slots before and after a block that are shown where something is written there.
SHOWN_OUTSIDE = 256


def story_of_plans(plans: Plans, function: str, command: str, why: str) -> Story | None:
    """Return the story of a plan, or None where it breaks nothing.

    Args:
        plans: every copy of it.
        function: the audited function.
        command: tells the story again.
        why: what is known of smaller inputs.
    """
    found = list(judge_plans(plans))
    if not found:
        return None
    violated = {violation.invariant for violation in found}
    names = [name for name in IN_SCOPE if name in violated]
    first = next(violation for violation in found if violation.invariant == names[0])
    blocks, piece = consumer_blocks(plans)
    H, P, D = plans.sizes
    story = Story(
        origin=Origin(function, "The audited function, asked through the contract."),
        verdict=verdict_of(first, blocks, (), None),
        consequence=_consequence(first, blocks, plans),
        total_num_kv_heads=H,
        producer_tp_size=P,
        consumer_tp_size=D,
        election=ITS_OWN,
        bytes_per_head=plans.bytes_per_head,
        invariant=first.invariant,
        invariant_sentence=INVARIANTS[first.invariant].sentence,
        also_violated=tuple(names[1:]),
        seen=first.seen,
        consumer_tp_rank=first.consumer_tp_rank,
        producer_heads=tuple(held_heads(H, P, p) for p in range(P)),
        consumer_heads=tuple(held_heads(H, D, d) for d in range(D)),
        blocks=blocks,
        why_this_input=" ".join(
            filter(None, (why, _of_pieces(plans, piece), _of_rest(plans, piece)))
        ),
        command=command,
    )
    return replace(story, test=pasted_test(story))


def _consequence(violation: Violation, blocks: Sequence[ConsumerBlock], plans: Plans) -> str:
    if plans.raised and not plans.copies:
        what = next(iter(plans.raised.values()))
        return f"The planner raises {what}: the request fails, and nothing is sent."
    return consequence_of(violation, blocks, (), None)


def _of_pieces(plans: Plans, piece: int) -> str:
    if piece == plans.bytes_per_head:
        return ""
    many = plans.bytes_per_head // piece
    return (
        f"A copy starts or ends within a head, so that what is numbered as heads here are pieces "
        f"of {piece:,} bytes, {many:,} to a head."
    )


def _of_rest(plans: Plans, piece: int) -> str:
    H, _, D = plans.sizes
    most = len(held_heads(H, D, 0)) * plans.bytes_per_head + SHOWN_OUTSIDE * piece
    copies = [copy for each in plans.copies.values() for copy in each]
    if all(-SHOWN_OUTSIDE * piece <= dst and dst + count <= most for _, dst, count in copies):
        return ""
    return (
        f"What is written further than {SHOWN_OUTSIDE * piece:,} bytes outside a block is neither "
        "shown nor counted here."
    )


def consumer_blocks(plans: Plans) -> tuple[tuple[ConsumerBlock, ...], int]:
    """Return what each consumer rank's block has after every copy, and the bytes of one slot.

    A slot is a head, or where a copy starts or ends within a head, the largest piece of one such
    that none does; heads are then numbered piece by piece. What is written further than
    `SHOWN_OUTSIDE` slots outside the block is left out.
    """
    piece = piece_of(plans)
    return tuple(_block(plans, d, piece) for d in range(plans.sizes[2])), piece


def piece_of(plans: Plans) -> int:
    """Return the bytes of a head, or of the largest piece of one that no copy cuts."""
    numbers = (n for copies in plans.copies.values() for copy in copies for n in copy)
    return math.gcd(plans.bytes_per_head, *numbers)


def _block(plans: Plans, d: int, piece: int) -> ConsumerBlock:
    H, P, D = plans.sizes
    own = _pieces(held_heads(H, D, d), plans.bytes_per_head // piece)
    writers: dict[int, list[Writer]] = {slot: [] for slot in range(len(own))}
    empty = []
    for p in range(P):
        held = _pieces(held_heads(H, P, p), plans.bytes_per_head // piece)
        for src, dst, count in plans.copies.get((p, d), ()):
            if count < 1:
                empty.append(p)
            first = dst // piece
            shown = range(
                max(-first - SHOWN_OUTSIDE, 0),
                min(count // piece, len(own) + SHOWN_OUTSIDE - first),
            )
            for k in shown:
                at = src // piece + k
                head = held[at] if 0 <= at < len(held) else None
                writers.setdefault(first + k, []).append(Writer(p, head))
    slots = tuple(
        Slot(slot, own[slot] if 0 <= slot < len(own) else None, tuple(writers[slot]))
        for slot in sorted(writers)
    )
    return ConsumerBlock(d, slots, piece, tuple(empty))


def _pieces(heads: Sequence[int], many: int) -> tuple[int, ...]:
    return tuple(head * many + part for head in heads for part in range(many))
