# SPDX-License-Identifier: Apache-2.0
"""The ranks of a demo case: real tensors, filled, moved, compared byte by byte."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeVar, final

import numpy as np
import torch

from kvreshard.demo_case import FOREIGN_BLOCK
from kvreshard.demo_pattern import SENTINEL, pattern, place_of
from kvreshard.generated.planner import TransferPlan, first_head, head_count, replica_count
from kvreshard.runtime.blocks import block_map
from kvreshard.runtime.channel import ConsumerChannel, ProducerChannel
from kvreshard.runtime.consumer import ConsumerPeer
from kvreshard.runtime.descriptors import build_descriptors
from kvreshard.runtime.errors import RuntimeRefusalError
from kvreshard.runtime.local import introduce, transfer
from kvreshard.runtime.messages import Receipt
from kvreshard.runtime.peers import Cache
from kvreshard.runtime.producer import ProducerPeer
from kvreshard.runtime.receipts import ByteAccount, RequestState
from kvreshard.runtime.regions import Region, region_from_tensor
from kvreshard.runtime.remote import RemoteProducers, serve_consumer
from kvreshard.runtime.transport.in_process import Fabric, InProcessTransport
from kvreshard.runtime.transport.mooncake import MooncakeTransport, load_engine_class

if TYPE_CHECKING:
    from multiprocessing.connection import Connection
    from multiprocessing.process import BaseProcess

    import numpy.typing as npt

    from kvreshard.demo_case import Case
    from kvreshard.runtime.transport.protocol import Transport

Result = TypeVar("Result")

REQUEST = "request-0"

#: Seconds a rank waits for another one, and a case for its ranks.
RANK_TIMEOUT_S = 40.0
CASE_TIMEOUT_S = 90.0

_SENTINEL_WORD = int.from_bytes(bytes([SENTINEL]) * 8, "little")


@dataclass(frozen=True)
class ConsumerOutcome:
    """What one consumer rank ended with, in bytes."""

    rank: int
    ready: bool
    reason: str
    account: ByteAccount
    compared: int
    wrong: int
    #: Of `wrong`: bytes of blocks that the request does not own.
    wrong_outside: int
    first_wrong: str


@dataclass(frozen=True)
class CaseOutcome:
    """What a case ended with on one transport."""

    transport: str
    consumers: tuple[ConsumerOutcome, ...]
    descriptors: int
    processes: int
    seconds: float

    @property
    def is_right(self) -> bool:
        """Every request ready, something compared, and no byte wrong."""
        return bool(self.consumers) and all(
            outcome.ready and outcome.compared > 0 and outcome.wrong == 0
            for outcome in self.consumers
        )


class RankFailedError(Exception):
    """A rank's process ended without a result, or not in time."""


class _RankCache(NamedTuple):
    """One rank's tensors, one per layer, and the first global head it holds."""

    cache: Cache
    tensors: list[torch.Tensor]
    heads: range


def run_in_process(case: Case) -> CaseOutcome:
    """Move a case with memory copies, all ranks in this process."""
    start = time.monotonic()
    fabric = Fabric()
    producers = {
        rank: _producer(case, rank, InProcessTransport(fabric)) for rank in range(case.prefill_tp)
    }
    outcomes = []
    for rank in range(case.decode_tp):
        held = _consumer_cache(case, rank)
        peer = _consumer(case, rank, held.cache, InProcessTransport(fabric))
        introduce(peer, producers)
        transfer(peer, producers, REQUEST, case.destination_blocks)
        outcomes.append(_outcome(case, peer, held))
        peer.close()
    descriptors = sum(peer.descriptors_sent(REQUEST) for peer in producers.values())
    for producer in producers.values():
        producer.close()
    return CaseOutcome("in-process", tuple(outcomes), descriptors, 1, time.monotonic() - start)


