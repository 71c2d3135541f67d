# SPDX-License-Identifier: Apache-2.0
"""What a plan should be, found by listing heads: no division, no intervals, no formulas."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


@cache
def heads_of(heads: int, size: int, rank: int) -> tuple[int, ...]:
    """Return the heads that a rank holds: those that its equal share of the heads reaches into.

    Share r of `heads` cut into `size` equal parts is [r*heads/size, (r+1)*heads/size), and
    head h is [h, h+1); both are multiplied by `size` to stay with integers.
    """
    start, end = rank * heads, (rank + 1) * heads
    return tuple(h for h in range(heads) if h * size < end and start < (h + 1) * size)


@cache
def holders_of(heads: int, size: int, head: int) -> tuple[int, ...]:
    """Return the ranks that hold a head."""
    return tuple(rank for rank in range(size) if head in heads_of(heads, size, rank))


def is_paired(producers: int, producer: int, consumers: int, consumer: int) -> bool:
    """Whether two ranks talk to each other where one group size divides the other."""
    if producers >= consumers:
        ratio = producers // consumers
        return ratio * consumer <= producer < ratio * (consumer + 1)
    ratio = consumers // producers
    return ratio * producer <= consumer < ratio * (producer + 1)


@dataclass(frozen=True)
class Groups:
    """Two legal groups, and who should send what between them."""

    heads: int
    producers: int
    consumers: int

    @property
    def divisible(self) -> bool:
        return self.producers % self.consumers == 0 or self.consumers % self.producers == 0

    @property
    def elections(self) -> tuple[str, ...]:
        return ("lowest", "spread", "paired") if self.divisible else ("lowest", "spread")

    def sender(self, election: str, consumer: int, head: int) -> int:
        """Return the rank that should send a head to a consumer rank."""
        holders = holders_of(self.heads, self.producers, head)
        if election == "lowest":
            return holders[0]
        if election == "spread":
            return holders[consumer % len(holders)]
        return next(
            rank for rank in holders if is_paired(self.producers, rank, self.consumers, consumer)
        )

    def plan(self, election: str, producer: int, consumer: int) -> tuple[bool, int, int, int]:
        """Return what `plan_transfer` should return."""
        kept = heads_of(self.heads, self.consumers, consumer)
        held = heads_of(self.heads, self.producers, producer)
        sent = [head for head in kept if self.sender(election, consumer, head) == producer]
        if not sent:
            return False, 0, 0, 0
        assert sent == list(range(sent[0], sent[-1] + 1))
        return True, held.index(sent[0]), kept.index(sent[0]), len(sent)

    def senders(self, election: str, consumer: int) -> tuple[int, ...]:
        """Return what `expected_senders` should return."""
        kept = heads_of(self.heads, self.consumers, consumer)
        return tuple(sorted({self.sender(election, consumer, head) for head in kept}))

    def receivers(self, election: str, producer: int) -> tuple[int, ...]:
        """Return what `expected_receivers` should return."""
        return tuple(
            consumer
            for consumer in range(self.consumers)
            if producer in self.senders(election, consumer)
        )


def is_legal(heads: int, size: int) -> bool:
    """Whether the heads can be divided evenly over the ranks, or the ranks over the heads."""
    return heads % size == 0 or size % heads == 0


def legal_sizes(heads: int, up_to: int) -> list[int]:
    """Return the legal group sizes up to a limit."""
    return [size for size in range(1, up_to + 1) if is_legal(heads, size)]


def legal_groups(heads: int, up_to: int) -> Iterator[Groups]:
    """Yield every pair of legal groups with sizes up to a limit."""
    for producers in legal_sizes(heads, up_to):
        for consumers in legal_sizes(heads, up_to):
            yield Groups(heads, producers, consumers)
