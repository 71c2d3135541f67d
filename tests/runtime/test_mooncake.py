# SPDX-License-Identifier: Apache-2.0
"""The Mooncake transport against real engines over TCP, alone and between processes.

These fail, and are not skipped, where Mooncake is missing: `make test` installs it.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import sys
import threading
from typing import TYPE_CHECKING

import msgspec
import numpy as np
import pytest
import torch
from mooncake_ranks import (
    BLOCKS,
    REQUEST,
    TIMEOUT_S,
    backwards,
    big_cache,
    consumer_peer,
    consumer_that_dies_main,
    context,
    producer_main,
    producer_peer,
    when_bytes_arrive,
)

from kvreshard.demo import default_cases
from kvreshard.demo_ranks import run_mooncake
from kvreshard.runtime.channel import ConsumerChannel, ProducerChannel
from kvreshard.runtime.descriptors import Descriptors
from kvreshard.runtime.errors import (
    RequestError,
    TransferError,
    TransportUnavailableError,
)
from kvreshard.runtime.local import introduce, transfer
from kvreshard.runtime.messages import Receipt
from kvreshard.runtime.receipts import RequestState
from kvreshard.runtime.remote import RemoteProducers, serve_consumer
from kvreshard.runtime.transport import mooncake
from kvreshard.runtime.transport.mooncake import MAX_BATCH, MooncakeTransport, load_engine_class

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from kvreshard.demo_case import Case


@pytest.fixture(scope="module")
def pair() -> Iterator[tuple[MooncakeTransport, MooncakeTransport]]:
    """Two engines of this process; each takes about a second to destroy."""
    with (
        contextlib.closing(MooncakeTransport()) as one,
        contextlib.closing(MooncakeTransport()) as other,
    ):
        yield one, other


def memory(transport: MooncakeTransport, size: int, fill: int = 0) -> torch.Tensor:
    tensor = torch.full((size,), fill, dtype=torch.uint8)
    transport.register(tensor.data_ptr(), size, tensor)
    return tensor


def descriptors(*rows: tuple[int, int, int]) -> Descriptors:
    return Descriptors(*(np.array(column, dtype=np.uint64) for column in zip(*rows, strict=True)))


# One process


def test_more_descriptors_than_a_batch_arrive(
    pair: tuple[MooncakeTransport, MooncakeTransport],
) -> None:
    sender, receiver = pair
    count = 2 * MAX_BATCH + 1
    source, destination = memory(sender, count), memory(receiver, 2 * count)
    source.copy_(torch.arange(count) % 251)
    at = np.arange(count, dtype=np.uint64)
    sender.write(
        receiver.session_id,
        Descriptors(
            at + np.uint64(source.data_ptr()),
            at * np.uint64(2) + np.uint64(destination.data_ptr()),
            np.ones(count, dtype=np.uint64),
        ),
    )
    assert torch.equal(destination[::2], source)
    assert not destination[1::2].any()


def test_the_source_is_checked_here_since_the_engine_does_not(
    pair: tuple[MooncakeTransport, MooncakeTransport],
) -> None:
    sender, receiver = pair
    stranger = torch.ones(64, dtype=torch.uint8)
    destination = memory(receiver, 64)
    with pytest.raises(TransferError, match="source of descriptor 0") as raised:
        sender.write(
            receiver.session_id, descriptors((stranger.data_ptr(), destination.data_ptr(), 64))
        )
    assert raised.value.quiescent
    assert not destination.any()


def test_overlapping_registrations_are_refused(
    pair: tuple[MooncakeTransport, MooncakeTransport],
) -> None:
    sender, _ = pair
    tensor = memory(sender, 64)
    with pytest.raises(TransferError, match="overlap a range"):
        sender.register(tensor.data_ptr() + 8, 8, tensor)


class RaisingEngine:
    """In place of an engine: the binding raises instead of returning a code."""

    def batch_transfer_sync_write(self, *arguments: object) -> int:
        raise ValueError(f"{len(arguments)} arguments")


def test_an_engine_that_raises_is_not_quiescent_and_ends_the_session() -> None:
    with contextlib.closing(MooncakeTransport()) as sender:
        source = memory(sender, 64)
        engine, sender._engine = sender._engine, RaisingEngine()
        row = descriptors((source.data_ptr(), source.data_ptr(), 64))
        try:
            with pytest.raises(TransferError, match="raised ValueError") as raised:
                sender.write("127.0.0.1:1", row)
            assert not raised.value.quiescent
            with pytest.raises(TransferError, match="failed before; it is not used again"):
                sender.write("127.0.0.1:1", row)
        finally:
            sender._engine = engine
        del engine


def test_an_engine_failure_is_not_quiescent_and_ends_the_session() -> None:
    with (
        contextlib.closing(MooncakeTransport()) as sender,
        contextlib.closing(MooncakeTransport()) as receiver,
    ):
        source, destination = memory(sender, 64, fill=3), memory(receiver, 64)
        unregistered = torch.zeros(64, dtype=torch.uint8)
        bad = descriptors((source.data_ptr(), unregistered.data_ptr(), 64))
        with pytest.raises(TransferError, match=r"returned -1 in the batch that starts") as raised:
            sender.write(receiver.session_id, bad)
        assert not raised.value.quiescent
        assert not unregistered.any()
        good = descriptors((source.data_ptr(), destination.data_ptr(), 64))
        with pytest.raises(TransferError, match="failed before; it is not used again"):
            sender.write(receiver.session_id, good)
        with pytest.raises(TransferError, match="returned -1"):
            sender.write("127.0.0.1:1", good)


def test_a_closed_transport_does_nothing() -> None:
    transport = MooncakeTransport()
    tensor = memory(transport, 64)
    transport.close()
    transport.close()
    with pytest.raises(TransferError, match="is closed"):
        transport.register(tensor.data_ptr(), 64, tensor)


def test_an_engine_is_not_used_after_a_fork(
    pair: tuple[MooncakeTransport, MooncakeTransport], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "getpid", lambda: -1)
    with pytest.raises(TransferError, match="cannot be used after a fork"):
        pair[0].write("x", descriptors((1, 1, 1)))


def test_a_forked_child_does_not_destroy_the_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    scripted(monkeypatch)
    transport = MooncakeTransport()
    with monkeypatch.context() as child:
        child.setattr(os, "getpid", lambda: -1)
        with pytest.raises(TransferError, match="cannot be used after a fork") as raised:
            transport.close()
    assert not raised.value.quiescent
    assert transport._engine is not None
    transport.close()
    assert transport._engine is None


RAISES = 99


class ScriptedEngine:
    """An engine whose calls return what a test wants."""

    def __init__(self, **codes: int) -> None:
        self.codes = codes

    def initialize(self, *_: str) -> int:
        return self.codes.get("initialize", 0)

    def get_rpc_port(self) -> int:
        return 1234

    def register_memory(self, *_: int) -> int:
        return self.codes.get("register_memory", 0)

    def unregister_memory(self, _: int) -> int:
        if self.codes.get("unregister_memory") == RAISES:
            raise ValueError("no")
        return self.codes.get("unregister_memory", 0)


def scripted(monkeypatch: pytest.MonkeyPatch, **codes: int) -> None:
    monkeypatch.setattr(mooncake, "load_engine_class", lambda: lambda: ScriptedEngine(**codes))


def test_every_return_code_is_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    scripted(monkeypatch, initialize=-1)
    with pytest.raises(TransferError, match=r"the engine returned -1: initialize on 127\.0\.0\.1"):
        MooncakeTransport()
    scripted(monkeypatch, register_memory=-7)
    with pytest.raises(TransferError, match="the engine returned -7: register 10 bytes at 100"):
        MooncakeTransport().register(100, 10, None)
    scripted(monkeypatch, unregister_memory=-3)
    transport = MooncakeTransport()
    transport.register(100, 10, None)
    with pytest.raises(TransferError, match="unregister returned 100: -3"):
        transport.close()
    transport.close()


def test_an_engine_that_raises_while_it_closes_is_destroyed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    scripted(monkeypatch, unregister_memory=RAISES)
    transport = MooncakeTransport()
    transport.register(100, 10, None)
    with pytest.raises(TransferError, match=r"unregister returned 100: ValueError\('no'\)"):
        transport.close()
    assert transport._engine is None


class SlowEngine(ScriptedEngine):
    """Counts the writes under way per session; each waits until the test lets it go."""

    def __init__(self) -> None:
        super().__init__()
        self.lock = threading.Lock()
        self.under_way: dict[str, int] = {}
        self.most: dict[str, int] = {}
        self.started = threading.Semaphore(0)
        self.go = threading.Event()
        self.sizes: list[int] = []

    def batch_transfer_sync_write(
        self, session: str, source: list[int], destination: list[int], length: list[int]
    ) -> int:
        assert len(source) == len(destination) == len(length)
        with self.lock:
            self.sizes.append(len(source))
            self.under_way[session] = self.under_way.get(session, 0) + 1
            self.most[session] = max(self.most.get(session, 0), self.under_way[session])
        self.started.release()
        assert self.go.wait(TIMEOUT_S)
        with self.lock:
            self.under_way[session] -= 1
        return 0


def test_one_writer_per_peer_and_close_waits_for_them(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = SlowEngine()
    monkeypatch.setattr(mooncake, "load_engine_class", lambda: lambda: engine)
    transport = MooncakeTransport()
    transport.register(1000, 4000, None)
    many = descriptors(*[(1000 + at, 9000 + at, 1) for at in range(MAX_BATCH + 1)])
    writers = [
        threading.Thread(target=transport.write, args=(session, many))
        for session in ["a", "a", "b", "b"]
    ]
    for writer in writers:
        writer.start()
    for _ in range(2):
        assert engine.started.acquire(timeout=TIMEOUT_S), "two peers are written to at once"
    closed = threading.Event()

    def close() -> None:
        transport.close()
        closed.set()

    closer = threading.Thread(target=close)
    closer.start()
    assert not closed.wait(0.2)
    engine.go.set()
    for thread in [*writers, closer]:
        thread.join()
    assert engine.most == {"a": 1, "b": 1}
    assert sorted(engine.sizes) == [1] * 4 + [MAX_BATCH] * 4
    with pytest.raises(TransferError, match="is closed"):
        transport.write("a", many)


# What is missing is said


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mooncake.engine", None)
    with pytest.raises(TransportUnavailableError) as raised:
        load_engine_class()
    assert str(raised.value) == (
        "Mooncake is not installed: pip install 'kvreshard[mooncake-cpu]', or "
        "'kvreshard[mooncake]' on a machine with an NVIDIA driver"
    )


def test_a_missing_shared_library_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(_: str) -> None:
        raise ImportError("libibverbs.so.1: cannot open shared object file")

    monkeypatch.setattr(importlib, "import_module", missing)
    with pytest.raises(TransportUnavailableError) as raised:
        load_engine_class()
    assert str(raised.value) == (
        "Mooncake's engine does not load (libibverbs.so.1: cannot open shared object file); it "
        "needs the Debian packages libibverbs1 libnuma1 libcurl4: run 'make system-deps'. The CUDA "
        "build also needs an NVIDIA driver; without one install 'kvreshard[mooncake-cpu]' instead"
    )


def test_a_variable_that_aborts_the_process_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MC_LOG_DIR", "logs")
    with pytest.raises(TransportUnavailableError, match="MC_LOG_DIR is set"):
        load_engine_class()


def test_the_engine_reads_our_queue_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MC_TCP_MAX_QUEUED_TRANSFERS_PER_PEER", raising=False)
    monkeypatch.setenv("MC_LOG_LEVEL", "WARNING")
    load_engine_class()
    assert os.environ["MC_TCP_MAX_QUEUED_TRANSFERS_PER_PEER"] == "65535"
    assert os.environ["MC_LOG_LEVEL"] == "WARNING", "what the user set stays"


# A failed batch, peers in one process


def test_a_failed_batch_is_never_ready_and_holds_both_sides() -> None:
    source, destination = big_cache(7), big_cache(0)
    producer = producer_peer(source, MooncakeTransport())
    consumer = consumer_peer(destination, MooncakeTransport())
    region = consumer.layout.regions[0]
    # The consumer announces memory its engine does not know.
    elsewhere = msgspec.structs.replace(region, base_address=region.base_address + region.length)
    consumer.layout = msgspec.structs.replace(consumer.layout, regions=(elsewhere,))
    introduce(consumer, {0: producer})
    assert transfer(consumer, {0: producer}, REQUEST, backwards()) is RequestState.FAILED
    assert "batch_transfer_sync_write" in consumer.reason(REQUEST)
    assert consumer.held_destination_blocks() == {REQUEST: tuple(backwards())}
    assert producer.held_source_blocks() == {REQUEST: tuple(range(BLOCKS))}
    with pytest.raises(RequestError, match="source block 5 is held"):
        producer.offer("next", [5])
    producer.close()
    assert producer.held_source_blocks() == {}
    assert consumer.held_destination_blocks() == {REQUEST: tuple(backwards())}
    consumer.close()
    assert consumer.held_destination_blocks() == {}


# Separate processes


@pytest.mark.parametrize("case", default_cases(), ids=["F1", "F2", "F15", "replicated"])
def test_every_rank_in_a_process_of_its_own(case: Case) -> None:
    outcome = run_mooncake(case)
    assert outcome.is_right
    assert outcome.processes == case.prefill_tp + case.decode_tp
    for consumer in outcome.consumers:
        assert consumer.account.planned == consumer.account.sent == consumer.account.expected


def test_a_producer_killed_while_it_writes_is_never_ready(tmp_path: Path) -> None:
    destination = big_cache(0)
    consumer = consumer_peer(destination, MooncakeTransport())
    with contextlib.closing(ConsumerChannel()) as channel:
        process = context().Process(
            target=producer_main, args=(channel.endpoint, str(tmp_path / "log"))
        )
        process.start()
        producers = RemoteProducers(consumer, channel)
        producers.introduce(TIMEOUT_S)
        arrived = threading.Event()
        watcher = threading.Thread(target=when_bytes_arrive, args=(destination, arrived))
        killer = threading.Thread(target=lambda: process.kill() if arrived.wait() else None)
        watcher.start()
        killer.start()
        state = producers.transfer(REQUEST, backwards(), timeout_s=2)
        watcher.join()
        killer.join()
        process.join()
    assert state is RequestState.FAILED
    assert consumer.reason(REQUEST) == "not every producer reported in 2 s"
    landed = int((destination[:, 0, 0, 0] == 7).sum())
    assert 0 < landed < BLOCKS
    assert consumer.held_destination_blocks() == {REQUEST: tuple(backwards())}
    consumer.close()
    assert consumer.held_destination_blocks() == {}


def test_a_consumer_killed_while_it_is_written_leaves_the_source_held(tmp_path: Path) -> None:
    ours, theirs = context().Pipe()
    process = context().Process(
        target=consumer_that_dies_main, args=(theirs, str(tmp_path / "log"))
    )
    process.start()
    producer = producer_peer(big_cache(7), MooncakeTransport())
    with contextlib.closing(ProducerChannel(ours.recv())) as channel:
        receipt = serve_consumer(producer, channel, TIMEOUT_S)
    process.join()
    assert process.exitcode == -9
    assert isinstance(receipt, Receipt)
    assert "batch_transfer_sync_write" in receipt.failure
    assert not receipt.quiescent
    assert receipt.bytes_sent == 0
    assert producer.held_source_blocks() == {REQUEST: tuple(range(BLOCKS))}
    producer.close()
    assert producer.held_source_blocks() == {}
    ours.close()
    theirs.close()