def run_mooncake(case: Case) -> CaseOutcome:
    """Move a case with real engines, each rank in a process of its own.

    Raises RankFailedError with what the rank printed, TransportUnavailableError without Mooncake.
    """
    load_engine_class()
    start = time.monotonic()
    context = multiprocessing.get_context("forkserver")
    # Torch is imported once; engines are made after the fork, as they have to be.
    context.set_forkserver_preload(["kvreshard.demo_ranks"])
    deadline = start + CASE_TIMEOUT_S
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        consumers = [
            stack.enter_context(_Rank(context, "consumer", rank, case, folder))
            for rank in range(case.decode_tp)
        ]
        producers = [
            stack.enter_context(_Rank(context, "producer", rank, case, folder))
            for rank in range(case.prefill_tp)
        ]
        endpoints = [rank.receive(str, deadline) for rank in consumers]
        for producer in producers:
            producer.connection.send(endpoints)
        outcomes = tuple(rank.receive(ConsumerOutcome, deadline) for rank in consumers)
        descriptors = sum(rank.receive(int, deadline) for rank in producers)
        for rank in [*consumers, *producers]:
            rank.join(deadline)
    return CaseOutcome(
        "mooncake",
        outcomes,
        descriptors,
        len(consumers) + len(producers),
        time.monotonic() - start,
    )


class BeforeTheFix(NamedTuple):
    """What the formula before the fix did to one block of one consumer, in bytes."""

    senders: tuple[int, ...]
    written: int
    #: Bytes that still hold what was there before.
    untouched: int
    block_bytes: int


def run_before_the_fix(case: Case) -> BeforeTheFix:
    """Move one block of one layer to consumer 0 the way the formula before the fix did.

    It reasoned by the ratio of the group sizes alone: where more ranks prefill than decode and
    each of them holds a replica, one rank per consumer sends, its whole block, to offset 0.
    """
    one = case._replace(layers=1, blocks=1)
    ratio, rest = divmod(one.prefill_tp, one.decode_tp)
    if rest or ratio < 2 or replica_count(one.kv_heads, one.prefill_tp) == 1:
        raise ValueError(
            f"prefill_tp={one.prefill_tp}; legal is a multiple of decode_tp={one.decode_tp} with "
            "more than one rank per head"
        )
    fabric = Fabric()
    held = _consumer_cache(one, 0)
    (region,) = held.cache.regions
    target = InProcessTransport(fabric)
    target.register(region.base_address, region.length, held)
    senders, written = [], 0
    for rank in range(ratio):
        if rank % ratio:
            continue
        source = _producer_cache(one, rank)
        (source_region,) = source.cache.regions
        transport = InProcessTransport(fabric)
        transport.register(source_region.base_address, source_region.length, source)
        whole_block = TransferPlan(True, 0, 0, source_region.heads)
        blocks = block_map(one.source_blocks, one.destination_blocks)
        descriptors = build_descriptors(source_region, region, whole_block, blocks)
        transport.write(target.session_id, descriptors)
        senders.append(rank)
        written += descriptors.total_bytes
    untouched = 8 * int((_words(held.tensors[0])[one.destination_blocks] == _SENTINEL_WORD).sum())
    return BeforeTheFix(tuple(senders), written, untouched, region.block_bytes)


def _producer(case: Case, rank: int, transport: Transport) -> ProducerPeer:
    peer = ProducerPeer(
        tp_size=case.prefill_tp,
        tp_rank=rank,
        consumer_tp_size=case.decode_tp,
        cache=_producer_cache(case, rank).cache,
        transport=transport,
        election=case.election,
    )
    peer.offer(REQUEST, case.source_blocks)
    return peer


def _consumer(case: Case, rank: int, cache: Cache, transport: Transport) -> ConsumerPeer:
    return ConsumerPeer(
        tp_size=case.decode_tp,
        tp_rank=rank,
        producer_tp_size=case.prefill_tp,
        cache=cache,
        transport=transport,
        election=case.election,
    )


