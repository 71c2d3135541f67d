# SPDX-License-Identifier: Apache-2.0
"""Run a planner on one input, judge it, and put what was seen into a story."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

from kvreshard.proofs.broken.names import LENGTHS
from kvreshard.proofs.judge import Copy, Subject, Violation, held_heads, judge
from kvreshard.proofs.smallest import check_input, search
from kvreshard.proofs.story.model import (
    ConsumerBlock,
    Elsewhere,
    LengthCase,
    Lengths,
    Origin,
    PeerView,
    Slot,
    Story,
    Writer,
)
from kvreshard.proofs.story.paste import pasted_test
from kvreshard.proofs.story.verdict import consequence_of, verdict_of
from kvreshard.proofs.story.words import counted
from kvreshard.spec.invariants import INVARIANTS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kvreshard.proofs.broken import BrokenPlanner
    from kvreshard.proofs.smallest import Search

    Sizes = tuple[int, int, int]

ITS_OWN = "the planner's own"


def story_of(
    planner: BrokenPlanner, sizes: Sizes | None = None, bytes_per_head: int | None = None
) -> Story | None:
    """Return the story of a broken planner, or None where it handles the input right.

    Args:
        planner: the planner.
        sizes: H, P and D, legal and in the planner's domain; the smallest that fail, if None.
        bytes_per_head: bytes of one head in one block; the planner's own number, if None.

    Raises:
        ValueError: the sizes are not of the planner's domain, or there are no bytes.
    """
    size = planner.bytes_per_head if bytes_per_head is None else bytes_per_head
    if size < 1:
        raise ValueError(f"bytes_per_head={size}; legal: at least 1")
    if sizes is not None:
        check_input(planner, sizes)
    searched = search(planner)
    at = sizes or next(iter(searched.failing), None)
    story = _told(planner, at, size) if at else None
    if story is None:
        return None
    story = replace(
        story,
        why_this_input=_why(planner, story.sizes, searched),
        reported=_reported(planner, story.sizes, size),
    )
    return replace(story, test=pasted_test(story))


def command_of(planner: BrokenPlanner, sizes: Sizes, bytes_per_head: int) -> str:
    """Return the command that tells the story of a planner at these sizes."""
    command = f"kvreshard refute {planner.name} --at {' '.join(map(str, sizes))}"
    if bytes_per_head != planner.bytes_per_head:
        command += f" --bytes-per-head {bytes_per_head}"
    return command


def _told(planner: BrokenPlanner, sizes: Sizes, bytes_per_head: int) -> Story | None:
    subject = planner.subject
    found = list(judge(subject, *sizes))
    violated = {violation.invariant for violation in found}
    in_order = [name for name in planner.invariants if name in violated]
    in_order += sorted(violated - set(in_order))
    if not in_order:
        return None
    H, P, D = sizes
    first = next(violation for violation in found if violation.invariant == in_order[0])
    blocks, views = consumer_blocks(subject, sizes, bytes_per_head), peer_views(subject, sizes)
    lengths = tried_lengths(subject, sizes, bytes_per_head) if LENGTHS in violated else None
    return Story(
        origin=Origin(planner.name, planner.sentence, planner.seen_in),
        verdict=verdict_of(first, blocks, views, lengths),
        consequence=consequence_of(first, blocks, views, lengths),
        total_num_kv_heads=H,
        producer_tp_size=P,
        consumer_tp_size=D,
        election=ITS_OWN,
        bytes_per_head=bytes_per_head,
        invariant=first.invariant,
        invariant_sentence=INVARIANTS[first.invariant].sentence,
        also_violated=tuple(in_order[1:]),
        seen=first.seen,
        consumer_tp_rank=first.consumer_tp_rank,
        producer_heads=tuple(held_heads(H, P, p) for p in range(P)),
        consumer_heads=tuple(held_heads(H, D, d) for d in range(D)),
        blocks=blocks,
        peers=views,
        lengths=lengths,
        command=command_of(planner, sizes, bytes_per_head),
    )


def consumer_blocks(
    subject: Subject, sizes: Sizes, bytes_per_head: int
) -> tuple[ConsumerBlock, ...]:
    """Return what each consumer rank's block has after every copy of the plan."""
    H, P, D = sizes
    made = []
    for d in range(D):
        copies = {p: subject.plan(H, P, p, D, d) for p in range(P)}
        sent = {p: copy for p, copy in copies.items() if copy.sends}
        own = held_heads(H, D, d)
        empty = tuple(p for p, copy in sent.items() if copy.head_count < 1)
        made.append(ConsumerBlock(d, _slots(sent, own, H, P), bytes_per_head, empty))
    return tuple(made)


def _slots(sent: dict[int, Copy], own: Sequence[int], H: int, P: int) -> tuple[Slot, ...]:
    writers: dict[int, list[Writer]] = {slot: [] for slot in range(len(own))}
    for p, copy in sent.items():
        held = held_heads(H, P, p)
        for k in range(copy.head_count):
            at = copy.src_head_offset + k
            head = held[at] if 0 <= at < len(held) else None
            writers.setdefault(copy.dst_head_offset + k, []).append(Writer(p, head))
    return tuple(
        Slot(slot, own[slot] if 0 <= slot < len(own) else None, tuple(writers[slot]))
        for slot in sorted(writers)
    )


