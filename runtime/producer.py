# SPDX-License-Identifier: Apache-2.0
"""The sending side of a transfer; see peers."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from kvreshard.runtime.blocks import BlockMap, block_map
from kvreshard.runtime.descriptors import (
    Descriptors,
    build_descriptors,
    concatenate,
    merge_adjacent,
)
from kvreshard.runtime.digests import head_digests
from kvreshard.runtime.errors import (
    HypothesisError,
    RequestError,
    RuntimeRefusalError,
    TransferError,
)
from kvreshard.runtime.layout import RankLayout, check_pair, check_rank
from kvreshard.runtime.messages import (
    PROTOCOL,
    Abort,
    Accepted,
    ConsumerHello,
    ConsumerKey,
    ProducerHello,
    Pull,
    Receipt,
    Refused,
    Write,
)
from kvreshard.runtime.peers import Cache, check_agreement, key_of, registered_layout, stop
from kvreshard.runtime.planning import receivers_of, region_plan, senders_to

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kvreshard.runtime.transport.protocol import Transport


@dataclass
class _Offer:
    """A request's blocks at the producer, until nobody reads them any more."""

    blocks: tuple[int, ...]
    #: Set by the first pull; ranks of one DP group read a request.
    dp_rank: int | None = None
    sending: set[int] = field(default_factory=set)
    answered: set[int] = field(default_factory=set)
    #: A write failed while descriptors of it may still be under way.
    unsafe: bool = False
    bytes_sent: int = 0
    descriptors_sent: int = 0


