# SPDX-License-Identifier: Apache-2.0
"""Which producer block goes to which consumer block, for one request."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from kvreshard.runtime.errors import RequestError

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt


class BlockMap(NamedTuple):
    """Block ids pairwise: the i-th source block goes to the i-th destination block."""

    source: npt.NDArray[np.uint64]
    destination: npt.NDArray[np.uint64]


def block_map(source_blocks: Sequence[int], destination_blocks: Sequence[int]) -> BlockMap:
    """Pair the blocks of a request.

    A source block may be read twice; a destination block is written once.
    Raises RequestError when the numbers differ, are zero, or a destination repeats.
    """
    if len(source_blocks) != len(destination_blocks):
        raise RequestError(
            f"{len(source_blocks)} producer blocks against {len(destination_blocks)} consumer "
            "blocks; legal is the same number"
        )
    if not destination_blocks:
        raise RequestError("0 blocks; legal is 1 or more")
    check_destinations(destination_blocks)
    return BlockMap(_ids("source", source_blocks), _ids("destination", destination_blocks))


def check_destinations(blocks: Sequence[int]) -> None:
    """Raise RequestError when a destination block appears more than once."""
    seen: set[int] = set()
    for block in blocks:
        if block in seen:
            raise RequestError(f"destination block {block} appears twice; legal is once")
        seen.add(block)


def check_block_ids(side: str, blocks: npt.NDArray[np.uint64], num_blocks: int) -> None:
    """Raise RequestError when a block id is not inside the region."""
    outside = blocks >= np.uint64(num_blocks)
    if outside.any():
        raise RequestError(
            f"{side} block {int(blocks[outside][0])}; legal is 0 to {num_blocks - 1}"
        )


def _ids(side: str, blocks: Sequence[int]) -> npt.NDArray[np.uint64]:
    for block in blocks:
        if not 0 <= block < 1 << 63:
            raise RequestError(f"{side} block {block}; legal is 0 or more")
    return np.array(blocks, dtype=np.uint64)
