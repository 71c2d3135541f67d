# SPDX-License-Identifier: Apache-2.0
"""Mooncake's transfer engine over TCP in P2P-handshake mode; needs no server.

Known limits of the engine that shape this module: TCP never checks the source, so it is checked
here; a failure is returned at the first failed descriptor while the others still move, so it is
never quiescent; more than about 2,000 descriptors outstanding to one peer fail or wedge it, so
batches are cut and each peer has one writer. The engine listens on all interfaces, without
authentication, whatever host it is given.
"""

from __future__ import annotations

import importlib
import os
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from kvreshard.runtime.errors import TransferError, TransportUnavailableError
from kvreshard.runtime.transport.ranges import RangeTable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kvreshard.runtime.descriptors import Descriptors

#: Descriptors handed to the engine in one call.
MAX_BATCH = 1000

_ENVIRONMENT = {
    "MC_LOG_LEVEL": "ERROR",
    "MC_TCP_MAX_QUEUED_TRANSFERS_PER_PEER": "65535",
    "MC_TCP_MAX_PENDING_ADMISSIONS_PER_PEER": "65535",
    "MC_TCP_ADMISSION_TIMEOUT_MS": "600000",
}
_DEBIAN_PACKAGES = "libibverbs1 libnuma1 libcurl4"


class MooncakeTransport:
    """One transfer engine. Use it in the process that made it; it does not survive a fork."""

    def __init__(self, host: str = "127.0.0.1") -> None:
        """Start an engine that peers reach at ``host`` and a port it picks.

        Sets MC_* variables that are not set already, since the engine reads them when made.
        Raises TransportUnavailableError without the library, TransferError when it won't start.
        """
        self._table = RangeTable()
        self._writers: dict[str, threading.Lock] = {}
        self._failed_sessions: set[str] = set()
        self._state = threading.Condition()
        self._calls_under_way = 0
        self._closed = False
        self._process = os.getpid()
        # No other name ever refers to the engine: close() has to drop the last reference.
        self._engine: Any = load_engine_class()()
        _check(self._engine.initialize(host, "P2PHANDSHAKE", "tcp", ""), f"initialize on {host}")
        self._session_id = f"{host}:{self._engine.get_rpc_port()}"

    @property
    def session_id(self) -> str:
        """Host and port of this engine."""
        return self._session_id

    def register(self, address: int, length: int, owner: object) -> None:
        """Register a range; see Transport."""
        with self._call():
            self._table.add(address, length, owner)
            code = self._engine.register_memory(address, length)
            if code != 0:
                self._table.remove(address)
            _check(code, f"register {length} bytes at {address}")

    def write(self, session_id: str, descriptors: Descriptors) -> None:
        """Write in batches of at most MAX_BATCH, one batch at a time per peer.

        Raises TransferError: quiescent where it was refused here before the first batch, not
        quiescent where the engine failed. After an engine failure the session is refused, since
        descriptors of the failed batch may still be queued for it.
        """
        with self._call(), self._turn(session_id):
            self._table.check("source", descriptors.source, descriptors.length)
            if session_id in self._failed_sessions:
                raise TransferError(
                    f"session {session_id} failed before; it is not used again", quiescent=True
                )
            for start in range(0, descriptors.rows, MAX_BATCH):
                self._write_batch(session_id, descriptors, start)

    def close(self) -> None:
        """Wait for calls under way, unregister every range, destroy the engine (about a second).

        Raises TransferError, quiescent, when the engine refuses to unregister a range; it is
        destroyed anyway. Raises it, not quiescent, after a fork: only the process that made the
        engine has its threads and can stop it.
        """
        self._refuse_fork(quiescent=False)
        with self._state:
            self._closed = True
            self._state.wait_for(lambda: self._calls_under_way == 0)
            if self._engine is None:
                return
            refused = [
                f"{address}: {code}"
                for address, _ in self._table.items()
                if (code := self._unregister(address)) != 0
            ]
            # The binding has no stop call; dropping the last reference runs the destructor.
            self._engine = None
            self._table.clear()
        if refused:
            raise TransferError(f"unregister returned {'; '.join(refused)}", quiescent=True)

    @contextmanager
    def _call(self) -> Iterator[None]:
        """Refuse a transport that cannot be used, and keep close() waiting meanwhile."""
        self._refuse_fork(quiescent=True)
        with self._state:
            if self._closed:
                raise TransferError(f"transport {self._session_id} is closed", quiescent=True)
            self._calls_under_way += 1
        try:
            yield
        finally:
            with self._state:
                self._calls_under_way -= 1
                self._state.notify_all()

    def _refuse_fork(self, *, quiescent: bool) -> None:
        # Before any lock is taken: a thread that does not exist here may have held it.
        if os.getpid() != self._process:
            raise TransferError(
                f"transport {self._session_id} was made in process {self._process} and cannot be "
                f"used after a fork, here in {os.getpid()}",
                quiescent=quiescent,
            )

    def _unregister(self, address: int) -> object:
        """The engine's code; an exception counts as one, so that close() goes on."""
        try:
            return self._engine.unregister_memory(address)
        except Exception as error:
            return repr(error)

    def _turn(self, session_id: str) -> threading.Lock:
        """The lock that makes its holder the one writer to this session."""
        with self._state:
            return self._writers.setdefault(session_id, threading.Lock())

    def _write_batch(self, session_id: str, descriptors: Descriptors, start: int) -> None:
        batch = slice(start, start + MAX_BATCH)
        rows = [column[batch].tolist() for column in descriptors]
        try:
            code = self._engine.batch_transfer_sync_write(session_id, *rows)
        except Exception as error:
            # The binding may raise after it has queued a part of the batch.
            self._failed_sessions.add(session_id)
            raise _unfinished(session_id, f"raised {error!r}", start, descriptors.rows) from error
        if code != 0:
            self._failed_sessions.add(session_id)
            raise _unfinished(session_id, f"returned {code}", start, descriptors.rows)


def _unfinished(session_id: str, how: str, start: int, rows: int) -> TransferError:
    return TransferError(
        f"batch_transfer_sync_write to {session_id} {how} in the batch that starts at descriptor "
        f"{start} of {rows}; other descriptors of it may still be under way",
        quiescent=False,
    )


def load_engine_class() -> Any:
    """Import Mooncake's TransferEngine.

    Raises TransportUnavailableError that says what to install.
    """
    if "MC_LOG_DIR" in os.environ:
        raise TransportUnavailableError(
            "MC_LOG_DIR is set, which makes Mooncake's engine abort the process; unset it"
        )
    for name, value in _ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    try:
        return importlib.import_module("mooncake.engine").TransferEngine
    except ModuleNotFoundError as error:
        raise TransportUnavailableError(
            "Mooncake is not installed: pip install 'kvreshard[mooncake-cpu]', or "
            "'kvreshard[mooncake]' on a machine with an NVIDIA driver"
        ) from error
    except (ImportError, OSError) as error:
        raise TransportUnavailableError(
            f"Mooncake's engine does not load ({error}); it needs the Debian packages "
            f"{_DEBIAN_PACKAGES}: run 'make system-deps'. The CUDA build also needs an NVIDIA "
            "driver; without one install 'kvreshard[mooncake-cpu]' instead"
        ) from error


def _check(code: int, action: str) -> None:
    if code != 0:
        raise TransferError(f"the engine returned {code}: {action}", quiescent=True)
