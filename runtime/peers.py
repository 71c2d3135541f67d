# SPDX-License-Identifier: Apache-2.0
"""The two sides of a transfer, without sockets: messages go in, messages come out.

Order of a request: hellos both ways, the producer accepts or refuses, the consumer pulls from
each producer it expects, each answers with one receipt. A peer's methods may be called from
several threads.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from kvreshard.runtime.blocks import BlockMap, block_map, check_destinations
from kvreshard.runtime.descriptors import (
    Descriptors,
    build_descriptors,
    concatenate,
    merge_adjacent,
)
from kvreshard.runtime.digests import head_digests
from kvreshard.runtime.errors import (
    HandshakeRefusedError,
    HypothesisError,
    ReceiptError,
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
from kvreshard.runtime.planning import receivers_of, region_plan, senders_to
from kvreshard.runtime.receipts import (
    ByteAccount,
    ProducerPlan,
    RequestReceipts,
    RequestState,
    wrong_digest,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from kvreshard.runtime.regions import Region
    from kvreshard.runtime.transport.protocol import Transport


@dataclass(frozen=True)
class Cache:
    """One rank's regions and the objects that own their memory, in the same order."""

    regions: tuple[Region, ...]
    owners: tuple[object, ...]


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
        self.layout = _registered_layout(tp_size, tp_rank, dp_rank, cache, transport)
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
            self._consumers[_key(hello.layout)] = hello.layout
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
        _stop(self._transport, self._end_holds)

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
        _check_agreement("protocol", PROTOCOL, hello.protocol)
        _check_agreement("election", self.election, hello.election)
        _check_agreement("producer_tp_size", self.layout.tp_size, hello.producer_tp_size)
        _check_agreement("consumer_tp_size", self._consumer_tp_size, hello.layout.tp_size)
        check_rank(hello.layout)
        check_pair(self.layout, hello.layout)
        senders = senders_to(hello.layout, self.layout.tp_size, self.election)
        _check_agreement("expected_senders", sorted(senders), sorted(hello.expected_senders))

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