def _producer_cache(case: Case, rank: int) -> _RankCache:
    """A cache that holds the pattern; block 0 holds that of another request."""
    held = _empty_cache(case, rank, case.prefill_tp, case.blocks + 1)
    blocks = [FOREIGN_BLOCK, *range(case.blocks)]
    for layer, tensor in enumerate(held.tensors):
        words = _words(tensor)
        words[:] = pattern(layer, blocks, held.heads, case.block_size, words.shape[-1])
    return held


def _consumer_cache(case: Case, rank: int) -> _RankCache:
    """A cache of sentinel bytes, with a block of others before and after the request's."""
    held = _empty_cache(case, rank, case.decode_tp, case.blocks + 2)
    for tensor in held.tensors:
        tensor.view(torch.uint8).fill_(SENTINEL)
    return held


def _empty_cache(case: Case, rank: int, tp_size: int, num_blocks: int) -> _RankCache:
    heads = head_count(case.kv_heads, tp_size)
    first = first_head(case.kv_heads, tp_size, rank)
    shape = (num_blocks, heads, case.block_size, 2, case.head_dim)
    try:
        tensors = [torch.empty(shape, dtype=torch.bfloat16) for _ in range(case.layers)]
    except RuntimeError as error:
        # The allocator's, where the check of free memory could not foresee it.
        raise ValueError(
            f"{case.title}: the caches of all ranks need {case.bytes_needed:,} B of memory; a "
            f"tensor of {shape} could not be made: {error}"
        ) from error
    regions = tuple(_region(case, layer, tensor) for layer, tensor in enumerate(tensors))
    return _RankCache(Cache(regions, tuple(tensors)), tensors, range(first, first + heads))


def _region(case: Case, layer: int, tensor: torch.Tensor) -> Region:
    return region_from_tensor(
        tensor,
        layer=f"layers.{layer}",
        component="kv",
        kind="attention",
        axes="BHNSC",
        total_num_kv_heads=case.kv_heads,
    )


def _words(tensor: torch.Tensor) -> npt.NDArray[np.uint64]:
    """The tensor's memory as [blocks, heads, tokens, words]; raises ValueError if it can't be."""
    raw: npt.NDArray[np.uint8] = tensor.flatten(3).view(torch.uint8).numpy()
    return raw.view(np.uint64)


class _Difference(NamedTuple):
    compared: int
    wrong: int
    wrong_outside: int
    first: str


def _compare_layer(case: Case, held: _RankCache, layer: int) -> _Difference:
    """Compare every byte of a layer with what it should hold."""
    actual = _words(held.tensors[layer])
    wanted = np.full_like(actual, _SENTINEL_WORD)
    wanted[case.destination_blocks] = pattern(
        layer, list(range(case.blocks)), held.heads, case.block_size, actual.shape[-1]
    )
    different = actual.view(np.uint8) != wanted.view(np.uint8)
    per_block = different.sum(axis=(1, 2, 3))
    owned = int(per_block[case.destination_blocks].sum())
    wrong = int(per_block.sum())
    first = _tell(layer, held.heads, actual, different) if wrong else ""
    return _Difference(different.size, wrong, wrong - owned, first)


