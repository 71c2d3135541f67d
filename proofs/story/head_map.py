# SPDX-License-Identifier: Apache-2.0
"""What a picture of a head map shows: which ranks, heads, slots and copies, and what it leaves out.

A small map is shown whole. Of a large one the faulty slots stay, and the producer ranks that wrote
them or should have; the rest is folded into rows that say how many they stand for.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from itertools import groupby
from typing import TYPE_CHECKING, TypeVar

from kvreshard.proofs.story.model import Mark

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from kvreshard.proofs.story.model import ConsumerBlock, Slot, Writer

    Heads = tuple[tuple[int, ...], ...]

# More cells than this on a side and the map is folded.
CELLS_SHOWN = 32
# A folded map shows at most so many faulty slots, and at least so many in all.
FAULTY_SHOWN = 24
SLOTS_KEPT = 12
# A row that stands for fewer heads or slots than this takes more room than they do.
_WORTH_FOLDING = 3


_T = TypeVar("_T")


class Kind(str, Enum):
    """What a copy of one head did. The values name the classes of the picture's style."""

    OK = "ok"
    DOUBLED = "doubled"
    WRONG_HEAD = "wrong-head"
    READ_OUTSIDE = "read-outside"
    WRITE_OUTSIDE = "write-outside"
    EMPTY = "empty"


@dataclass(frozen=True)
class Run:
    """Heads in a row that one producer rank wrote to slots in a row of one consumer rank.

    Attributes:
        producer_tp_rank, consumer_tp_rank: from whom, to whom.
        heads: as many as slots; None for each that was read outside the producer's block.
        slots: where they were written; none for a copy of no heads.
        kind: what is to be said of each of them.
        place: among the writers of its first slot, from 0, and how many there are.
    """

    producer_tp_rank: int
    consumer_tp_rank: int
    heads: tuple[int | None, ...]
    slots: tuple[int, ...]
    kind: Kind
    place: tuple[int, int]


@dataclass(frozen=True)
class Fold:
    """A row in place of heads, slots or ranks in a row that are not shown.

    Attributes:
        first, last: of them, by number.
        count: how many heads, slots or ranks.
        slots: how many slots of a consumer side are left out with them.
        marks: the marks of those slots that are not ok, and how many bear each.
    """

    first: int
    last: int
    count: int
    slots: int = 0
    marks: tuple[tuple[Mark, int], ...] = ()


@dataclass(frozen=True)
class ProducerBox:
    """A producer rank: its heads, and whether a copy starts outside of them."""

    tp_rank: int
    heads: tuple[int | Fold, ...]
    read_outside: bool


@dataclass(frozen=True)
class ConsumerBox:
    """A consumer rank's block: its slots, those written outside it, and copies of no heads."""

    tp_rank: int
    before: tuple[Slot | Fold, ...]
    inside: tuple[Slot | Fold, ...]
    after: tuple[Slot | Fold, ...]
    empty_copies: tuple[int, ...]


@dataclass(frozen=True)
class HeadMap:
    """What the picture shows, from top to bottom on either side, and the copies between.

    Attributes:
        producers, consumers: boxes, and rows that stand for ranks.
        runs: the copies into the slots shown.
        unknown: consumer ranks of which no block is given.
        slot_count: slots of the blocks given.
        marks: the marks that are not ok, and how many slots bear each, shown or not.
    """

    producers: tuple[ProducerBox | Fold, ...]
    consumers: tuple[ConsumerBox | Fold, ...]
    runs: tuple[Run, ...]
    unknown: tuple[int, ...]
    slot_count: int
    marks: tuple[tuple[Mark, int], ...]


def head_map_of(
    producer_heads: Heads, consumer_heads: Heads, blocks: Sequence[ConsumerBlock]
) -> HeadMap:
    """Return what to show of the blocks of consumer ranks, all of them or some.

    Args:
        producer_heads, consumer_heads: for each rank the heads it holds, in the order of its block.
        blocks: the consumer ranks' blocks, with the writers of each slot.

    Raises:
        ValueError: a block is of a rank, or a writer is a rank, that the group does not have.
    """
    _check(producer_heads, consumer_heads, blocks)
    chosen = _chosen_slots(blocks)
    shown = {
        block.consumer_tp_rank: tuple(slot for slot in block.slots if slot in chosen[k])
        for k, block in enumerate(blocks)
    }
    runs = tuple(run for block in blocks for run in _runs(block, shown[block.consumer_tp_rank]))
    given = {block.consumer_tp_rank for block in blocks}
    slots = [slot for block in blocks for slot in block.slots]
    return HeadMap(
        _producer_side(producer_heads, runs, [s for kept in shown.values() for s in kept]),
        _consumer_side(blocks, shown),
        runs,
        tuple(rank for rank in range(len(consumer_heads)) if rank not in given),
        sum(slot.wanted is not None for slot in slots),
        _faults(slots),
    )


