# SPDX-License-Identifier: Apache-2.0
"""What one rank tells the other about itself, and the hypotheses both check before sending."""

from __future__ import annotations

from itertools import pairwise

import msgspec

from kvreshard.generated.planner import head_count, validate_region_lengths
from kvreshard.runtime.errors import HandshakeRefusedError, HypothesisError
from kvreshard.runtime.regions import Region, check_region

#: Fields of a region that both sides must hold equal; everything else may differ.
_EQUAL_FIELDS = ("total_num_kv_heads", "layout", "dtype", "block_size", "bytes_per_token")


class RankLayout(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One rank of a tensor-parallel group, its engine session and its regions."""

    tp_size: int
    tp_rank: int
    dp_rank: int
    #: Names the engine to write to. Never used again by another engine.
    session: str
    regions: tuple[Region, ...]


def check_rank(rank: RankLayout) -> None:
    """Assert the theorem's hypotheses for one rank.

    Raises HypothesisError or UnsupportedCacheError, naming the hypothesis, the field, its value
    and what would be legal.
    """
    if not rank.regions:
        raise HypothesisError("a_region_is_one_layer", "regions is empty; legal is 1 or more")
    if rank.dp_rank < 0:
        raise HypothesisError("rank_is_in_range", f"dp_rank={rank.dp_rank}; legal is 0 or more")
    for region in rank.regions:
        check_region(region)
        _check_group(rank, region)
    _check_regions_are_apart(rank.regions)


def check_pair(producer: RankLayout, consumer: RankLayout) -> None:
    """Assert that both sides describe the same cache, each split its own way.

    Raises HandshakeRefusedError with every field that differs in the first region at fault.
    """
    ours = {region.key: region for region in producer.regions}
    theirs = {region.key: region for region in consumer.regions}
    if ours.keys() != theirs.keys():
        raise HandshakeRefusedError(
            "regions differ: only the producer has "
            f"{_names(ours.keys() - theirs.keys())}, only the consumer has "
            f"{_names(theirs.keys() - ours.keys())}; legal is the same layers and components"
        )
    for key, region in ours.items():
        _check_equal(region, theirs[key])
        try:
            validate_region_lengths(
                total_num_kv_heads=region.total_num_kv_heads,
                producer_tp_size=producer.tp_size,
                consumer_tp_size=consumer.tp_size,
                producer_region_bytes=region.block_bytes,
                consumer_region_bytes=theirs[key].block_bytes,
            )
        except ValueError as error:
            raise HandshakeRefusedError(f"{region.label}: {error}") from error


def _check_group(rank: RankLayout, region: Region) -> None:
    total, size = region.total_num_kv_heads, rank.tp_size
    if total < 1 or size < 1 or (total % size and size % total):
        raise HypothesisError(
            "group_is_legal",
            f"{region.label}: tp_size={size} with total_num_kv_heads={total}; legal is one "
            "that divides the other",
        )
    if not 0 <= rank.tp_rank < size:
        raise HypothesisError(
            "rank_is_in_range", f"tp_rank={rank.tp_rank}; legal is 0 to {size - 1}"
        )
    held = head_count(total, size)
    if region.heads != held:
        raise HypothesisError(
            "block_length_is_heads_times_bytes_per_head",
            f"{region.label}: heads={region.heads}; a rank of tp_size={size} with "
            f"total_num_kv_heads={total} holds {held}",
        )


def _check_regions_are_apart(regions: tuple[Region, ...]) -> None:
    seen: set[tuple[str, str]] = set()
    for region in regions:
        if region.key in seen:
            raise HypothesisError(
                "a_region_is_one_layer", f"{region.label} is described twice; legal is once"
            )
        seen.add(region.key)
    ordered = sorted(regions, key=lambda region: region.base_address)
    for before, after in pairwise(ordered):
        if before.base_address + before.length > after.base_address:
            raise HypothesisError(
                "a_region_is_one_layer",
                f"{before.label} and {after.label} share memory; legal is disjoint regions",
            )


def _check_equal(ours: Region, theirs: Region) -> None:
    different = [
        f"{field}={getattr(ours, field)!r} at the producer, {getattr(theirs, field)!r} at the "
        "consumer"
        for field in _EQUAL_FIELDS
        if getattr(ours, field) != getattr(theirs, field)
    ]
    if different:
        raise HandshakeRefusedError(f"{ours.label}: {'; '.join(different)}; legal is equal")


def _names(keys: set[tuple[str, str]]) -> str:
    return ", ".join(f"{layer}/{component}" for layer, component in sorted(keys)) or "nothing"