class ConsumerPeer:
    """The receiving side of one rank."""

    def __init__(
        self,
        *,
        tp_size: int,
        tp_rank: int,
        producer_tp_size: int,
        cache: Cache,
        transport: Transport,
        election: str,
        dp_rank: int = 0,
        compare_content: bool = False,
    ) -> None:
        """Check this rank's cache and register it with the transport.

        With `compare_content` a request is ready only if each (region, block, head) holds what
        its producer read, by digest.
        Raises HypothesisError or UnsupportedCacheError before anything is registered.
        """
        self.layout = _registered_layout(tp_size, tp_rank, dp_rank, cache, transport)
        self.election = election
        self.key = _key(self.layout)
        #: Producer ranks a request waits for.
        self.expected_senders = senders_to(self.layout, producer_tp_size, election)
        self._producer_tp_size = producer_tp_size
        self._compare_content = compare_content
        self._transport = transport
        self._lock = threading.Lock()
        self._producers: dict[int, RankLayout] = {}
        self._accepted: set[int] = set()
        self._requests: dict[str, RequestReceipts] = {}
        #: Every id there was, also of forgotten requests: a stray receipt of the first request
        #: must not count for a second one.
        self._used_ids: set[str] = set()

    def hello(self) -> ConsumerHello:
        """The message that introduces this consumer."""
        return ConsumerHello(
            protocol=PROTOCOL,
            layout=self.layout,
            election=self.election,
            producer_tp_size=self._producer_tp_size,
            expected_senders=tuple(sorted(self.expected_senders)),
        )

    def meet(self, hello: ProducerHello) -> None:
        """Check a producer. Raises HandshakeRefusedError with the reason."""
        try:
            _check_agreement("protocol", PROTOCOL, hello.protocol)
            _check_agreement("election", self.election, hello.election)
            _check_agreement("producer_tp_size", self._producer_tp_size, hello.layout.tp_size)
            check_rank(hello.layout)
            check_pair(hello.layout, self.layout)
        except (RuntimeRefusalError, ValueError) as error:
            raise HandshakeRefusedError(
                f"consumer {self.layout.tp_rank} refuses producer {hello.layout.tp_rank}: {error}"
            ) from error
        with self._lock:
            self._producers[hello.layout.tp_rank] = hello.layout

    def answered(self, answer: Accepted | Refused) -> None:
        """Take the producer's answer. Raises HandshakeRefusedError with its reason."""
        if isinstance(answer, Refused):
            raise HandshakeRefusedError(
                f"producer {answer.tp_rank} refuses consumer {self.layout.tp_rank}: {answer.reason}"
            )
        with self._lock:
            self._accepted.add(answer.producer_rank)

    def request(self, request_id: str, blocks: Sequence[int]) -> dict[int, Pull]:
        """Start a request into these blocks; returns the pull for each expected producer rank.

        Raises RequestError for a used request id, no blocks, a block outside a region, twice in
        the list or still held; HandshakeRefusedError when a producer has not accepted.
        """
        with self._lock:
            self._check_request(request_id, blocks)
            self._used_ids.add(request_id)
            self._requests[request_id] = RequestReceipts(
                request_id=request_id,
                consumer=self.key,
                regions=self.layout.regions,
                blocks=tuple(blocks),
                plans={rank: self._plan_of(rank) for rank in self.expected_senders},
                with_digests=self._compare_content,
            )
        pull = Pull(
            request_id=request_id,
            consumer=self.key,
            destination_blocks=tuple(blocks),
            with_digests=self._compare_content,
        )
        return dict.fromkeys(sorted(self.expected_senders), pull)

    def receive(self, receipt: Receipt) -> RequestState:
        """Take a receipt in; READY only when all bytes are covered exactly once.

        Raises ReceiptError for a receipt that contradicts the request; a request it belongs to
        has then failed, unless it was final before.
        """
        with self._lock:
            request = self._find(receipt.request_id)
            request.add(receipt)
            if request.state is RequestState.WAITING and (
                request.receipts.keys() == request.producers
            ):
                self._conclude(request)
            return request.state

    def abort(self, request_id: str) -> dict[int, Abort]:
        """Give a request up; returns the message for each producer that has not reported.

        A request that failed stays FAILED, but its producers still have to hear that nobody waits.
        Its blocks stay held until each of them has. Raises ReceiptError for an unknown request.
        """
        with self._lock:
            request = self._find(request_id)
            if request.state is RequestState.WAITING:
                request.state = RequestState.ABORTED
                request.reason = "aborted"
            elif request.state is not RequestState.FAILED:
                return {}
            waiting = sorted(request.producers - request.receipts.keys())
        return dict.fromkeys(waiting, Abort(request_id=request_id, consumer=self.key))

    def fail(self, request_id: str, reason: str) -> None:
        """Fail a request that waits, such as after a timeout. Its blocks stay held as in abort.

        The producers are not told: abort() has the messages.
        """
        with self._lock:
            self._find(request_id).fail(reason)

    def never_asked(self, request_id: str, ranks: Iterable[int]) -> None:
        """Say that the pulls for these producers never left: they cannot write.

        Raises ReceiptError for an unknown request.
        """
        with self._lock:
            self._find(request_id).may_still_write.difference_update(ranks)

    def state(self, request_id: str) -> RequestState:
        """Where a request stands. Raises ReceiptError for an unknown one."""
        with self._lock:
            return self._find(request_id).state

    def reason(self, request_id: str) -> str:
        """Why a request failed; empty otherwise. Raises ReceiptError for an unknown one."""
        with self._lock:
            return self._find(request_id).reason

    def account(self, request_id: str) -> ByteAccount:
        """Bytes planned, sent and expected. Raises ReceiptError for an unknown request."""
        with self._lock:
            return self._find(request_id).account

    def held_destination_blocks(self) -> dict[str, tuple[int, ...]]:
        """Blocks, per request, into which a write may still land.

        A request that did not become ready stays until each expected producer has reported; with
        one that failed and was not quiet, until close(), since only the engine of this side knows
        when nothing lands any more.
        """
        with self._lock:
            return {
                request_id: request.blocks
                for request_id, request in self._requests.items()
                if request.holds_blocks
            }

    def forget(self, request_id: str) -> None:
        """Drop a request that is final; its id stays used.

        Raises RequestError while its blocks are held.
        """
        if request_id in self.held_destination_blocks():
            raise RequestError(f"request {request_id!r} still holds its destination blocks")
        with self._lock:
            self._requests.pop(request_id, None)

    def close(self) -> None:
        """Stop the transport; then nothing can land any more and every hold ends.

        Raises TransferError as the transport does; unless that is quiescent, the holds stay.
        """
        _stop(self._transport, self._end_holds)

    def _end_holds(self) -> None:
        with self._lock:
            for request in self._requests.values():
                request.fail("the consumer closed")
                request.may_still_write.clear()

    def _find(self, request_id: str) -> RequestReceipts:
        request = self._requests.get(request_id)
        if request is None:
            raise ReceiptError(f"request {request_id!r} is not known here")
        return request

    def _check_request(self, request_id: str, blocks: Sequence[int]) -> None:
        if request_id in self._used_ids:
            raise RequestError(f"request {request_id!r} was used before; legal is a new id")
        missing = sorted(self.expected_senders - (self._accepted & self._producers.keys()))
        if missing:
            raise HandshakeRefusedError(f"producers {missing} have not accepted this consumer")
        if not blocks:
            raise RequestError(f"request {request_id!r} has 0 blocks; legal is 1 or more")
        check_destinations(blocks)
        for region in self.layout.regions:
            if not 0 <= min(blocks) <= max(blocks) < region.num_blocks:
                raise RequestError(
                    f"destination blocks {min(blocks)} to {max(blocks)} for {region.label}; legal "
                    f"is 0 to {region.num_blocks - 1}"
                )
        for other, request in self._requests.items():
            shared = set(request.blocks) & set(blocks) if request.holds_blocks else set()
            if shared:
                raise RequestError(
                    f"destination block {min(shared)} is held: a write of request {other!r} may "
                    "still land in it"
                )

    def _plan_of(self, rank: int) -> ProducerPlan:
        """What this producer is to write into each block, by the plan made here."""
        plans = {
            region: region_plan(region, self._producers[rank], self.layout, self.election)
            for region in self.layout.regions
        }
        return {
            region.key: (
                plan.dst_head_offset * region.bytes_per_head,
                plan.head_count * region.bytes_per_head,
            )
            for region, plan in plans.items()
            if plan.sends
        }

    def _conclude(self, request: RequestReceipts) -> None:
        """Everybody has reported: the request is ready, or nothing will make it so."""
        if not request.is_covered:
            account = request.account
            request.fail(
                request.gap()
                or f"accounts differ: {account.planned} bytes planned, {account.sent} sent, "
                f"{account.expected} expected"
            )
            return
        wrong = self._wrong_content(request) if self._compare_content else ""
        if wrong:
            request.fail(wrong)
            return
        request.state = RequestState.READY

    def _wrong_content(self, request: RequestReceipts) -> str:
        regions = {region.key: region for region in self.layout.regions}
        for rank, receipt in sorted(request.receipts.items()):
            for write in receipt.writes:
                region = regions[(write.layer, write.component)]
                first = write.offset // region.bytes_per_head
                heads = write.length // region.bytes_per_head
                ours = head_digests(region, request.blocks, first, heads)
                at = wrong_digest(ours, write.digests)
                if at >= 0:
                    return (
                        f"{region.label}: head {first + at % heads} of block "
                        f"{request.blocks[at // heads]} does not hold what producer {rank} read"
                    )
        return ""


