# SPDX-License-Identifier: Apache-2.0
"""Numbers, lists and ranks as the stories spell them."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_LISTED = 6


def listed(words: Iterable[str]) -> str:
    """Join words as in `a, b and c`; of a long list say the first and how many more."""
    said = list(words)
    if len(said) > _LISTED:
        return f"{', '.join(said[: _LISTED - 1])} and {len(said) - _LISTED + 1} more"
    return " and ".join([", ".join(said[:-1]), said[-1]] if len(said) > 1 else said)


def heads(numbers: Sequence[int]) -> str:
    """Name heads as in `head 3` or `heads 0 to 3`, of which there is at least one."""
    if len(numbers) == 1:
        return f"head {numbers[0]}"
    if _in_a_row(numbers):
        return f"heads {numbers[0]} to {numbers[-1]}"
    return f"heads {listed(map(str, numbers))}"


def counted(number: int, one: str) -> str:
    """Say a number of things, as in `1 head` or `1,024 heads`."""
    return f"{number:,} {one}{'' if number == 1 else 's'}"


def per_head(length: int, number: int) -> str:
    """Say how many bytes of a length fall to each of a number of heads, as in `5` or `3/2`."""
    whole, rest = divmod(length, number)
    return f"{whole:,}" if rest == 0 else f"{length:,}/{number}"


def producers(ranks: Sequence[int]) -> str:
    """Name producer ranks as in `p0 and p2` or `p0 to p3`, or `nobody`."""
    return _named(ranks, "p")


def consumers(ranks: Sequence[int]) -> str:
    """Name consumer ranks as in `d0 and d2` or `d0 to d3`, or `nobody`."""
    return _named(ranks, "d")


def peers_of(side: str, ranks: Sequence[int]) -> str:
    """Name ranks of the other side."""
    return consumers(ranks) if side == "producer" else producers(ranks)


def _named(ranks: Sequence[int], letter: str) -> str:
    if _in_a_row(ranks):
        return f"{letter}{ranks[0]} to {letter}{ranks[-1]}"
    return listed(f"{letter}{rank}" for rank in ranks) or "nobody"


def _in_a_row(numbers: Sequence[int]) -> bool:
    return len(numbers) > 2 and list(numbers) == list(range(numbers[0], numbers[-1] + 1))


def who_holds_what(held: Sequence[tuple[int, ...]], letter: str) -> str:
    """Say which ranks of a group hold which heads, in full where the group is small."""
    same = [(heads, [rank for rank, _ in group]) for heads, group in _groups(held)]
    if len(same) > _LISTED:
        each = f"each rank holds {counted(len(held[0]), 'head')}"
        shared = len(same[0][1])
        return each if shared == 1 else f"{each}, the same as {shared - 1} of its neighbours"
    return "; ".join(_holding(ranks, own, letter) for own, ranks in same)


def _groups(
    held: Sequence[tuple[int, ...]],
) -> Iterable[tuple[tuple[int, ...], Iterable[tuple[int, tuple[int, ...]]]]]:
    return groupby(enumerate(held), key=lambda rank_and_heads: rank_and_heads[1])


def _holding(ranks: Sequence[int], own: Sequence[int], letter: str) -> str:
    if len(ranks) == 1:
        return f"{letter}{ranks[0]} holds {heads(own)}"
    joint = "and" if len(ranks) == 2 else "to"
    return f"{letter}{ranks[0]} {joint} {letter}{ranks[-1]} hold {heads(own)}"
