# SPDX-License-Identifier: Apache-2.0
"""A table of registered memory ranges, asked for many descriptors at once."""

from __future__ import annotations

import bisect
from typing import TYPE_CHECKING

import numpy as np

from kvreshard.runtime.errors import TransferError

if TYPE_CHECKING:
    import numpy.typing as npt


class RangeTable:
    """Disjoint ranges of unsigned 64-bit addresses, each with the object that owns the memory."""

    def __init__(self) -> None:
        """Start empty."""
        self._starts: list[int] = []
        self._ends: list[int] = []
        self._owners: dict[int, object] = {}

    def items(self) -> list[tuple[int, int]]:
        """Every range as (address, length in bytes), by address."""
        return [(start, end - start) for start, end in zip(self._starts, self._ends, strict=True)]

    def add(self, address: int, length: int, owner: object) -> None:
        """Add a range. Raises TransferError when it is empty or overlaps another."""
        if length < 1 or not 1 <= address < 2**64 - length:
            raise TransferError(
                f"cannot register {length} bytes at address {address}; legal is 1 byte or more "
                "ending below 2**64",
                quiescent=True,
            )
        at = bisect.bisect_left(self._starts, address)
        overlaps_before = at > 0 and self._ends[at - 1] > address
        overlaps_after = at < len(self._starts) and self._starts[at] < address + length
        if overlaps_before or overlaps_after:
            raise TransferError(
                f"cannot register {length} bytes at address {address}: they overlap a range "
                "that is registered already",
                quiescent=True,
            )
        self._starts.insert(at, address)
        self._ends.insert(at, address + length)
        self._owners[address] = owner

    def remove(self, address: int) -> None:
        """Forget the range that starts at this address."""
        at = self._starts.index(address)
        del self._starts[at], self._ends[at], self._owners[address]

    def clear(self) -> None:
        """Forget every range and let go of the owners."""
        self._starts.clear()
        self._ends.clear()
        self._owners.clear()

    def check(
        self, side: str, addresses: npt.NDArray[np.uint64], lengths: npt.NDArray[np.uint64]
    ) -> None:
        """Raise TransferError when a descriptor is not inside one range as a whole."""
        inside = np.zeros(len(addresses), dtype=bool)
        if self._starts:
            starts = np.array(self._starts, dtype=np.uint64)
            ends = np.array(self._ends, dtype=np.uint64)
            at = np.searchsorted(starts, addresses, side="right")
            known = at > 0
            end = ends[np.maximum(at, 1) - 1]
            # Compared by subtraction: address plus length could pass 2**64.
            inside = known & (addresses < end) & (lengths <= end - np.minimum(addresses, end))
        if not inside.all():
            first = int(np.flatnonzero(~inside)[0])
            raise TransferError(
                f"{side} of descriptor {first}, {int(lengths[first])} bytes at address "
                f"{int(addresses[first])}, is not inside a registered range; nothing was written",
                quiescent=True,
            )
