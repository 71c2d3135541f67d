# SPDX-License-Identifier: Apache-2.0
"""Peers of one process, wired by calling each other."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from kvreshard.runtime.consumer import ConsumerPeer
    from kvreshard.runtime.producer import ProducerPeer
    from kvreshard.runtime.receipts import RequestState


def introduce(consumer: ConsumerPeer, producers: Mapping[int, ProducerPeer]) -> None:
    """Shake hands with each producer the consumer expects, by rank.

    Raises HandshakeRefusedError, from whichever side refuses, before anything is sent.
    """
    for rank in sorted(consumer.expected_senders):
        consumer.meet(producers[rank].hello())
        consumer.answered(producers[rank].meet(consumer.hello()))


def transfer(
    consumer: ConsumerPeer,
    producers: Mapping[int, ProducerPeer],
    request_id: str,
    blocks: Sequence[int],
) -> RequestState:
    """Pull one offered request into these blocks, one producer after the other.

    Returns its final state. Raises RequestError or ReceiptError as the peers do.
    """
    for rank, pull in consumer.request(request_id, blocks).items():
        consumer.receive(producers[rank].serve(pull))
    return consumer.state(request_id)
