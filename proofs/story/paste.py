# SPDX-License-Identifier: Apache-2.0
"""A pytest file to paste, in which the reader's own planner is asked for the same input.

It depends on nothing. It gives the right answer for each rank, whichever replica is elected: a
reader fills in the stub or stubs at its top.
"""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, Any

from kvreshard.proofs.broken.names import LENGTHS, PEERS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from kvreshard.proofs.story.model import LengthCase, Story

STUB = 'raise NotImplementedError("ask your planner here")'
_WIDTH = 80


def pasted_test(story: Story) -> str:
    """Return the file for a story, which ends with a newline."""
    body = {PEERS: _peers, LENGTHS: _lengths}.get(story.invariant, _copies)(story)
    # The command may name a path with a line break in it, which would end the comment.
    command = " ".join(story.command.splitlines())
    return "\n".join([f"# {command}", "", "", *body]) + "\n"


_PLAN = (
    "def plan(H, P, p, D, d):",
    '    """What producer rank p of P copies to consumer rank d of D, H heads in all.',
    "",
    "    Return (source offset, target offset, count) in heads (bytes divided by the",
    "    bytes of a head), or None where p sends nothing to d.",
    '    """',
    f"    {STUB}",
    "",
    "",
)


def _header(story: Story) -> list[str]:
    H, P, D = story.sizes
    return [
        f"def test_{story.invariant}_h{H}_p{P}_d{D}():",
        f"    H, P, D = {H}, {P}, {D}  # KV heads, producer TP size, consumer TP size",
    ]


def _copies(story: Story) -> Iterator[str]:
    yield from _PLAN
    yield from _header(story)
    yield "    # The heads that each producer rank holds, in the order of its block."
    yield from _table("produced", dict(enumerate(story.producer_heads)))
    yield "    # The right answer: the head in each slot of each consumer rank, once each."
    yield from _table("right", dict(enumerate(story.consumer_heads)))
    yield from (
        "    for d, wanted in right.items():",
        "        written = [[] for _ in wanted]",
        "        for p, held in produced.items():",
        "            copy = plan(H, P, p, D, d)",
        "            if copy is None:",
        "                continue",
        "            source, target, count = copy",
        '            assert count >= 1, f"p{p} sends d{d} a copy of no heads"',
        "            inside = 0 <= source <= len(held) - count",
        '            assert inside, f"p{p} reads outside its block for d{d}"',
        "            inside = 0 <= target <= len(wanted) - count",
        '            assert inside, f"p{p} writes outside the block of d{d}"',
        "            for k in range(count):",
        "                written[target + k].append(held[source + k])",
        "        expected = [[head] for head in wanted]",
        '        assert written == expected, f"heads written to the slots of d{d}"',
    )


def _peers(story: Story) -> Iterator[str]:
    yield from _PLAN
    yield from (
        "def senders(H, P, D, d):",
        '    """The producer ranks that consumer rank d waits for."""',
        f"    {STUB}",
        "",
        "",
        "def receivers(H, P, p, D):",
        '    """The consumer ranks that producer rank p counts on."""',
        f"    {STUB}",
        "",
        "",
    )
    yield from _header(story)
    yield "    # The right answer: each consumer rank waits for one producer rank of each"
    yield "    # of these lists, whose ranks hold the same heads, and for nobody else."
    yield from _table("right", _choices(story))
    yield from (
        "    for d, choices in right.items():",
        "        waits_for = sorted(senders(H, P, D, d))",
        "        sending = [p for p in range(P) if plan(H, P, p, D, d) is not None]",
        '        assert waits_for == sending, f"d{d} waits for others than send to it"',
        "        found = [sum(p in ranks for p in waits_for) for ranks in choices]",
        '        assert found == [1] * len(choices), f"d{d}: one sender of each list"',
        '        assert len(waits_for) == len(choices), f"d{d} waits for too many"',
        "    for p in range(P):",
        "        served = [d for d in range(D) if plan(H, P, p, D, d) is not None]",
        "        counts_on = sorted(receivers(H, P, p, D))",
        '        assert counts_on == served, f"p{p} counts on others than it serves"',
    )


def _choices(story: Story) -> dict[int, list[list[int]]]:
    """Return, for each consumer rank, the sets of producer ranks of which one sends to it."""
    same = groupby(enumerate(story.producer_heads), key=lambda one: one[1])
    sets = [(set(held), [rank for rank, _ in group]) for held, group in same]
    return {
        d: [ranks for held, ranks in sets if held & set(wanted)]
        for d, wanted in enumerate(story.consumer_heads)
    }


def _lengths(story: Story) -> Iterator[str]:
    if story.lengths is None:
        raise ValueError(f"lengths=None; legal for {story.invariant} is what the check was asked")
    yield from (
        "def accepts(H, P, D, producer_bytes, consumer_bytes):",
        '    """Whether your check accepts a block of each side of these lengths."""',
        f"    {STUB}",
        "",
        "",
    )
    yield from _header(story)
    held = story.lengths.producer_heads, story.lengths.consumer_heads
    yield f"    # Each producer rank holds {held[0]} of the heads, each consumer rank {held[1]}."
    yield "    # The right answer, by the bytes of a block on each side:"
    right = _length_answers(*held, story.bytes_per_head)
    right.update(((c.producer_bytes, c.consumer_bytes), c.plannable) for c in _told(story))
    yield from _table("right", right)
    yield from (
        "    for (producer_bytes, consumer_bytes), fits in right.items():",
        "        said = accepts(H, P, D, producer_bytes, consumer_bytes)",
        '        assert said == fits, f"{producer_bytes} and {consumer_bytes} bytes"',
    )


def _told(story: Story) -> Sequence[LengthCase]:
    return story.lengths.wrong[:_CASES] if story.lengths else ()


_CASES = 4


def _length_answers(mine: int, theirs: int, size: int) -> dict[tuple[int, int], bool]:
    """Return lengths that every planner is to accept or refuse."""
    return {
        (mine * size, theirs * size): True,
        (mine, theirs): True,
        (mine * size, 2 * theirs * size): False,
        (0, 0): False,
    }


def _table(name: str, rows: Mapping[Any, object]) -> Iterator[str]:
    """Assign a dictionary, on one line where it fits."""
    pairs = [f"{key}: {_plain(value)}" for key, value in rows.items()]
    line = f"    {name} = {{{', '.join(pairs)}}}"
    if len(line) <= _WIDTH:
        yield line
        return
    yield f"    {name} = {{"
    yield from (f"        {pair}," for pair in pairs)
    yield "    }"


def _plain(value: object) -> str:
    return str(list(value) if isinstance(value, tuple) else value)
