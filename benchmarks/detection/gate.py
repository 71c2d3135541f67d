# SPDX-License-Identifier: Apache-2.0
"""Run transfers through the runtime with another planner in the place of the proved one.

The peers, their handshake, descriptors, receipts and digests are the runtime's own, in one
process. Every head of every block holds a value of its own, so that a wrong byte is seen. Where
only the producers have the other planner, the consumers plan with the proved one.
"""

# ruff: noqa: N803, N806 - H, P and D are the names in the theorems

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

import numpy as np

from kvreshard.generated.planner import TransferPlan
from kvreshard.proofs.judge import held_heads
from kvreshard.runtime.consumer import ConsumerPeer
from kvreshard.runtime.errors import RuntimeRefusalError
from kvreshard.runtime.local import introduce, transfer
from kvreshard.runtime.peers import Cache
from kvreshard.runtime.producer import ProducerPeer
from kvreshard.runtime.receipts import RequestState
from kvreshard.runtime.regions import HEAD_MAJOR, Region
from kvreshard.runtime.transport.in_process import Fabric, InProcessTransport

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import numpy.typing as npt

    from kvreshard.proofs.judge import Subject
    from kvreshard.runtime.layout import RankLayout
    from kvreshard.runtime.transport.protocol import Transport

# What comes of a transfer. The first is the worst.
WRONG = "ready_and_wrong"
HELD = "ready_and_never_released"
RIGHT = "ready_and_right"
REFUSED = "refused"
WAITS = "waits_for_ever"
OUTCOMES = (WRONG, HELD, RIGHT, WAITS, REFUSED)

TOKENS, TOKEN_BYTES, BLOCKS = 2, 4, 2
_HEAD_BYTES = TOKENS * TOKEN_BYTES
_REQUEST = "request"
_SPARE = 1

BOTH, PRODUCERS = "both sides", "producers only"


@dataclass(frozen=True)
class Case:
    """Sizes of a transfer, and what is unusual about it.

    Attributes:
        sizes: H, P and D.
        compare_content: whether the consumers compare digests.
        claimed_heads: the number of heads that both sides are told, where it is not H.
        transport: makes the producers' transport.
        stale_replica: whether the elected replica of a head holds another value than the others.
    """

    sizes: tuple[int, int, int]
    compare_content: bool = False
    claimed_heads: int | None = None
    transport: Callable[[Fabric], Transport] = InProcessTransport
    stale_replica: bool = False


def run(case: Case, subject: Subject | None = None, where: str = BOTH) -> str:
    """Return what comes of a transfer to every consumer rank.

    Args:
        case: what is transferred.
        subject: the planner in the place of the proved one; None for the proved one.
        where: which side has it.
    """
    with ExitStack() as stack:
        if subject is not None:
            stack.enter_context(_planning_with(subject, where))
        try:
            return _transferred(case)
        except (RuntimeRefusalError, ValueError, ArithmeticError, IndexError):
            return REFUSED


def _transferred(case: Case) -> str:
    H, P, D = case.sizes
    fabric = Fabric()
    sources = [_filled(H, P, p) for p in range(P)]
    if case.stale_replica:
        sources[0] += 1
    targets = [_empty(H, D, d) for d in range(D)]
    told = case.claimed_heads or H
    producers = {
        p: ProducerPeer(
            tp_size=P,
            tp_rank=p,
            consumer_tp_size=D,
            cache=_cache(sources[p], told),
            transport=case.transport(fabric),
            election="lowest",
        )
        for p in range(P)
    }
    consumers = {
        d: ConsumerPeer(
            tp_size=D,
            tp_rank=d,
            producer_tp_size=P,
            cache=_cache(targets[d], told),
            transport=InProcessTransport(fabric),
            election="lowest",
            compare_content=case.compare_content,
        )
        for d in range(D)
    }
    for producer in producers.values():
        producer.offer(_REQUEST, range(BLOCKS))
    found = {_served(consumers[d], producers, _filled(H, D, d), targets[d]) for d in range(D)}
    if found == {RIGHT} and any(peer.held_source_blocks() for peer in producers.values()):
        return HELD
    return next(outcome for outcome in OUTCOMES if outcome in _with_refusals_first(found))


