# SPDX-License-Identifier: Apache-2.0
"""One case of the demo: a cache shape and two groups. No torch, so that the command starts fast."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from kvreshard.generated.planner import expected_senders, head_count

#: Bytes of one element; the demo's caches are bfloat16.
ELEMENT_BYTES = 2

#: The block coordinate of the pattern, 14 bits wide, that marks another request's block: blocks
#: of the request count up to below it.
FOREIGN_BLOCK = (1 << 14) - 1


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

    @property
    def bytes_needed(self) -> int:
        """Bytes of the caches of all ranks, with the blocks that belong to others."""
        source = self.prefill_tp * head_count(self.kv_heads, self.prefill_tp) * (self.blocks + 1)
        destination = self.decode_tp * head_count(self.kv_heads, self.decode_tp) * (self.blocks + 2)
        return self.layers * (source + destination) * self.bytes_per_head

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


def check_memory(case: Case) -> None:
    """Raise ValueError for a case whose caches do not fit into the memory that is free."""
    free = _free_bytes()
    if free is not None and case.bytes_needed > free:
        raise ValueError(
            f"{case.title}: the caches of all ranks need {case.bytes_needed:,} B of memory; legal "
            f"is what is free, {free:,} B: choose fewer blocks, layers or a smaller block size"
        )


def check_blocks(case: Case) -> None:
    """Raise ValueError for more blocks than the pattern tells apart."""
    if case.blocks > FOREIGN_BLOCK:
        raise ValueError(f"blocks={case.blocks}; legal is 1 to {FOREIGN_BLOCK}")


def _free_bytes() -> int | None:
    """What the kernel can hand out without swapping; None where it does not say."""
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
    except OSError:
        return None
    kibibytes = [int(line.split()[1]) for line in lines if line.startswith("MemAvailable:")]
    return kibibytes[0] * 1024 if kibibytes else None
