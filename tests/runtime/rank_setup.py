# SPDX-License-Identifier: Apache-2.0
"""Small caches cut into ranks, with every element different, for the runtime's tests."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

from kvreshard.generated.planner import first_head, head_count
from kvreshard.runtime.consumer import ConsumerPeer
from kvreshard.runtime.peers import Cache
from kvreshard.runtime.producer import ProducerPeer
from kvreshard.runtime.regions import Region, region_from_tensor
from kvreshard.runtime.transport.in_process import Fabric, InProcessTransport

if TYPE_CHECKING:
    from collections.abc import Callable

    from kvreshard.runtime.transport.protocol import Transport

TOKENS = 2
CONTENT = 8
#: Bytes of one head in one block: 2 tokens of 8 int32 elements.
HEAD_BYTES = TOKENS * CONTENT * 4
REQUEST = "request-a"


def whole_cache(heads: int, blocks: int = 3, layers: int = 2) -> list[torch.Tensor]:
    """Per layer [blocks, heads, tokens, content], no two elements equal."""
    size = blocks * heads * TOKENS * CONTENT
    return [
        torch.arange(1 + layer * size, 1 + (layer + 1) * size, dtype=torch.int32).reshape(
            blocks, heads, TOKENS, CONTENT
        )
        for layer in range(layers)
    ]


def slice_of(whole: list[torch.Tensor], tp_size: int, tp_rank: int) -> list[torch.Tensor]:
    """What a rank holds of it, in memory of its own."""
    total = whole[0].shape[1]
    first = first_head(total, tp_size, tp_rank)
    held = slice(first, first + head_count(total, tp_size))
    return [layer[:, held].clone().contiguous() for layer in whole]


def empty_slice(whole: list[torch.Tensor], tp_size: int, blocks: int) -> list[torch.Tensor]:
    """A consumer's cache of zeros."""
    held = head_count(whole[0].shape[1], tp_size)
    return [torch.zeros(blocks, held, TOKENS, CONTENT, dtype=torch.int32) for _ in whole]


def region_of(tensor: torch.Tensor, total: int, layer: str = "layers.0") -> Region:
    return region_from_tensor(
        tensor,
        layer=layer,
        component="kv",
        kind="attention",
        axes="BHNC",
        total_num_kv_heads=total,
    )


def cache_of(tensors: list[torch.Tensor], total: int) -> Cache:
    regions = tuple(
        region_of(tensor, total, f"layers.{layer}") for layer, tensor in enumerate(tensors)
    )
    return Cache(regions, tuple(tensors))


@dataclass
class Ranks:
    """Both groups of a case, in one process, and their tensors."""

    whole: list[torch.Tensor]
    producers: dict[int, ProducerPeer]
    consumers: dict[int, ConsumerPeer]
    source: dict[int, list[torch.Tensor]]
    destination: dict[int, list[torch.Tensor]]

    def wanted(self, rank: int) -> list[torch.Tensor]:
        return slice_of(self.whole, len(self.consumers), rank)

    def close(self) -> None:
        for producer in self.producers.values():
            producer.close()
        for consumer in self.consumers.values():
            consumer.close()


def make_ranks(
    heads: int,
    prefill: int,
    decode: int,
    *,
    election: str = "lowest",
    blocks: int = 3,
    layers: int = 2,
    compare_content: bool = False,
    producer_transport: Callable[[Fabric], Transport] = InProcessTransport,
) -> Ranks:
    """Build both groups; every producer offers all its blocks under REQUEST."""
    fabric = Fabric()
    whole = whole_cache(heads, blocks, layers)
    source = {rank: slice_of(whole, prefill, rank) for rank in range(prefill)}
    destination = {rank: empty_slice(whole, decode, blocks + 2) for rank in range(decode)}
    producers = {
        rank: ProducerPeer(
            tp_size=prefill,
            tp_rank=rank,
            consumer_tp_size=decode,
            cache=cache_of(source[rank], heads),
            transport=producer_transport(fabric),
            election=election,
        )
        for rank in range(prefill)
    }
    consumers = {
        rank: ConsumerPeer(
            tp_size=decode,
            tp_rank=rank,
            producer_tp_size=prefill,
            cache=cache_of(destination[rank], heads),
            transport=InProcessTransport(fabric),
            election=election,
            compare_content=compare_content,
        )
        for rank in range(decode)
    }
    for producer in producers.values():
        producer.offer(REQUEST, list(range(blocks)))
    return Ranks(whole, producers, consumers, source, destination)