def _with_refusals_first(found: set[str]) -> set[str]:
    """A rank that is refused stops the request of the others: right is only where all are."""
    return found - {RIGHT} or found


def _served(
    consumer: ConsumerPeer,
    producers: dict[int, ProducerPeer],
    wanted: npt.NDArray[np.uint64],
    target: npt.NDArray[np.uint64],
) -> str:
    try:
        introduce(consumer, producers)
        state = transfer(consumer, producers, _REQUEST, range(_SPARE, _SPARE + BLOCKS))
    except (RuntimeRefusalError, ValueError, ArithmeticError, IndexError, KeyError):
        return REFUSED
    if state is not RequestState.READY:
        return WAITS if state is RequestState.WAITING else REFUSED
    untouched = not target[:_SPARE].any() and not target[_SPARE + BLOCKS :].any()
    same = np.array_equal(target[_SPARE : _SPARE + BLOCKS], wanted)
    return RIGHT if same and untouched else WRONG


def _filled(H: int, T: int, r: int) -> npt.NDArray[np.uint64]:
    """Return the blocks of a rank: block, head; a value that no other block and head has."""
    heads = np.array(held_heads(H, T, r), dtype=np.uint64)
    blocks = np.arange(1, BLOCKS + 1, dtype=np.uint64)
    return blocks[:, None] * np.uint64(1 << 40) + heads[None, :] * np.uint64(1 << 8)


def _empty(H: int, T: int, r: int) -> npt.NDArray[np.uint64]:
    return np.zeros((BLOCKS + 2 * _SPARE, len(held_heads(H, T, r))), dtype=np.uint64)


def _cache(array: npt.NDArray[np.uint64], told: int) -> Cache:
    blocks, heads = array.shape
    region = Region(
        layer="layers.0",
        component="kv",
        total_num_kv_heads=told,
        layout=HEAD_MAJOR,
        dtype="int32",
        base_address=array.ctypes.data,
        length=array.nbytes,
        num_blocks=blocks,
        block_bytes=heads * _HEAD_BYTES,
        heads=heads,
        bytes_per_head=_HEAD_BYTES,
        block_size=TOKENS,
        bytes_per_token=TOKEN_BYTES,
    )
    return Cache((region,), (array,))


@contextmanager
def _planning_with(subject: Subject, where: str) -> Iterator[None]:
    """Put a planner in the place of the proved one, at the producers or at both sides."""

    def region_plan(region: Region, producer: RankLayout, consumer: RankLayout, _: str) -> Any:
        made = subject.plan(
            region.total_num_kv_heads,
            producer.tp_size,
            producer.tp_rank,
            consumer.tp_size,
            consumer.tp_rank,
        )
        return TransferPlan(*made)

    def senders_to(consumer: RankLayout, producer_tp_size: int, _: str) -> frozenset[int]:
        (region,) = consumer.regions
        return frozenset(
            subject.senders(
                region.total_num_kv_heads, producer_tp_size, consumer.tp_size, consumer.tp_rank
            )
        )

    def receivers_of(producer: RankLayout, consumer_tp_size: int, _: str) -> frozenset[int]:
        (region,) = producer.regions
        return frozenset(
            subject.receivers(
                region.total_num_kv_heads, producer.tp_size, producer.tp_rank, consumer_tp_size
            )
        )

    def validate_region_lengths(
        *,
        total_num_kv_heads: int,
        producer_tp_size: int,
        consumer_tp_size: int,
        producer_region_bytes: int,
        consumer_region_bytes: int,
    ) -> None:
        sizes = (total_num_kv_heads, producer_tp_size, consumer_tp_size)
        if not subject.accepts(*sizes, producer_region_bytes, consumer_region_bytes):
            raise ValueError("the planner's length check refuses")

    package = "kvreshard.runtime"
    replaced: dict[str, Any] = {
        f"{package}.producer.region_plan": region_plan,
        f"{package}.producer.receivers_of": receivers_of,
        f"{package}.layout.validate_region_lengths": validate_region_lengths,
    }
    if where == BOTH:
        replaced |= {
            f"{package}.producer.senders_to": senders_to,
            f"{package}.consumer.senders_to": senders_to,
            f"{package}.consumer.region_plan": region_plan,
        }
    with ExitStack() as stack:
        for name, made in replaced.items():
            stack.enter_context(patch(name, made))
        yield
