# SPDX-License-Identifier: Apache-2.0
"""Where the bytes of a head lie in a block.

One layout so far: head-major and contiguous. A block of one layer is [head, token, content],
a head takes `bytes_per_head = block_size * token_bytes` bytes and nothing lies between heads.
"""

from __future__ import annotations

from kvreshard.spec.formula import Integer, formula


@formula
def byte_address(
    head_slot: Integer,
    token: Integer,
    position: Integer,
    block_size: Integer,
    token_bytes: Integer,
) -> Integer:
    """Offset in the block of one byte, given its head slot, its token and its position there."""
    return (head_slot * block_size + token) * token_bytes + position


@formula
def head_slot_at(byte_offset: Integer, block_size: Integer, token_bytes: Integer) -> Integer:
    """Head slot, from 0, that the byte at an offset of the block belongs to."""
    return byte_offset // token_bytes // block_size


@formula
def token_at(byte_offset: Integer, block_size: Integer, token_bytes: Integer) -> Integer:
    """Token, from 0, that the byte at an offset of the block belongs to."""
    return byte_offset // token_bytes % block_size


@formula
def position_at(byte_offset: Integer, token_bytes: Integer) -> Integer:
    """Position of the byte, from 0, within its head of its token."""
    return byte_offset % token_bytes
