# SPDX-License-Identifier: Apache-2.0
"""A test pattern whose every 8-byte word says where it belongs.

A word packs (layer, block, head, token, word in token) and is then mixed by an invertible
function: nearly every byte of two different words differs, and a word found in the wrong place
can be read back to say where it came from.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    Words = npt.NDArray[np.uint64]

#: What an untouched consumer byte holds.
SENTINEL = 0xA5

#: Field widths in bits, from the highest: layer, block, head, token, word.
_WIDTHS = (12, 14, 12, 14, 12)
_MULTIPLIERS = (0xBF58476D1CE4E5B9, 0x94D049BB133111EB)
_SHIFTS = (30, 27, 31)
_MASK = (1 << 64) - 1


class Place(NamedTuple):
    """Where a word belongs. `block` counts within the request, `head` over the whole model."""

    layer: int
    block: int
    head: int
    token: int
    word: int


def pattern(layer: int, blocks: list[int], heads: range, tokens: int, words: int) -> Words:
    """Build the words of one layer for these blocks and heads: [blocks, heads, tokens, words].

    Raises ValueError when a coordinate does not fit its field.
    """
    axes = (
        np.array([layer], dtype=np.uint64).reshape(1, 1, 1, 1),
        np.array(blocks, dtype=np.uint64).reshape(-1, 1, 1, 1),
        np.arange(heads.start, heads.stop, dtype=np.uint64).reshape(1, -1, 1, 1),
        np.arange(tokens, dtype=np.uint64).reshape(1, 1, -1, 1),
        np.arange(words, dtype=np.uint64).reshape(1, 1, 1, -1),
    )
    packed: npt.NDArray[np.uint64] = np.zeros((1, 1, 1, 1), dtype=np.uint64)
    for name, axis, width in zip(Place._fields, axes, _WIDTHS, strict=True):
        if int(axis.max()) >> width:
            raise ValueError(f"{name}={int(axis.max())}; legal is below {1 << width}")
        packed = np.bitwise_or(packed << np.uint64(width), axis, dtype=np.uint64)
    return _mix(packed)


def place_of(word: int) -> Place:
    """Read a word back."""
    for shift, multiplier in zip(_SHIFTS[:0:-1], _MULTIPLIERS[::-1], strict=True):
        word = _unshift(word, shift) * pow(multiplier, -1, 1 << 64) & _MASK
    word = _unshift(word, _SHIFTS[0])
    fields = []
    for width in reversed(_WIDTHS):
        fields.append(word & ((1 << width) - 1))
        word >>= width
    return Place(*reversed(fields))


def _mix(word: Words) -> Words:
    for shift, multiplier in zip(_SHIFTS, _MULTIPLIERS, strict=False):
        word = (word ^ (word >> np.uint64(shift))) * np.uint64(multiplier)
    mixed: Words = word ^ (word >> np.uint64(_SHIFTS[-1]))
    return mixed


def _unshift(word: int, shift: int) -> int:
    """Undo `word ^ (word >> shift)`."""
    result = word
    for _ in range(64 // shift):
        result = word ^ (result >> shift)
    return result
