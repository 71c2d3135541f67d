# SPDX-License-Identifier: Apache-2.0
"""The receiving side of a transfer; see peers."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from kvreshard.runtime.blocks import check_destinations
from kvreshard.runtime.digests import head_digests
from kvreshard.runtime.errors import (
    HandshakeRefusedError,
    ReceiptError,
    RequestError,
    RuntimeRefusalError,
)
from kvreshard.runtime.layout import RankLayout, check_pair, check_rank
from kvreshard.runtime.messages import (
    PROTOCOL,
    Abort,
    Accepted,
    ConsumerHello,
    ProducerHello,
    Pull,
    Receipt,
    Refused,
)
from kvreshard.runtime.peers import Cache, check_agreement, key_of, registered_layout, stop
from kvreshard.runtime.planning import region_plan, senders_to
from kvreshard.runtime.receipts import (
    ByteAccount,
    ProducerPlan,
    RequestReceipts,
    RequestState,
    wrong_digest,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from kvreshard.runtime.transport.protocol import Transport


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
        self.layout = registered_layout(tp_size, tp_rank, dp_rank, cache, transport)
        self.election = election
        self.key = key_of(self.layout)
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
            check_agreement("protocol", PROTOCOL, hello.protocol)
            check_agreement("election", self.election, hello.election)
            check_agreement("producer_tp_size", self._producer_tp_size, hello.layout.tp_size)
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
        stop(self._transport, self._end_holds)

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
