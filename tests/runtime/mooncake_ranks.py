# SPDX-License-Identifier: Apache-2.0
"""Rank processes for the tests that need real engines in separate processes."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

import torch

from kvreshard.runtime.channel import ConsumerChannel, ProducerChannel
from kvreshard.runtime.consumer import ConsumerPeer
from kvreshard.runtime.peers import Cache
from kvreshard.runtime.producer import ProducerPeer
from kvreshard.runtime.regions import region_from_tensor
from kvreshard.runtime.remote import RemoteProducers, serve_consumer
from kvreshard.runtime.transport.mooncake import MooncakeTransport

if TYPE_CHECKING:
    from multiprocessing.connection import Connection
    from multiprocessing.context import ForkServerContext

    from kvreshard.runtime.transport.protocol import Transport

REQUEST = "request-a"
#: One head, so that a block is one descriptor of 64 KiB: about half a second to move them all.
BLOCKS = 4000
BLOCK_BYTES = 65536
TIMEOUT_S = 20.0


def context() -> ForkServerContext:
    made = multiprocessing.get_context("forkserver")
    made.set_forkserver_preload(["kvreshard.demo_ranks"])
    return made


def big_cache(fill: int) -> torch.Tensor:
    return torch.full((BLOCKS, 1, 1, BLOCK_BYTES), fill, dtype=torch.uint8)


def cache_of(tensor: torch.Tensor) -> Cache:
    region = region_from_tensor(
        tensor,
        layer="layers.0",
        component="kv",
        kind="attention",
        axes="BHNC",
        total_num_kv_heads=1,
    )
    return Cache((region,), (tensor,))


def producer_peer(tensor: torch.Tensor, transport: Transport) -> ProducerPeer:
    peer = ProducerPeer(
        tp_size=1,
        tp_rank=0,
        consumer_tp_size=1,
        cache=cache_of(tensor),
        transport=transport,
        election="lowest",
    )
    peer.offer(REQUEST, range(BLOCKS))
    return peer


def consumer_peer(tensor: torch.Tensor, transport: Transport) -> ConsumerPeer:
    return ConsumerPeer(
        tp_size=1,
        tp_rank=0,
        producer_tp_size=1,
        cache=cache_of(tensor),
        transport=transport,
        election="lowest",
    )


def backwards() -> list[int]:
    """Destination blocks in an order in which no two descriptors can be merged."""
    return list(range(BLOCKS - 1, -1, -1))


def when_bytes_arrive(tensor: torch.Tensor, act: threading.Event) -> None:
    """Set the event as soon as a first byte has landed."""
    deadline = time.monotonic() + TIMEOUT_S
    while time.monotonic() < deadline and not tensor[:, 0, 0, 0].any():
        time.sleep(0.001)
    act.set()


def producer_main(endpoint: str, log: str) -> None:
    quiet(log)
    peer = producer_peer(big_cache(7), MooncakeTransport())
    with contextlib.closing(ProducerChannel(endpoint)) as channel:
        serve_consumer(peer, channel, TIMEOUT_S)


def consumer_that_dies_main(connection: Connection, log: str) -> None:
    """Pull, and end without a word as soon as bytes arrive."""
    quiet(log)
    tensor = big_cache(0)
    peer = consumer_peer(tensor, MooncakeTransport())
    channel = ConsumerChannel()
    connection.send(channel.endpoint)
    producers = RemoteProducers(peer, channel)
    producers.introduce(TIMEOUT_S)
    arrived = threading.Event()
    threading.Thread(target=when_bytes_arrive, args=(tensor, arrived), daemon=True).start()
    threading.Thread(
        target=producers.transfer, args=(REQUEST, backwards(), TIMEOUT_S), daemon=True
    ).start()
    arrived.wait()
    os.kill(os.getpid(), signal.SIGKILL)


def quiet(log: str) -> None:
    """The engine writes to stderr whatever its log level."""
    with Path(log).open("w") as stream:
        os.dup2(stream.fileno(), 2)
