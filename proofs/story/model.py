# SPDX-License-Identifier: Apache-2.0
"""What a counterexample's story says, as data. It is built once and rendered in several ways."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Mark(str, Enum):
    """What is to be said of a slot of a consumer's block. The values are shown to people."""

    OK = "ok"
    MISSING = "MISSING"
    DOUBLED = "DOUBLED"
    WRONG_HEAD = "WRONG HEAD"
    READ_OUTSIDE = "READ OUTSIDE"
    WRITE_OUTSIDE = "WRITE OUTSIDE"


@dataclass(frozen=True)
class Writer:
    """A producer rank that wrote a slot, and the head it wrote; None from outside its block."""

    producer_tp_rank: int
    head: int | None


@dataclass(frozen=True)
class Slot:
    """One head's place in a consumer's block, or a place outside the block that was written.

    Attributes:
        slot: which head of the block, from 0; below 0 or past the last one outside the block.
        wanted: the head that belongs there; None outside the block.
        writers: who wrote it.
    """

    slot: int
    wanted: int | None
    writers: tuple[Writer, ...]

    @property
    def marks(self) -> tuple[Mark, ...]:
        """What is wrong with the slot, or that it is as it should be."""
        heads = [writer.head for writer in self.writers]
        inside = self.wanted is not None
        found = {
            Mark.MISSING: inside and not heads,
            Mark.DOUBLED: inside and len(heads) > 1,
            Mark.WRONG_HEAD: inside and any(head not in (None, self.wanted) for head in heads),
            Mark.WRITE_OUTSIDE: not inside,
            Mark.READ_OUTSIDE: None in heads,
        }
        return tuple(mark for mark, seen in found.items() if seen) or (Mark.OK,)


@dataclass(frozen=True)
class ConsumerBlock:
    """A consumer rank's block of one region, and what was written to it.

    Attributes:
        consumer_tp_rank: whose block it is.
        slots: those of the block in order, with any written outside it before and after.
        bytes_per_head: bytes of one slot.
        empty_copies: producer ranks that sent a copy of no heads.
    """

    consumer_tp_rank: int
    slots: tuple[Slot, ...]
    bytes_per_head: int
    empty_copies: tuple[int, ...] = ()

    def bytes_with(self, *marks: Mark) -> int:
        """Return the bytes of the slots, in the block or not, that bear one of the marks."""
        return self.bytes_per_head * sum(any(m in slot.marks for m in marks) for slot in self.slots)

    @property
    def expected(self) -> int:
        """Bytes of the block."""
        return self.bytes_per_head * len(self._inside)

    @property
    def _inside(self) -> tuple[Slot, ...]:
        return tuple(slot for slot in self.slots if slot.wanted is not None)

    @property
    def missing(self) -> int:
        """Bytes of the block that nobody wrote."""
        return self.bytes_with(Mark.MISSING)

    @property
    def written(self) -> int:
        """Bytes of the block that somebody wrote, each counted once."""
        return self.expected - self.missing

    @property
    def wrong(self) -> int:
        """Bytes of the block that were written with something that does not belong there."""
        bad = {Mark.WRONG_HEAD, Mark.READ_OUTSIDE}
        return self.bytes_per_head * sum(not bad.isdisjoint(slot.marks) for slot in self._inside)

    @property
    def doubled(self) -> int:
        """Bytes of the block that were written more than once."""
        return self.bytes_with(Mark.DOUBLED)

    @property
    def outside(self) -> int:
        """Bytes written outside the block."""
        return self.bytes_with(Mark.WRITE_OUTSIDE)

    @property
    def first_bad_slot(self) -> Slot | None:
        """The first slot that is not as it should be; one with wrong bytes, if there is any."""
        bad = [slot for slot in self.slots if slot.marks != (Mark.OK,)]
        wrong = [slot for slot in bad if slot.marks != (Mark.DOUBLED,)]
        return next(iter(wrong or bad), None)

    @property
    def is_right(self) -> bool:
        """Whether every slot is as it should be and no copy is empty."""
        return self.first_bad_slot is None and not self.empty_copies


