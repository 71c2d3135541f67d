# SPDX-License-Identifier: Apache-2.0
"""Digests of cache content, one per (block, head), for the option that compares content."""

from __future__ import annotations

import ctypes
import hashlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kvreshard.runtime.regions import Region

#: Bytes of one digest.
DIGEST_BYTES = 16


def head_digests(region: Region, blocks: Sequence[int], first_head: int, heads: int) -> bytes:
    """Digest each head of each block: blocks * heads * DIGEST_BYTES bytes, block by block.

    Reads the memory as it is now; the caller has checked that blocks and heads are in range.
    """
    return b"".join(
        _digest(region, block, head)
        for block in blocks
        for head in range(first_head, first_head + heads)
    )


def _digest(region: Region, block: int, head: int) -> bytes:
    address = region.base_address + block * region.block_bytes + head * region.bytes_per_head
    content = (ctypes.c_ubyte * region.bytes_per_head).from_address(address)
    return hashlib.blake2b(content, digest_size=DIGEST_BYTES).digest()
