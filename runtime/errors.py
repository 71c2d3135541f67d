# SPDX-License-Identifier: Apache-2.0
"""The errors of the runtime, one type per kind of caller reaction."""

from __future__ import annotations


class RuntimeRefusalError(Exception):
    """Base of everything the runtime refuses or reports. Nothing else is raised on purpose."""


class UnsupportedCacheError(RuntimeRefusalError, ValueError):
    """A cache whose layout or kind is not planned yet.

    ``refusal`` is the stable name of the reason, such as ``token_major_layout``.
    """

    def __init__(self, refusal: str, detail: str) -> None:
        """Keep the name apart, so that callers need not parse the text."""
        super().__init__(f"{refusal}: {detail}")
        self.refusal = refusal


class HypothesisError(RuntimeRefusalError, ValueError):
    """A hypothesis of the planner's theorems does not hold for what the caller passed.

    ``hypothesis`` is the name of a hypothesis in the proof ledger, or of an assumption in
    SOUNDNESS.md where the theorems take it for granted.
    """

    def __init__(self, hypothesis: str, detail: str) -> None:
        """Keep the name apart, so that callers need not parse the text."""
        super().__init__(f"{hypothesis}: {detail}")
        self.hypothesis = hypothesis


class HandshakeRefusedError(RuntimeRefusalError):
    """Two ranks cannot exchange a cache; said before anything is sent."""


class RequestError(RuntimeRefusalError, ValueError):
    """One request is wrong (block ids, request id); the peers stay usable."""


class ReceiptError(RuntimeRefusalError):
    """A receipt that contradicts what the consumer expects."""


class MessageError(RuntimeRefusalError):
    """Bytes on the wire that are not a message of this protocol."""


class PeerGoneError(RuntimeRefusalError):
    """A message for a peer whose connection has ended."""


class TransferError(RuntimeRefusalError):
    """A write failed.

    ``quiescent`` is False when bytes may still be read from the source, and still be written
    at the destination, after this error was raised.
    """

    def __init__(self, detail: str, *, quiescent: bool) -> None:
        """Every raiser has to say whether the engine is quiet."""
        super().__init__(detail)
        self.quiescent = quiescent


class TransportUnavailableError(RuntimeRefusalError):
    """A transport's library, or a shared library it needs, is not installed."""
