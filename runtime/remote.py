# SPDX-License-Identifier: Apache-2.0
"""Peers of different processes: the loops that carry messages between a peer and its channel."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from kvreshard.runtime.errors import HandshakeRefusedError, ReceiptError, RuntimeRefusalError
from kvreshard.runtime.messages import (
    Abort,
    Accepted,
    ConsumerHello,
    Message,
    ProducerHello,
    Pull,
    Quiesced,
    Receipt,
    Refused,
)
from kvreshard.runtime.receipts import RequestState

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kvreshard.runtime.channel import ConsumerChannel, ProducerChannel
    from kvreshard.runtime.peers import ConsumerPeer, ProducerPeer


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
        while self._accepted < self._peer.expected_senders:
            came = self._channel.receive(deadline - time.monotonic())
            if came is None:
                missing = sorted(self._peer.expected_senders - self._accepted)
                raise HandshakeRefusedError(f"producers {missing} did not answer in {timeout_s} s")
            self._handle(*came)

    def transfer(self, request_id: str, blocks: Sequence[int], timeout_s: float) -> RequestState:
        """Pull one request from all expected producers and wait for their receipts.

        Returns its final state: FAILED when a receipt is missing after the time or contradicts
        the request. The blocks then stay held; see ConsumerPeer.held_destination_blocks.
        """
        deadline = time.monotonic() + timeout_s
        for rank, pull in self._peer.request(request_id, blocks).items():
            self._channel.send(self._senders[rank], pull)
        while self._peer.state(request_id) is RequestState.WAITING:
            came = self._channel.receive(deadline - time.monotonic())
            if came is None:
                self._peer.fail(request_id, f"not every producer reported in {timeout_s} s")
            else:
                self._handle(*came)
        return self._peer.state(request_id)

    def _handle(self, sender: bytes, message: Message) -> None:
        if isinstance(message, ProducerHello):
            self._peer.meet(message)
            self._senders[message.layout.tp_rank] = sender
            self._channel.send(sender, self._peer.hello())
        elif isinstance(message, (Accepted, Refused)):
            self._peer.answered(message)
            self._accepted.add(message.producer_rank)
        elif isinstance(message, Receipt):
            try:
                self._peer.receive(message)
            except ReceiptError:
                # It has marked the request it belongs to; another request is not affected.
                return
        elif isinstance(message, Quiesced):
            self._peer.settle(message)


def serve_consumer(peer: ProducerPeer, channel: ProducerChannel, timeout_s: float) -> Message:
    """Introduce a producer to one consumer and serve one pull or abort.

    Returns the last message sent: the receipt, or the refusal after which nothing is served.
    Raises HandshakeRefusedError when the consumer is silent for `timeout_s`.
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
    raise RuntimeRefusalError(f"a producer does not expect {type(message).__name__}")