def _registered_layout(
    tp_size: int, tp_rank: int, dp_rank: int, cache: Cache, transport: Transport
) -> RankLayout:
    layout = RankLayout(
        tp_size=tp_size,
        tp_rank=tp_rank,
        dp_rank=dp_rank,
        session=transport.session_id,
        regions=cache.regions,
    )
    check_rank(layout)
    if len(cache.owners) != len(cache.regions):
        raise HypothesisError(
            "a_region_is_one_layer",
            f"{len(cache.owners)} owners for {len(cache.regions)} regions; legal is one each",
        )
    for region, owner in zip(cache.regions, cache.owners, strict=True):
        transport.register(region.base_address, region.length, owner)
    return layout


def _stop(transport: Transport, end_holds: Callable[[], None]) -> None:
    try:
        transport.close()
    except TransferError as error:
        # It complained and has stopped nonetheless.
        if error.quiescent:
            end_holds()
        raise
    end_holds()


def _key(layout: RankLayout) -> ConsumerKey:
    return ConsumerKey(tp_rank=layout.tp_rank, dp_rank=layout.dp_rank)


def _check_agreement(name: str, ours: object, theirs: object) -> None:
    if ours != theirs:
        raise HandshakeRefusedError(f"{name}={theirs!r} there, {ours!r} here; legal is equal")