def _tell(
    layer: int,
    heads: range,
    actual: npt.NDArray[np.uint64],
    different: npt.NDArray[np.bool_],
) -> str:
    block, head, token, byte = (int(axis[0]) for axis in np.nonzero(different))
    word = actual[block, head, token, byte // 8]
    found = place_of(int(word))
    text = f"layer {layer} block {block} head {heads[head]} token {token} byte {byte}"
    if int(word) == _SENTINEL_WORD:
        return f"{text} was never written"
    return (
        f"{text} holds what belongs to layer {found.layer} block {found.block} of the request, "
        f"head {found.head} token {found.token} byte {found.word * 8 + byte % 8}"
    )


def _outcome(case: Case, peer: ConsumerPeer, held: _RankCache) -> ConsumerOutcome:
    layers = [_compare_layer(case, held, layer) for layer in range(case.layers)]
    return ConsumerOutcome(
        rank=peer.layout.tp_rank,
        ready=peer.state(REQUEST) is RequestState.READY,
        reason=peer.reason(REQUEST),
        account=peer.account(REQUEST),
        compared=sum(layer.compared for layer in layers),
        wrong=sum(layer.wrong for layer in layers),
        wrong_outside=sum(layer.wrong_outside for layer in layers),
        first_wrong=next((layer.first for layer in layers if layer.first), ""),
    )


@final
class _Rank:
    """One rank's process, the pipe to it and what it prints to stderr."""

    def __init__(
        self,
        context: multiprocessing.context.ForkServerContext,
        side: str,
        rank: int,
        case: Case,
        folder: str,
    ) -> None:
        self._name = f"{side} {rank}"
        self._log = Path(folder) / f"{side}-{rank}.log"
        self.connection, theirs = context.Pipe()
        self._process: BaseProcess = context.Process(
            target=_rank_main,
            args=(side, rank, case, theirs, str(self._log)),
            name=f"kvreshard-{side}-{rank}",
        )
        self._process.start()
        theirs.close()

    def __enter__(self) -> _Rank:
        return self

    def __exit__(self, *_: object) -> None:
        self.connection.close()
        if self._process.is_alive():
            self._process.kill()
        self._process.join()
        self._process.close()

    def receive(self, kind: type[Result], deadline: float) -> Result:
        try:
            if self.connection.poll(max(0.0, deadline - time.monotonic())):
                result = self.connection.recv()
                if isinstance(result, kind):
                    return result
        except EOFError:
            self._process.join(1)
        raise RankFailedError(f"{self._name} gave no result\n{self._printed()}")

    def join(self, deadline: float) -> None:
        self._process.join(max(0.0, deadline - time.monotonic()))
        if self._process.exitcode != 0:
            code = self._process.exitcode
            raise RankFailedError(f"{self._name} ended with {code}\n{self._printed()}")

    def _printed(self) -> str:
        return self._log.read_text(errors="replace") if self._log.exists() else ""


def _rank_main(side: str, rank: int, case: Case, connection: Connection, log: str) -> None:
    # The engine writes a few lines to stderr whatever its log level.
    with Path(log).open("w") as stream:
        os.dup2(stream.fileno(), sys.stderr.fileno())
    torch.set_num_threads(1)
    if side == "consumer":
        _consumer_main(rank, case, connection)
    else:
        _producer_main(rank, case, connection)


def _consumer_main(rank: int, case: Case, connection: Connection) -> None:
    held = _consumer_cache(case, rank)
    peer = _consumer(case, rank, held.cache, MooncakeTransport())
    with contextlib.closing(ConsumerChannel()) as channel:
        connection.send(channel.endpoint)
        producers = RemoteProducers(peer, channel)
        producers.introduce(RANK_TIMEOUT_S)
        producers.transfer(REQUEST, case.destination_blocks, RANK_TIMEOUT_S)
        connection.send(_outcome(case, peer, held))
    peer.close()


def _producer_main(rank: int, case: Case, connection: Connection) -> None:
    peer = _producer(case, rank, MooncakeTransport())
    endpoints: list[str] = connection.recv()
    receivers = sorted(peer.expected_receivers)
    if receivers:
        with ThreadPoolExecutor(len(receivers)) as pool:
            list(pool.map(lambda receiver: _serve(peer, endpoints[receiver]), receivers))
    if peer.held_source_blocks():
        raise RuntimeRefusalError(f"blocks are still held: {peer.held_source_blocks()}")
    connection.send(peer.descriptors_sent(REQUEST))
    peer.close()


def _serve(peer: ProducerPeer, endpoint: str) -> None:
    with contextlib.closing(ProducerChannel(endpoint)) as channel:
        answer = serve_consumer(peer, channel, RANK_TIMEOUT_S)
    if not isinstance(answer, Receipt) or answer.failure:
        raise RuntimeRefusalError(f"nothing was sent: {answer}")
