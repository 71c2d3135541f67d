# SPDX-License-Identifier: Apache-2.0
"""What both sides of a transfer share. A peer has no sockets: messages go in, messages come out.

Order of a request: hellos both ways, the producer accepts or refuses, the consumer pulls from
each producer it expects, each answers with one receipt. A peer's methods may be called from
several threads.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from kvreshard.runtime.errors import (
    HandshakeRefusedError,
    HypothesisError,
    TransferError,
)
from kvreshard.runtime.layout import RankLayout, check_rank
from kvreshard.runtime.messages import (
    ConsumerKey,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from kvreshard.runtime.regions import Region
    from kvreshard.runtime.transport.protocol import Transport


@dataclass(frozen=True)
class Cache:
    """One rank's regions and the objects that own their memory, in the same order."""

    regions: tuple[Region, ...]
    owners: tuple[object, ...]


def registered_layout(
    tp_size: int, tp_rank: int, dp_rank: int, cache: Cache, transport: Transport
) -> RankLayout:
    """A rank's layout, checked, its regions registered with the transport.

    Raises HypothesisError or UnsupportedCacheError before anything is registered.
    """
    layout = RankLayout(
        tp_size=tp_size,
        tp_rank=tp_rank,
        dp_rank=dp_rank,
        session=transport.session_id,
        regions=cache.regions,
    )
    check_rank(layout)
    if len(cache.owners) != len(cache.regions):
        raise HypothesisError(
            "a_region_is_one_layer",
            f"{len(cache.owners)} owners for {len(cache.regions)} regions; legal is one each",
        )
    for region, owner in zip(cache.regions, cache.owners, strict=True):
        transport.register(region.base_address, region.length, owner)
    return layout


def stop(transport: Transport, end_holds: Callable[[], None]) -> None:
    """Close a transport and end the holds, unless something may still move afterwards."""
    try:
        transport.close()
    except TransferError as error:
        # It complained and has stopped nonetheless.
        if error.quiescent:
            end_holds()
        raise
    end_holds()


def key_of(layout: RankLayout) -> ConsumerKey:
    """Which consumer this layout is of."""
    return ConsumerKey(tp_rank=layout.tp_rank, dp_rank=layout.dp_rank)


def check_agreement(name: str, ours: object, theirs: object) -> None:
    """Raise HandshakeRefusedError unless both sides say the same."""
    if ours != theirs:
        raise HandshakeRefusedError(f"{name}={theirs!r} there, {ours!r} here; legal is equal")
