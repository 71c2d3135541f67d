# SPDX-License-Identifier: Apache-2.0
"""One case of the demo: a cache shape and two groups. No torch, so that the command starts fast."""

from __future__ import annotations

from typing import NamedTuple

from kvreshard.generated.planner import expected_senders

#: Bytes of one element; the demo's caches are bfloat16.
ELEMENT_BYTES = 2


class Case(NamedTuple):
    """A cache, moved once from a prefill group to a decode group."""

    title: str
    layers: int
    kv_heads: int
    head_dim: int
    prefill_tp: int
    decode_tp: int
    election: str
    #: Blocks of the one request.
    blocks: int
    #: Tokens in a block.
    block_size: int

    @property
    def bytes_per_head(self) -> int:
        """Bytes of one head in one block, K and V packed."""
        return self.block_size * 2 * self.head_dim * ELEMENT_BYTES

    @property
    def source_blocks(self) -> list[int]:
        """Where the request lies at each producer; its block 0 belongs to somebody else."""
        return list(range(1, self.blocks + 1))

    @property
    def destination_blocks(self) -> list[int]:
        """Where it goes at each consumer: in another order, between two blocks of others."""
        return list(range(self.blocks, 0, -1))

    def senders(self, consumer_rank: int) -> tuple[int, ...]:
        """Producer ranks this consumer rank waits for.

        Raises ValueError when the groups or the election are not legal.
        """
        return expected_senders(
            total_num_kv_heads=self.kv_heads,
            producer_tp_size=self.prefill_tp,
            consumer_tp_size=self.decode_tp,
            consumer_tp_rank=consumer_rank,
            election=self.election,
        )