class ProducerPeer:
    """The sending side of one rank."""

    def __init__(
        self,
        *,
        tp_size: int,
        tp_rank: int,
        consumer_tp_size: int,
        cache: Cache,
        transport: Transport,
        election: str,
        dp_rank: int = 0,
    ) -> None:
        """Check this rank's cache and register it with the transport.

        Raises HypothesisError or UnsupportedCacheError before anything is registered.
        """
        self.layout = registered_layout(tp_size, tp_rank, dp_rank, cache, transport)
        self.election = election
        #: Consumer ranks that have to be served before a request's blocks are free.
        self.expected_receivers = receivers_of(self.layout, consumer_tp_size, election)
        self._consumer_tp_size = consumer_tp_size
        self._transport = transport
        self._lock = threading.Lock()
        self._consumers: dict[ConsumerKey, RankLayout] = {}
        self._sessions: set[str] = set()
        self._offers: dict[str, _Offer] = {}
        #: Who gave up a request that is not offered yet; their pulls must not be served later,
        #: since an abort's receipt lets the consumer use its blocks for something else.
        self._early_aborts: dict[str, list[ConsumerKey]] = {}
        #: Requests given up by somebody, offered at some time; kept for the same reason.
        self._aborted: set[str] = set()

    def hello(self) -> ProducerHello:
        """The message that introduces this producer."""
        return ProducerHello(protocol=PROTOCOL, layout=self.layout, election=self.election)

    def meet(self, hello: ConsumerHello) -> Accepted | Refused:
        """Check a consumer. A refusal carries the reason, and nothing is ever sent to it."""
        rank = self.layout.tp_rank
        try:
            self._check_consumer(hello)
        except (RuntimeRefusalError, ValueError) as error:
            return Refused(tp_rank=rank, reason=str(error))
        with self._lock:
            if hello.layout.session in self._sessions:
                return Refused(
                    tp_rank=rank,
                    reason=f"session {hello.layout.session!r} was used before; legal is a new one",
                )
            self._sessions.add(hello.layout.session)
            self._consumers[key_of(hello.layout)] = hello.layout
        return Accepted(producer_rank=rank)

    def offer(self, request_id: str, blocks: Sequence[int]) -> None:
        """Hold a finished prefill's blocks until every expected receiver has been answered.

        A consumer that gave it up already counts as answered.
        Raises RequestError for a request id that was used, or blocks still held by a failed write.
        """
        with self._lock:
            if request_id in self._offers or request_id in self._aborted:
                raise RequestError(f"request {request_id!r} was offered before; legal is once")
            for other, held in self._offers.items():
                shared = set(held.blocks) & set(blocks) if held.unsafe else set()
                if shared:
                    raise RequestError(
                        f"source block {min(shared)} is held: a failed write of request "
                        f"{other!r} may still read it"
                    )
            offer = self._offers[request_id] = _Offer(tuple(blocks))
            for consumer in self._early_aborts.pop(request_id, ()):
                self._give_up(request_id, offer, consumer)

    def serve(self, pull: Pull) -> Receipt:
        """Write what the plan says for this consumer and report it. Blocks until it is written.

        Raises no Exception: the receipt carries the failure of a bad or a failed pull.
        """
        try:
            offer, consumer = self._begin(pull)
        except RequestError as error:
            return self._failed(pull, str(error), quiescent=True)
        try:
            receipt, descriptors = self._write(pull, offer, consumer)
        except Exception as error:
            # Whatever it is, the consumer has to hear of it, or both sides hold blocks for good.
            # How far the write got is not known.
            reason = f"{type(error).__name__}: {error}"
            receipt, descriptors = self._failed(pull, reason, quiescent=False), 0
        with self._lock:
            offer.sending.discard(pull.consumer.tp_rank)
            offer.answered.add(pull.consumer.tp_rank)
            offer.bytes_sent += receipt.bytes_sent
            offer.descriptors_sent += descriptors
            offer.unsafe |= not receipt.quiescent
        return receipt

    def abort(self, abort: Abort) -> Receipt | None:
        """A consumer gave a request up. None when a receipt was or will be sent for its pull."""
        with self._lock:
            offer = self._offers.get(abort.request_id)
            rank = abort.consumer.tp_rank
            try:
                self._check_reader(abort, offer)
            except RequestError as error:
                return self._failed(abort, str(error), quiescent=True)
            early = self._early_aborts.get(abort.request_id, [])
            if abort.consumer in early:
                return None
            if offer is None:
                self._early_aborts[abort.request_id] = [*early, abort.consumer]
            elif rank in offer.sending or rank in offer.answered:
                return None
            else:
                self._give_up(abort.request_id, offer, abort.consumer)
        return self._failed(abort, "aborted before it was sent", quiescent=True)

    def held_source_blocks(self) -> dict[str, tuple[int, ...]]:
        """Blocks, per request, that must be neither freed nor written.

        A request stays until each expected receiver is answered; after a failed write that may
        still be read by the engine it stays until close().
        """
        with self._lock:
            return {
                request_id: offer.blocks
                for request_id, offer in self._offers.items()
                if offer.unsafe or not self.expected_receivers <= offer.answered
            }

    def bytes_sent(self, request_id: str) -> int:
        """Bytes written for a request, over all consumers. Raises KeyError for an unknown one."""
        with self._lock:
            return self._offers[request_id].bytes_sent

    def descriptors_sent(self, request_id: str) -> int:
        """Descriptors written for a request. Raises KeyError for an unknown one."""
        with self._lock:
            return self._offers[request_id].descriptors_sent

    def forget(self, request_id: str) -> None:
        """Drop a request that is done. Raises RequestError while its blocks are held."""
        if request_id in self.held_source_blocks():
            raise RequestError(f"request {request_id!r} still holds its source blocks")
        with self._lock:
            self._offers.pop(request_id, None)

    def close(self) -> None:
        """Stop the transport; then nothing is read any more and every hold ends.

        Raises TransferError as the transport does; unless that is quiescent, the holds stay.
        """
        stop(self._transport, self._end_holds)

    def _end_holds(self) -> None:
        with self._lock:
            self._offers.clear()

    def _give_up(self, request_id: str, offer: _Offer, consumer: ConsumerKey) -> None:
        """Never serve this consumer's pull of it. With the lock held."""
        self._aborted.add(request_id)
        if offer.dp_rank in (None, consumer.dp_rank):
            offer.dp_rank = consumer.dp_rank
            offer.answered.add(consumer.tp_rank)

    def _check_consumer(self, hello: ConsumerHello) -> None:
        check_agreement("protocol", PROTOCOL, hello.protocol)
        check_agreement("election", self.election, hello.election)
        check_agreement("producer_tp_size", self.layout.tp_size, hello.producer_tp_size)
        check_agreement("consumer_tp_size", self._consumer_tp_size, hello.layout.tp_size)
        check_rank(hello.layout)
        check_pair(self.layout, hello.layout)
        senders = senders_to(hello.layout, self.layout.tp_size, self.election)
        check_agreement("expected_senders", sorted(senders), sorted(hello.expected_senders))

    def _begin(self, pull: Pull) -> tuple[_Offer, RankLayout]:
        rank = pull.consumer.tp_rank
        with self._lock:
            offer = self._offers.get(pull.request_id)
            consumer = self._check_reader(pull, offer)
            if offer is None:
                raise RequestError(f"request {pull.request_id!r} is not offered here")
            if rank in offer.sending or rank in offer.answered:
                raise RequestError(
                    f"request {pull.request_id!r} was pulled or aborted by rank {rank} before"
                )
            offer.dp_rank = pull.consumer.dp_rank
            offer.sending.add(rank)
            return offer, consumer

    def _check_reader(self, message: Pull | Abort, offer: _Offer | None) -> RankLayout:
        """The consumer that speaks, if it may read this offer. With the lock held."""
        key = message.consumer
        consumer = self._consumers.get(key)
        if consumer is None:
            raise RequestError(f"consumer {tuple(key)} has not been accepted")
        if key.tp_rank not in self.expected_receivers:
            raise RequestError(
                f"consumer rank {key.tp_rank} gets nothing from producer {self.layout.tp_rank}; "
                f"expected are {sorted(self.expected_receivers)}"
            )
        if offer is not None and offer.dp_rank not in (None, key.dp_rank):
            raise RequestError(
                f"request {message.request_id!r} is read by dp_rank {offer.dp_rank}, "
                f"not {key.dp_rank}"
            )
        return consumer

    def _write(self, pull: Pull, offer: _Offer, consumer: RankLayout) -> tuple[Receipt, int]:
        """The receipt, and how many descriptors were written."""
        try:
            blocks = block_map(offer.blocks, pull.destination_blocks)
            writes, descriptors = self._prepare(pull, consumer, blocks)
        except (RequestError, HypothesisError) as error:
            return self._failed(pull, str(error), quiescent=True), 0
        try:
            self._transport.write(consumer.session, descriptors)
        except TransferError as error:
            return self._failed(pull, str(error), quiescent=error.quiescent), 0
        receipt = Receipt(
            request_id=pull.request_id,
            consumer=pull.consumer,
            producer_rank=self.layout.tp_rank,
            failure="",
            quiescent=True,
            destination_blocks=pull.destination_blocks,
            writes=writes,
            bytes_sent=descriptors.total_bytes,
        )
        return receipt, descriptors.rows

    def _prepare(
        self, pull: Pull, consumer: RankLayout, blocks: BlockMap
    ) -> tuple[tuple[Write, ...], Descriptors]:
        """Build everything before the first byte moves, so that a refusal leaves no half write."""
        theirs = {region.key: region for region in consumer.regions}
        writes, parts = [], []
        for region in self.layout.regions:
            plan = region_plan(region, self.layout, consumer, self.election)
            part = build_descriptors(region, theirs[region.key], plan, blocks)
            parts.append(merge_adjacent(part))
            if not plan.sends:
                continue
            source_blocks = blocks.source.tolist()
            digests = (
                head_digests(region, source_blocks, plan.src_head_offset, plan.head_count)
                if pull.with_digests
                else b""
            )
            writes.append(
                Write(
                    layer=region.layer,
                    component=region.component,
                    offset=plan.dst_head_offset * region.bytes_per_head,
                    length=plan.head_count * region.bytes_per_head,
                    digests=digests,
                )
            )
        return tuple(writes), concatenate(parts)

    def _failed(self, pull: Pull | Abort, failure: str, *, quiescent: bool) -> Receipt:
        return Receipt(
            request_id=pull.request_id,
            consumer=pull.consumer,
            producer_rank=self.layout.tp_rank,
            failure=failure,
            quiescent=quiescent,
            destination_blocks=(),
            writes=(),
            bytes_sent=0,
        )
