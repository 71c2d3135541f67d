# SPDX-License-Identifier: Apache-2.0
"""Messages between processes: the consumer binds a zmq endpoint on loopback, producers connect."""

from __future__ import annotations

import zmq

from kvreshard.runtime.errors import MessageError, PeerGoneError
from kvreshard.runtime.messages import Message, decode, encode

# What is still queued when a socket closes, such as a last receipt, gets this long to leave.
_LINGER_MS = 2000


class ConsumerChannel:
    """The consumer's end. One thread at a time."""

    def __init__(self) -> None:
        """Bind a free port of 127.0.0.1."""
        self._socket: zmq.Socket[bytes] = zmq.Context.instance().socket(zmq.ROUTER)
        self._socket.setsockopt(zmq.LINGER, _LINGER_MS)
        # A message to a producer that has gone raises instead of vanishing.
        self._socket.setsockopt(zmq.ROUTER_MANDATORY, 1)
        port: int = self._socket.bind_to_random_port("tcp://127.0.0.1")
        #: What producers connect to.
        self.endpoint = f"tcp://127.0.0.1:{port}"

    def close(self) -> None:
        """Close the socket; what is queued still gets a moment to leave."""
        self._socket.close()

    def receive(self, timeout_s: float) -> tuple[bytes, Message] | None:
        """The next message and who sent it; None when none came in time.

        Raises MessageError for bytes that are not a message.
        """
        if not self._socket.poll(max(0, int(timeout_s * 1000))):
            return None
        sender, *frames = self._socket.recv_multipart()
        return sender, decode(_one_frame(frames))

    def send(self, sender: bytes, message: Message) -> None:
        """Send to a producer that wrote before. Raises PeerGoneError when it has gone."""
        try:
            self._socket.send_multipart([sender, encode(message)])
        except zmq.ZMQError as error:
            raise PeerGoneError(f"a producer's connection has ended: {error}") from error


class ProducerChannel:
    """One producer's end towards one consumer. One thread at a time."""

    def __init__(self, endpoint: str) -> None:
        """Connect to a consumer's endpoint."""
        self._socket: zmq.Socket[bytes] = zmq.Context.instance().socket(zmq.DEALER)
        self._socket.setsockopt(zmq.LINGER, _LINGER_MS)
        self._socket.connect(endpoint)

    def close(self) -> None:
        """Close the socket; what is queued still gets a moment to leave."""
        self._socket.close()

    def receive(self, timeout_s: float) -> Message | None:
        """The consumer's next message; None when none came in time.

        Raises MessageError for bytes that are not a message.
        """
        if not self._socket.poll(max(0, int(timeout_s * 1000))):
            return None
        return decode(_one_frame(self._socket.recv_multipart()))

    def send(self, message: Message) -> None:
        """Send to the consumer."""
        self._socket.send(encode(message))


def _one_frame(frames: list[bytes]) -> bytes:
    if len(frames) != 1:
        raise MessageError(f"a message of {len(frames)} frames; legal is 1")
    return frames[0]
