# SPDX-License-Identifier: Apache-2.0
"""Peers of different processes: the loops that carry messages between a peer and its channel."""

from __future__ import annotations

import contextlib
import logging
import time
from typing import TYPE_CHECKING

from kvreshard.runtime.errors import (
    HandshakeRefusedError,
    MessageError,
    PeerGoneError,
    ReceiptError,
    RuntimeRefusalError,
)
from kvreshard.runtime.messages import (
    Abort,
    Accepted,
    ConsumerHello,
    Message,
    ProducerHello,
    Pull,
    Receipt,
    Refused,
)
from kvreshard.runtime.receipts import RequestState

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from kvreshard.runtime.channel import ConsumerChannel, ProducerChannel
    from kvreshard.runtime.consumer import ConsumerPeer
    from kvreshard.runtime.producer import ProducerPeer


_LOGGER = logging.getLogger(__name__)


class RemoteProducers:
    """A consumer's connections: which zmq identity is which producer rank."""

    def __init__(self, peer: ConsumerPeer, channel: ConsumerChannel) -> None:
        """Wait for producers on this channel."""
        self._peer = peer
        self._channel = channel
        self._senders: dict[int, bytes] = {}
        self._accepted: set[int] = set()

    def introduce(self, timeout_s: float) -> None:
        """Shake hands with every expected producer.

        Raises HandshakeRefusedError when one refuses, is refused, or does not come in time.
        """
        deadline = time.monotonic() + timeout_s
        while not self._peer.expected_senders <= self._accepted:
            if not self._handle_next(deadline):
                missing = sorted(self._peer.expected_senders - self._accepted)
                raise HandshakeRefusedError(f"producers {missing} did not answer in {timeout_s} s")

    def transfer(self, request_id: str, blocks: Sequence[int], timeout_s: float) -> RequestState:
        """Pull one request from all expected producers and wait for their receipts.

        Returns its final state: FAILED when a producer has gone, or a receipt is missing after
        the time or contradicts the request. The blocks then stay held while a write may land; see
        ConsumerPeer.held_destination_blocks, abort and drain.
        """
        self._ask(request_id, self._peer.request(request_id, blocks))
        deadline = time.monotonic() + timeout_s
        while self._peer.state(request_id) is RequestState.WAITING:
            if not self._take_next(deadline):
                self._peer.fail(request_id, f"not every producer reported in {timeout_s} s")
        return self._peer.state(request_id)

    def abort(self, request_id: str) -> None:
        """Give a request up and tell the producers that have not reported. See drain."""
        for rank, message in self._peer.abort(request_id).items():
            # A producer that has gone cannot report: the blocks stay held.
            with contextlib.suppress(PeerGoneError):
                self._channel.send(self._senders[rank], message)

    def drain(self, timeout_s: float) -> bool:
        """Take late messages in until no block is held. False when some are, after the time."""
        deadline = time.monotonic() + timeout_s
        while self._peer.held_destination_blocks():
            if not self._take_next(deadline):
                return False
        return True

    def _ask(self, request_id: str, pulls: Mapping[int, Pull]) -> None:
        """Send every pull; when a producer has gone, stop, and stop those asked before."""
        waiting = dict(pulls)
        try:
            for rank, pull in pulls.items():
                self._channel.send(self._senders[rank], pull)
                del waiting[rank]
        except PeerGoneError as error:
            self._peer.fail(request_id, str(error))
            self._peer.never_asked(request_id, waiting)
            # Those never asked hear it too, so that they let go of their source blocks.
            self.abort(request_id)

    def _take_next(self, deadline: float) -> bool:
        """Handle one message, if one comes in time; a bad newcomer disturbs nobody's request."""
        try:
            return self._handle_next(deadline)
        except HandshakeRefusedError as error:
            _LOGGER.warning("%s", error)
            return True

    def _handle_next(self, deadline: float) -> bool:
        try:
            came = self._channel.receive(deadline - time.monotonic())
            if came is not None:
                self._handle(*came)
        except (MessageError, PeerGoneError, ReceiptError) as error:
            # A receipt that contradicts its request has failed it; no other one is affected. The
            # one that has gone is a newcomer: nobody else is answered here.
            _LOGGER.warning("%s", error)
            return True
        return came is not None

    def _handle(self, sender: bytes, message: Message) -> None:
        if isinstance(message, ProducerHello):
            self._meet(sender, message)
        elif isinstance(message, Accepted):
            self._check_sender(sender, message.producer_rank)
            self._peer.answered(message)
            self._accepted.add(message.producer_rank)
        elif isinstance(message, Refused):
            self._check_sender(sender, message.tp_rank)
            self._peer.answered(message)
        elif isinstance(message, Receipt):
            self._check_sender(sender, message.producer_rank)
            self._peer.receive(message)

    def _check_sender(self, sender: bytes, rank: int) -> None:
        """Each connection speaks for the rank it introduced itself as, and for no other."""
        if self._senders.get(rank) != sender:
            raise MessageError(f"a message for producer {rank} came over another connection")

    def _meet(self, sender: bytes, hello: ProducerHello) -> None:
        rank = hello.layout.tp_rank
        if rank in self._accepted:
            reason = f"producer {rank} was introduced before; legal is once"
            self._refuse(sender, reason)
            # Not a refusal of the producer that is here: nobody's handshake fails by it.
            raise MessageError(reason)
        try:
            self._peer.meet(hello)
        except HandshakeRefusedError as error:
            # Said to both sides, so that neither waits for the other.
            self._refuse(sender, str(error))
            raise
        self._channel.send(sender, self._peer.hello())
        self._senders[rank] = sender

    def _refuse(self, sender: bytes, reason: str) -> None:
        refusal = Refused(tp_rank=self._peer.layout.tp_rank, reason=reason)
        with contextlib.suppress(PeerGoneError):
            self._channel.send(sender, refusal)


def serve_consumer(peer: ProducerPeer, channel: ProducerChannel, timeout_s: float) -> Message:
    """Introduce a producer to one consumer and serve one pull or abort.

    Returns the last message sent: the receipt, or the refusal after which nothing is served.
    Raises HandshakeRefusedError when the consumer refuses or is silent for `timeout_s`.
    """
    channel.send(peer.hello())
    answer: Message | None = None
    while not isinstance(answer, (Receipt, Refused)):
        message = channel.receive(timeout_s)
        if message is None:
            raise HandshakeRefusedError(f"the consumer said nothing for {timeout_s} s")
        answer = _answer(peer, message)
        if answer is not None:
            channel.send(answer)
    return answer


def _answer(peer: ProducerPeer, message: Message) -> Message | None:
    if isinstance(message, ConsumerHello):
        return peer.meet(message)
    if isinstance(message, Pull):
        return peer.serve(message)
    if isinstance(message, Abort):
        return peer.abort(message)
    if isinstance(message, Refused):
        raise HandshakeRefusedError(message.reason)
    raise RuntimeRefusalError(f"a producer does not expect {type(message).__name__}")