@dataclass(frozen=True)
class PeerView:
    """Whom a rank reckons with, and who is really there, by rank of the other group.

    A consumer waits for `counted` and `actual` send to it; a producer counts on `counted` and
    sends to `actual`.
    """

    side: str
    tp_rank: int
    counted: tuple[int, ...]
    actual: tuple[int, ...]

    @property
    def in_vain(self) -> tuple[int, ...]:
        """Peers that the rank reckons with, as often as it does so without reason."""
        left = list(self.counted)
        for peer in self.actual:
            if peer in left:
                left.remove(peer)
        return tuple(left)

    @property
    def overlooked(self) -> tuple[int, ...]:
        """Peers that are there and that the rank does not reckon with."""
        return tuple(peer for peer in self.actual if peer not in self.counted)

    @property
    def is_right(self) -> bool:
        """Whether it reckons with those who are there, in their order."""
        return self.counted == self.actual


@dataclass(frozen=True)
class LengthCase:
    """Two lengths of a block in bytes, what the length check says and what is right."""

    producer_bytes: int
    consumer_bytes: int
    accepted: bool
    plannable: bool

    @property
    def is_right(self) -> bool:
        """Whether the check says what is right."""
        return self.accepted == self.plannable


@dataclass(frozen=True)
class Lengths:
    """The length check under trial.

    Attributes:
        producer_heads: heads that each producer rank holds.
        consumer_heads: heads that each consumer rank holds.
        tried: how many pairs of lengths were tried.
        wrong_count: how many of them the check gets wrong.
        wrong: the first of those, the one that tells most first.
    """

    producer_heads: int
    consumer_heads: int
    tried: int
    wrong_count: int
    wrong: tuple[LengthCase, ...]


@dataclass(frozen=True)
class Origin:
    """Which planner it is, in words, and where its fault was seen."""

    name: str
    sentence: str
    seen_in: tuple[str, ...] = ()


@dataclass(frozen=True)
class Elsewhere:
    """Another input of interest: the one of the public report."""

    sizes: tuple[int, int, int]
    verdict: str
    command: str


@dataclass(frozen=True)
class Story:
    """One counterexample.

    Attributes:
        origin: the planner.
        verdict: what goes wrong, in one sentence.
        consequence: what that does to a request.
        total_num_kv_heads, producer_tp_size, consumer_tp_size: the input.
        election: who chooses among the replicas of a head.
        bytes_per_head: bytes of one head in one block.
        invariant, invariant_sentence: what is violated.
        also_violated: other invariants that this input violates.
        seen: what the judge saw first.
        consumer_tp_rank: the rank it was seen at; None where it is a producer or a whole group.
        producer_heads, consumer_heads: the heads that each rank holds, in the order of its block.
        blocks: of the consumer ranks; all of them where the planner itself was run.
        peers: what each rank reckons with; empty where nobody was asked.
        lengths: the length check, where it is at fault.
        why_this_input: what was searched, and that there is nothing smaller.
        reported: the input of the public report, where it is another one.
        test: a pytest file to paste; empty where there is none.
        command: shows the story again.
    """

    origin: Origin
    verdict: str
    consequence: str
    total_num_kv_heads: int
    producer_tp_size: int
    consumer_tp_size: int
    election: str
    bytes_per_head: int
    invariant: str
    invariant_sentence: str
    also_violated: tuple[str, ...]
    seen: str
    consumer_tp_rank: int | None
    producer_heads: tuple[tuple[int, ...], ...]
    consumer_heads: tuple[tuple[int, ...], ...]
    blocks: tuple[ConsumerBlock, ...]
    peers: tuple[PeerView, ...] = ()
    lengths: Lengths | None = None
    why_this_input: str = ""
    reported: Elsewhere | None = None
    test: str = ""
    command: str = ""

    @property
    def sizes(self) -> tuple[int, int, int]:
        """H, P and D."""
        return self.total_num_kv_heads, self.producer_tp_size, self.consumer_tp_size

    @property
    def block(self) -> ConsumerBlock | None:
        """The block that the story is about: of the rank named, or the first with a fault."""
        named = (one for one in self.blocks if one.consumer_tp_rank == self.consumer_tp_rank)
        faulty = (one for one in self.blocks if not one.is_right)
        return next(named, None) or next(faulty, None)
