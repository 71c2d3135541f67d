# SPDX-License-Identifier: Apache-2.0
"""What peers say to each other, as msgspec structs, and how it goes on the wire (msgpack)."""

from typing import NamedTuple

import msgspec

from kvreshard.runtime.errors import MessageError
from kvreshard.runtime.layout import RankLayout

#: Raised whenever a message changes its meaning; both sides must speak the same.
PROTOCOL = 1


class ConsumerKey(NamedTuple):
    """Which consumer of a request; ranks of different DP groups never share receipts."""

    tp_rank: int
    dp_rank: int


class _Message(msgspec.Struct, frozen=True, kw_only=True, tag=True, forbid_unknown_fields=True):
    pass


class ProducerHello(_Message, frozen=True):
    """A producer introduces itself."""

    protocol: int
    layout: RankLayout
    election: str


class ConsumerHello(_Message, frozen=True):
    """A consumer introduces itself, its layout and whom it expects to hear from."""

    protocol: int
    layout: RankLayout
    election: str
    #: Size of the producer group the consumer was told of.
    producer_tp_size: int
    expected_senders: tuple[int, ...]


class Accepted(_Message, frozen=True):
    """The producer can serve this consumer."""

    producer_rank: int


class Refused(_Message, frozen=True):
    """Either side cannot work with the other, and why. Nothing was sent."""

    #: Of the side that refuses.
    tp_rank: int
    reason: str


class Pull(_Message, frozen=True):
    """A consumer asks for a request's blocks, in the order of the producer's offer."""

    request_id: str
    consumer: ConsumerKey
    destination_blocks: tuple[int, ...]
    #: Ask for digests of what is sent.
    with_digests: bool


class Abort(_Message, frozen=True):
    """A consumer no longer wants a request."""

    request_id: str
    consumer: ConsumerKey


class Write(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The same interval of each destination block of one region was written."""

    layer: str
    component: str
    #: Bytes from the start of the block.
    offset: int
    #: Bytes.
    length: int
    #: One digest per (block, head), block by block; empty when not asked for.
    digests: bytes


class Receipt(_Message, frozen=True):
    """A producer's one report on one pull: everything was written, or the pull failed."""

    request_id: str
    consumer: ConsumerKey
    producer_rank: int
    #: Empty when everything was written.
    failure: str
    #: False when bytes of this pull may still land.
    quiescent: bool
    destination_blocks: tuple[int, ...]
    writes: tuple[Write, ...]
    bytes_sent: int


Message = ProducerHello | ConsumerHello | Accepted | Refused | Pull | Abort | Receipt

_ENCODER = msgspec.msgpack.Encoder()
_DECODER: msgspec.msgpack.Decoder[Message] = msgspec.msgpack.Decoder(Message)


def encode(message: Message) -> bytes:
    """Turn a message into bytes."""
    return _ENCODER.encode(message)


def decode(data: bytes) -> Message:
    """Turn bytes into a message. Raises MessageError naming the field that does not fit."""
    try:
        return _DECODER.decode(data)
    except msgspec.DecodeError as error:
        raise MessageError(f"not a message of protocol {PROTOCOL}: {error}") from error