def _check(producer_heads: Heads, consumer_heads: Heads, blocks: Sequence[ConsumerBlock]) -> None:
    P, D = len(producer_heads), len(consumer_heads)
    for block in blocks:
        if not 0 <= block.consumer_tp_rank < D:
            raise ValueError(f"consumer_tp_rank={block.consumer_tp_rank}; legal: 0 to {D - 1}")
        writers = [w.producer_tp_rank for slot in block.slots for w in slot.writers]
        for rank in (*writers, *block.empty_copies):
            if not 0 <= rank < P:
                raise ValueError(f"producer_tp_rank={rank}; legal: 0 to {P - 1}")


def is_faulty(slot: Slot) -> bool:
    """Whether something is to be said of a slot."""
    return slot.marks != (Mark.OK,)


def kind_of(writer: Writer, slot: Slot) -> Kind:
    """Return what the copy of one head into a slot is; the gravest, where it is several things."""
    if slot.wanted is None:
        return Kind.WRITE_OUTSIDE
    if writer.head is None:
        return Kind.READ_OUTSIDE
    if writer.head != slot.wanted:
        return Kind.WRONG_HEAD
    return Kind.DOUBLED if len(slot.writers) > 1 else Kind.OK


def _faults(slots: Sequence[Slot]) -> tuple[tuple[Mark, int], ...]:
    counts = ((mark, sum(mark in slot.marks for slot in slots)) for mark in Mark)
    return tuple((mark, count) for mark, count in counts if count and mark is not Mark.OK)


def _chosen_slots(blocks: Sequence[ConsumerBlock]) -> list[set[Slot]]:
    """Return the slots to show of each block: all, or the faulty and some of the others."""
    if sum(len(block.slots) for block in blocks) <= CELLS_SHOWN:
        return [set(block.slots) for block in blocks]
    faulty = [[slot for slot in block.slots if is_faulty(slot)] for block in blocks]
    room = FAULTY_SHOWN
    chosen: list[set[Slot]] = []
    for slots in faulty:
        chosen.append(set(slots[:room]))
        room -= len(chosen[-1])
    room = SLOTS_KEPT - (FAULTY_SHOWN - room)
    some = False
    # What is fine in a faulty block tells more than other blocks, and whole blocks more than parts.
    for k in sorted(range(len(blocks)), key=lambda k: not faulty[k]):
        fine = [slot for slot in blocks[k].slots if not is_faulty(slot)]
        if len(fine) <= room or not some:
            taken = fine[: max(room, 0)]
            chosen[k] |= set(taken)
            room -= len(taken)
            some = some or bool(taken)
    return [_without_small_gaps(b.slots, kept) for b, kept in zip(blocks, chosen, strict=True)]


def _without_small_gaps(row: Sequence[_T], kept: set[_T]) -> set[_T]:
    """Return what to show of a row of heads or slots: those kept, and the few between them."""
    groups = [(shown, list(group)) for shown, group in groupby(row, lambda one: one in kept)]
    few = [
        one for shown, group in groups if not shown and len(group) < _WORTH_FOLDING for one in group
    ]
    return kept | set(few) if kept else kept


def _runs(block: ConsumerBlock, shown: Sequence[Slot]) -> Iterator[Run]:
    growing: dict[int, Run] = {}
    for slot in shown:
        grown: dict[int, Run] = {}
        for k, writer in enumerate(slot.writers):
            rank, kind = writer.producer_tp_rank, kind_of(writer, slot)
            before = growing.pop(rank, None)
            if before and _goes_on(before, writer, slot, kind):
                run = Run(
                    rank,
                    block.consumer_tp_rank,
                    (*before.heads, writer.head),
                    (*before.slots, slot.slot),
                    kind,
                    before.place,
                )
            else:
                if before:
                    yield before
                place = (k, len(slot.writers))
                run = Run(rank, block.consumer_tp_rank, (writer.head,), (slot.slot,), kind, place)
            if rank in grown:  # The rank wrote this slot before, too.
                yield grown[rank]
            grown[rank] = run
        yield from growing.values()
        growing = grown
    yield from growing.values()
    for rank in block.empty_copies:
        yield Run(rank, block.consumer_tp_rank, (), (), Kind.EMPTY, (0, 1))