def peer_views(subject: Subject, sizes: Sizes) -> tuple[PeerView, ...]:
    """Return whom each rank reckons with and who is there, consumers first."""
    H, P, D = sizes
    sends = {(p, d): subject.plan(H, P, p, D, d).sends for p in range(P) for d in range(D)}
    waiting = (
        PeerView(
            "consumer",
            d,
            tuple(subject.senders(H, P, D, d)),
            tuple(p for p in range(P) if sends[p, d]),
        )
        for d in range(D)
    )
    counting = (
        PeerView(
            "producer",
            p,
            tuple(subject.receivers(H, P, p, D)),
            tuple(d for d in range(D) if sends[p, d]),
        )
        for p in range(P)
    )
    return (*waiting, *counting)


def tried_lengths(subject: Subject, sizes: Sizes, bytes_per_head: int) -> Lengths:
    """Return what the length check gets wrong: for blocks of the given size, then small ones."""
    H, P, D = sizes
    mine, theirs = len(held_heads(H, P, 0)), len(held_heads(H, D, 0))
    whole = mine * bytes_per_head, theirs * bytes_per_head
    step = math.gcd(mine, theirs)
    # Right, right on one side only, and in the right ratio without being a whole number per head.
    pairs = [whole, (whole[0], 2 * whole[1]), (whole[0] + mine // step, whole[1] + theirs // step)]
    # No, one, two and three bytes per head on either side, and everything between.
    pairs += [(a, b) for a in range(3 * mine + 2) for b in range(4 * theirs + 1)]
    cases = [
        LengthCase(
            a,
            b,
            accepted=subject.accepts(H, P, D, a, b),
            plannable=a >= 1 and a % mine == b % theirs == 0 and a // mine == b // theirs,
        )
        for a, b in dict.fromkeys(pairs)
    ]
    wrong = [case for case in cases if not case.is_right]
    return Lengths(mine, theirs, len(cases), len(wrong), tuple(wrong[:_WRONG_LENGTHS_KEPT]))


_WRONG_LENGTHS_KEPT = 24


def _why(planner: BrokenPlanner, sizes: Sizes, searched: Search) -> str:
    tried = (
        f"All {counted(searched.tried, 'input')} with H, P and D up to {searched.maximum} that the "
        f"planner is meant for ({planner.domain}) were tried: {len(searched.failing)} fail."
    )
    H, P, D = sizes
    smallest = next(iter(searched.failing), None)
    if smallest == sizes:
        smaller = [
            *([f"none fails with fewer heads than H={H}"] if H > 1 else []),
            *([f"with H={H} none fails with a smaller P than {P}"] if P > 1 else []),
            *([f"with H={H} and P={P} none fails with a smaller D than {D}"] if D > 1 else []),
        ]
        if not smaller:
            return f"{tried} This is the smallest input that there is."
        return f"{tried} This one is the smallest: {'; '.join(smaller)}."
    if smallest is None:
        return f"{tried} This one is larger."
    return f"{tried} The smallest of them is H={smallest[0]}, P={smallest[1]}, D={smallest[2]}."


def _reported(planner: BrokenPlanner, told: Sizes, bytes_per_head: int) -> Elsewhere | None:
    if planner.reported is None or planner.reported == told:
        return None
    story = _told(planner, planner.reported, bytes_per_head)
    return Elsewhere(story.sizes, story.verdict, story.command) if story else None


def story_of_violation(
    violation: Violation, origin: Origin, election: str, bytes_per_head: int
) -> Story:
    """Return the story of a violation alone, where the planner is not at hand to be asked more.

    It has the block of the one consumer rank, no peers and no test.
    """
    H = violation.total_num_kv_heads
    P, D = violation.producer_tp_size, violation.consumer_tp_size
    slots = tuple(
        Slot(slot, head, tuple(Writer(p, None if sent < 0 else sent) for p, sent in writers))
        for slot, (head, writers) in enumerate(violation.heads)
    )
    d = violation.consumer_tp_rank
    blocks = (ConsumerBlock(d, slots, bytes_per_head),) if slots and d is not None else ()
    return Story(
        origin=origin,
        verdict=violation.seen,
        consequence="",
        total_num_kv_heads=H,
        producer_tp_size=P,
        consumer_tp_size=D,
        election=election,
        bytes_per_head=bytes_per_head,
        invariant=violation.invariant,
        invariant_sentence=INVARIANTS[violation.invariant].sentence,
        also_violated=(),
        seen=violation.seen,
        consumer_tp_rank=d,
        producer_heads=tuple(held_heads(H, P, p) for p in range(P)),
        consumer_heads=tuple(held_heads(H, D, d) for d in range(D)),
        blocks=blocks,
    )
