# SPDX-License-Identifier: Apache-2.0
"""The hypotheses at the runtime's boundary, and what two ranks must have in common."""

from __future__ import annotations

import msgspec
import pytest

from kvreshard.runtime.errors import HandshakeRefusedError, HypothesisError
from kvreshard.runtime.layout import RankLayout, check_pair, check_rank
from kvreshard.runtime.planning import receivers_of, senders_to
from kvreshard.runtime.regions import Region


def region(
    heads: int = 1, total: int = 4, base: int = 4096, layer: str = "layers.0", blocks: int = 8
) -> Region:
    return Region(
        layer=layer,
        component="kv",
        total_num_kv_heads=total,
        layout="LBHNC",
        dtype="bfloat16",
        base_address=base,
        length=blocks * heads * 65536,
        num_blocks=blocks,
        block_bytes=heads * 65536,
        heads=heads,
        bytes_per_head=65536,
        block_size=128,
        bytes_per_token=512,
    )


def rank(tp_size: int, tp_rank: int, *regions: Region, dp_rank: int = 0) -> RankLayout:
    return RankLayout(
        tp_size=tp_size, tp_rank=tp_rank, dp_rank=dp_rank, session="here", regions=regions
    )


@pytest.mark.parametrize(
    ("layout", "message"),
    [
        (
            rank(3, 0, region()),
            (
                "group_is_legal: layer 'layers.0' component 'kv': tp_size=3 with "
                "total_num_kv_heads=4; legal is one that divides the other"
            ),
        ),
        (
            rank(0, 0, region()),
            (
                "group_is_legal: layer 'layers.0' component 'kv': tp_size=0 with "
                "total_num_kv_heads=4; legal is one that divides the other"
            ),
        ),
        (rank(4, 4, region()), "rank_is_in_range: tp_rank=4; legal is 0 to 3"),
        (rank(4, -1, region()), "rank_is_in_range: tp_rank=-1; legal is 0 to 3"),
        (rank(4, 0, region(), dp_rank=-1), "rank_is_in_range: dp_rank=-1; legal is 0 or more"),
        (
            rank(4, 0, region(heads=2)),
            (
                "block_length_is_heads_times_bytes_per_head: layer 'layers.0' component 'kv': "
                "heads=2; "
                "a rank of tp_size=4 with total_num_kv_heads=4 holds 1"
            ),
        ),
        (
            rank(4, 0, region(), region(base=1 << 30)),
            (
                "a_region_is_one_layer: layer 'layers.0' component 'kv' is described twice; "
                "legal is "
                "once"
            ),
        ),
        (
            rank(4, 0, region(), region(layer="layers.1", base=4096 + 65536)),
            (
                "a_region_is_one_layer: layer 'layers.0' component 'kv' and layer 'layers.1' "
                "component "
                "'kv' share memory; legal is disjoint regions"
            ),
        ),
        (rank(4, 0), "a_region_is_one_layer: regions is empty; legal is 1 or more"),
    ],
)
def test_a_broken_hypothesis_is_named(layout: RankLayout, message: str) -> None:
    with pytest.raises(HypothesisError) as raised:
        check_rank(layout)
    assert str(raised.value) == message
    assert raised.value.hypothesis == message.partition(":")[0]


def test_a_rank_of_two_layers_is_fine() -> None:
    check_rank(rank(4, 3, region(), region(layer="layers.1", base=1 << 30)))


# The pair


@pytest.mark.parametrize(
    ("total", "prefill", "decode", "ours", "theirs"),
    [
        # F6: equal lengths, both groups hold one head per rank.
        (8, 8, 16, 1, 1),
        # F6: the ratio is that of the heads held, 2, not that of the group sizes, 4.
        (4, 2, 8, 2, 1),
        # F16: one rank to four, with sliding-window layers among others.
        (8, 1, 4, 8, 2),
    ],
)
def test_lengths_compare_by_heads_held(
    total: int, prefill: int, decode: int, ours: int, theirs: int
) -> None:
    check_pair(rank(prefill, 0, region(ours, total)), rank(decode, 0, region(theirs, total)))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        # F7 and F28: the layout is part of what is exchanged and checked.
        (
            {"layout": "LBNHC"},
            (
                "layer 'layers.0' component 'kv': layout='LBHNC' at the producer, 'LBNHC' at the "
                "consumer; legal is equal"
            ),
        ),
        (
            {"dtype": "float8_e4m3fn", "bytes_per_token": 256},
            (
                "layer 'layers.0' component 'kv': dtype='bfloat16' at the producer, "
                "'float8_e4m3fn' at "
                "the consumer; bytes_per_token=512 at the producer, 256 at the consumer; legal is "
                "equal"
            ),
        ),
        (
            {"block_size": 64},
            (
                "layer 'layers.0' component 'kv': block_size=128 at the producer, 64 at the "
                "consumer; "
                "legal is equal"
            ),
        ),
        (
            # F11: H rebuilt as local heads times group size.
            {"total_num_kv_heads": 8},
            (
                "layer 'layers.0' component 'kv': total_num_kv_heads=4 at the producer, 8 at the "
                "consumer; legal is equal"
            ),
        ),
        (
            {"layer": "layers.1"},
            (
                "regions differ: only the producer has layers.0/kv, only the consumer has "
                "layers.1/kv; "
                "legal is the same layers and components"
            ),
        ),
        (
            {"component": "k"},
            (
                "regions differ: only the producer has layers.0/kv, only the consumer has "
                "layers.0/k; "
                "legal is the same layers and components"
            ),
        ),
    ],
)
def test_what_differs_is_refused(changes: dict[str, object], message: str) -> None:
    theirs = msgspec.structs.replace(region(), **changes)
    with pytest.raises(HandshakeRefusedError) as raised:
        check_pair(rank(4, 0, region()), rank(4, 0, theirs))
    assert str(raised.value) == message


def test_lengths_that_do_not_fit_are_refused() -> None:
    theirs = msgspec.structs.replace(region(), block_bytes=65535)
    with pytest.raises(HandshakeRefusedError, match=r"(?s)layer 'layers\.0'.*65535"):
        check_pair(rank(8, 0, region()), rank(4, 0, theirs))


def test_every_layer_has_its_own_number_of_heads() -> None:
    # F20: a target of 16 heads and a draft of 8, in one rank.
    producer = rank(8, 3, region(2, 16), region(1, 8, base=1 << 30, layer="draft.0"))
    consumer = rank(2, 0, region(8, 16), region(4, 8, base=1 << 30, layer="draft.0"))
    check_rank(producer)
    check_rank(consumer)
    check_pair(producer, consumer)
    assert senders_to(consumer, 8, "lowest") == {0, 1, 2, 3}
    assert receivers_of(producer, 2, "lowest") == {0}


def test_peers_are_those_of_any_region() -> None:
    # With 8 heads all four ranks send; with 2 heads only every other one does.
    consumer = rank(1, 0, region(8, 8), region(2, 2, base=1 << 30, layer="layers.1"))
    assert senders_to(consumer, 4, "lowest") == {0, 1, 2, 3}
    assert senders_to(rank(1, 0, region(2, 2)), 4, "lowest") == {0, 2}