def _goes_on(before: Run, writer: Writer, slot: Slot, kind: Kind) -> bool:
    last = before.heads[-1]
    next_head = None if last is None else last + 1
    return (kind, writer.head, slot.slot) == (before.kind, next_head, before.slots[-1] + 1)


def _producer_side(
    producer_heads: Heads, runs: Sequence[Run], shown: Sequence[Slot]
) -> tuple[ProducerBox | Fold, ...]:
    cells = sum(map(len, producer_heads))
    kept = None if cells <= CELLS_SHOWN else _kept_heads(producer_heads, runs, shown)
    outside = {
        run.producer_tp_rank
        for run in runs
        if any(head not in producer_heads[run.producer_tp_rank] for head in run.heads)
    }

    def box(rank: int) -> ProducerBox:
        held = producer_heads[rank]
        wanted = set(held) if kept is None else _without_small_gaps(held, kept[rank])
        heads = _folded(held, lambda head: head in wanted, _plain_fold)
        return ProducerBox(rank, tuple(heads), rank in outside)

    ranks = range(len(producer_heads))
    folded = _folded(ranks, lambda rank: kept is None or rank in kept, _plain_fold)
    return tuple(one if isinstance(one, Fold) else box(one) for one in folded)


def _kept_heads(
    producer_heads: Heads, runs: Sequence[Run], shown: Sequence[Slot]
) -> dict[int, set[int]]:
    """Return, of the ranks to keep, the heads to keep: what is sent, and who could have sent it."""
    kept: dict[int, set[int]] = {}
    for run in runs:
        kept.setdefault(run.producer_tp_rank, set()).update(h for h in run.heads if h is not None)
    first_holder: dict[int, int] = {}
    for rank, held in enumerate(producer_heads):
        for head in held:
            first_holder.setdefault(head, rank)
    for slot in shown:
        if is_faulty(slot) and slot.wanted in first_holder:
            kept.setdefault(first_holder[slot.wanted], set()).add(slot.wanted)
    return kept


def _consumer_side(
    blocks: Sequence[ConsumerBlock], shown: dict[int, tuple[Slot, ...]]
) -> tuple[ConsumerBox | Fold, ...]:
    def is_shown(block: ConsumerBlock) -> bool:
        return bool(shown[block.consumer_tp_rank] or block.empty_copies)

    def fold(left: Sequence[ConsumerBlock]) -> Fold:
        slots = [slot for block in left for slot in block.slots]
        first, last = left[0].consumer_tp_rank, left[-1].consumer_tp_rank
        return Fold(first, last, len(left), len(slots), _faults(slots))

    return tuple(
        one if isinstance(one, Fold) else _consumer_box(one, set(shown[one.consumer_tp_rank]))
        for one in _folded(blocks, is_shown, fold)
    )


def _consumer_box(block: ConsumerBlock, shown: set[Slot]) -> ConsumerBox:
    def folded(slots: list[Slot]) -> tuple[Slot | Fold, ...]:
        rows = _folded(slots, shown.__contains__, _slot_fold)
        return tuple(rows)

    outside = [slot for slot in block.slots if slot.wanted is None]
    return ConsumerBox(
        block.consumer_tp_rank,
        folded([slot for slot in outside if slot.slot < 0]),
        folded([slot for slot in block.slots if slot.wanted is not None]),
        folded([slot for slot in outside if slot.slot >= 0]),
        block.empty_copies,
    )


def _plain_fold(numbers: Sequence[int]) -> Fold:
    return Fold(numbers[0], numbers[-1], len(numbers))


def _slot_fold(slots: Sequence[Slot]) -> Fold:
    return Fold(slots[0].slot, slots[-1].slot, len(slots), len(slots), _faults(slots))


def _folded(
    row: Sequence[_T], is_shown: Callable[[_T], bool], fold: Callable[[Sequence[_T]], Fold]
) -> Iterator[_T | Fold]:
    for kept, group in groupby(row, is_shown):
        members = list(group)
        yield from members if kept else [fold(members)]
