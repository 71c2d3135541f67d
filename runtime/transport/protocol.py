# SPDX-License-Identifier: Apache-2.0
"""What the peers ask of a transport."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from kvreshard.runtime.descriptors import Descriptors


class Transport(Protocol):
    """Writes from memory registered here into memory registered at another session."""

    @property
    def session_id(self) -> str:
        """The name other transports write to. Unique for the life of all peers."""
        ...

    def register(self, address: int, length: int, owner: object) -> None:
        """Make ``length`` bytes at ``address`` readable and writable by transfers.

        ``owner`` keeps the memory alive until close: memory that is freed while registered would
        be written into under its next owner.
        Raises TransferError (quiescent) when the range overlaps another or the engine refuses.
        """
        ...

    def write(self, session_id: str, descriptors: Descriptors) -> None:
        """Write all descriptors to the peer; on return the bytes are there.

        Raises TransferError; its ``quiescent`` says whether anything may still move.
        """
        ...

    def close(self) -> None:
        """Unregister everything and stop; afterwards nothing moves any more. Idempotent."""
        ...
