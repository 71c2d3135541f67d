# SPDX-License-Identifier: Apache-2.0
"""The default transport: memory copies within one process, source and destination checked."""

from __future__ import annotations

import ctypes
import itertools
import threading
from typing import TYPE_CHECKING

from kvreshard.runtime.errors import TransferError
from kvreshard.runtime.transport.ranges import RangeTable

if TYPE_CHECKING:
    from kvreshard.runtime.descriptors import Descriptors

_SESSION_NUMBERS = itertools.count()


class Fabric:
    """The transports that can reach each other. One per test, demo case or application."""

    def __init__(self) -> None:
        """Start with nobody connected."""
        self._lock = threading.Lock()
        self._tables: dict[str, RangeTable] = {}

    def _join(self, session_id: str, table: RangeTable) -> None:
        with self._lock:
            self._tables[session_id] = table

    def _leave(self, session_id: str) -> None:
        with self._lock:
            self._tables.pop(session_id, None)

    def _copy(self, own: RangeTable, session_id: str, descriptors: Descriptors) -> None:
        # The lock covers the copies: a peer that closes has no write under way afterwards.
        with self._lock:
            table = self._tables.get(session_id)
            if table is None:
                raise TransferError(f"no transport has session {session_id!r}", quiescent=True)
            own.check("source", descriptors.source, descriptors.length)
            table.check("destination", descriptors.destination, descriptors.length)
            for source, destination, length in zip(
                descriptors.source.tolist(),
                descriptors.destination.tolist(),
                descriptors.length.tolist(),
                strict=True,
            ):
                ctypes.memmove(destination, source, length)


class InProcessTransport:
    """Copies with memmove. Every check comes before the first byte, so a failure is quiescent."""

    def __init__(self, fabric: Fabric) -> None:
        """Join the fabric under a session name that is never used again."""
        self._fabric = fabric
        self._table = RangeTable()
        self._session_id = f"in-process:{next(_SESSION_NUMBERS)}"
        self._closed = False
        fabric._join(self._session_id, self._table)

    @property
    def session_id(self) -> str:
        """The name other transports of the fabric write to."""
        return self._session_id

    def register(self, address: int, length: int, owner: object) -> None:
        """Register a range; see Transport."""
        self._refuse_closed()
        self._table.add(address, length, owner)

    def write(self, session_id: str, descriptors: Descriptors) -> None:
        """Copy all descriptors, or none and raise TransferError."""
        self._refuse_closed()
        self._fabric._copy(self._table, session_id, descriptors)

    def close(self) -> None:
        """Leave the fabric."""
        self._closed = True
        self._fabric._leave(self._session_id)
        self._table.clear()

    def _refuse_closed(self) -> None:
        if self._closed:
            raise TransferError(f"transport {self._session_id} is closed", quiescent=True)
