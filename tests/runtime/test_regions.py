# SPDX-License-Identifier: Apache-2.0
"""Regions from tensors: which layouts are taken, and by which name the others are refused."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from kvreshard.runtime.errors import HypothesisError, UnsupportedCacheError
from kvreshard.runtime.regions import Region, check_region, region_from_tensor

B, H, N, C = 3, 4, 5, 8


def describe(tensor: torch.Tensor, axes: str = "BHNC", **changes: object) -> Region:
    arguments = {
        "layer": "layers.0",
        "component": "kv",
        "kind": "attention",
        "total_num_kv_heads": H,
    } | changes
    return region_from_tensor(tensor, axes=axes, **arguments)  # type: ignore[arg-type]


def strided(shape: tuple[int, ...], stride: tuple[int, ...], room: int = 4096) -> torch.Tensor:
    return torch.zeros(room, dtype=torch.int16).as_strided(shape, stride)


# Taken


def test_a_packed_head_major_tensor() -> None:
    tensor = torch.zeros(B, H, N, C, dtype=torch.bfloat16)
    region = describe(tensor)
    assert region == Region(
        layer="layers.0",
        component="kv",
        total_num_kv_heads=H,
        layout="LBHNC",
        dtype="bfloat16",
        base_address=tensor.data_ptr(),
        length=B * H * N * C * 2,
        num_blocks=B,
        block_bytes=H * N * C * 2,
        heads=H,
        bytes_per_head=N * C * 2,
        block_size=N,
        bytes_per_token=C * 2,
    )


def test_k_and_v_packed_as_an_axis_of_their_own() -> None:
    region = describe(torch.zeros(B, H, N, 2, C), "BHNSC")
    assert region.bytes_per_token == 2 * C * 4
    assert region.block_bytes == H * N * 2 * C * 4


def test_k_and_v_in_tensors_of_their_own() -> None:
    cache = torch.zeros(2, B, H, N, C)
    k, v = (describe(cache[side], component=name) for side, name in enumerate(["k", "v"]))
    assert v.base_address == k.base_address + k.length
    assert k.length == B * H * N * C * 4


def test_a_token_first_shape_over_head_major_memory() -> None:
    # The usual view: the shape says tokens before heads, the strides say the reverse.
    tensor = torch.zeros(B, H, N, C).permute(0, 2, 1, 3)
    assert describe(tensor, "BNHC").bytes_per_head == N * C * 4


def test_a_view_into_a_larger_pool_starts_at_its_own_address() -> None:
    pool = torch.zeros(2, B, H, N, C)
    assert describe(pool[1]).base_address == pool.data_ptr() + B * H * N * C * 4


@pytest.mark.parametrize("dtype", [torch.int8, torch.float8_e4m3fn, torch.float16, torch.float32])
def test_bytes_follow_the_element_size(dtype: torch.dtype) -> None:
    region = describe(torch.zeros(B, H, N, C).to(dtype))
    assert region.bytes_per_head == N * C * dtype.itemsize


def test_with_one_head_per_rank_token_major_is_head_major() -> None:
    tensor = torch.zeros(B, N, 1, C).permute(0, 2, 1, 3)
    assert describe(tensor).heads == 1


@given(
    st.tuples(*[st.integers(1, 4)] * 4),
    st.permutations("BHNC"),
    st.data(),
)
def test_addresses_are_those_of_the_tensor(
    shape: tuple[int, int, int, int], order: list[str], data: st.DataObject
) -> None:
    tensor = torch.zeros(shape, dtype=torch.int16)
    axes = "".join(order)
    region = describe(tensor.permute([("BHNC").index(axis) for axis in axes]), axes)
    block, head, token = (data.draw(st.integers(0, size - 1)) for size in shape[:3])
    assert tensor[block, head, token].data_ptr() == (
        region.base_address
        + block * region.block_bytes
        + head * region.bytes_per_head
        + token * region.bytes_per_token
    )


# Refused by name


REFUSED = [
    pytest.param(
        strided((B, H, N, C), (N * H * C, C, H * C, 1)),
        "BHNC",
        {},
        "token_major_layout: layer 'layers.0' component 'kv': head stride 8 is below token stride "
        "32 elements; legal is head-major, all tokens of a head together",
        id="token-major",
    ),
    pytest.param(
        strided((B, H, N, C), (N * C, B * N * C, C, 1)),
        "BHNC",
        {},
        "heads_outside_blocks: layer 'layers.0' component 'kv': block stride 40 is below head "
        "stride 120 elements; legal is blocks outside heads",
        id="heads-outside-blocks",
    ),
    pytest.param(
        strided((B, H, N, C), (H * N * C + 16, N * C, C, 1)),
        "BHNC",
        {},
        "padded_page: layer 'layers.0' component 'kv': block stride 176 elements, payload 160; "
        "legal is 160: a page is longer than its payload",
        id="padded-page",
    ),
    pytest.param(
        strided((B, H, N, C), (3 * H * N * C, N * C, C, 1)),
        "BHNC",
        {},
        "packed_row: layer 'layers.0' component 'kv': block stride 480 elements, payload 160; "
        "legal is 160: a row has room for more than this layer's component",
        id="packed-row",
    ),
    pytest.param(
        torch.zeros(B, 2, H, N, C)[:, 0],
        "BHNC",
        {"component": "k"},
        "packed_row: layer 'layers.0' component 'k': block stride 320 elements, payload 160; "
        "legal is 160: a row has room for more than this layer's component",
        id="k-beside-v-in-the-block",
    ),
    pytest.param(
        torch.zeros(1, H, N, C).expand(B, H, N, C),
        "BHNC",
        {},
        "blocks_overlap: layer 'layers.0' component 'kv': block stride 0 elements, payload 160; "
        "legal is 160",
        id="expanded",
    ),
    pytest.param(
        torch.zeros(B, H, N, 2 * C)[..., :C],
        "BHNC",
        {},
        "tokens_are_not_contiguous: layer 'layers.0' component 'kv': stride of axis N is 16 "
        "elements; legal is 8",
        id="content-cut",
    ),
    pytest.param(
        torch.zeros(B, H, 2 * N, C)[:, :, :N],
        "BHNC",
        {},
        "heads_are_not_contiguous: layer 'layers.0' component 'kv': stride of axis H is 80 "
        "elements; legal is 40",
        id="tokens-cut",
    ),
    pytest.param(
        torch.zeros(B, H, N, 2 * C)[..., ::2],
        "BHNC",
        {},
        "content_is_not_contiguous: layer 'layers.0' component 'kv': stride of axis C is 2 "
        "elements; legal is 1",
        id="every-second-element",
    ),
    pytest.param(
        torch.zeros(2, B, H, N, C),
        "SBHNC",
        {},
        "k_and_v_are_apart: layer 'layers.0' component 'kv': K and V are 480 elements apart; "
        "legal with axis S is 8, next to each other in a token; otherwise describe each as its "
        "own region, components 'k' and 'v'",
        id="k-and-v-apart",
    ),
    pytest.param(
        torch.zeros(B, H, N, 3, C),
        "BHNSC",
        {},
        "axes_are_not_named: layer 'layers.0' component 'kv': axis S has length 3; legal is 2, "
        "K and V",
        id="three-of-a-pair",
    ),
    pytest.param(
        torch.zeros(B, H, N, C),
        "BHN",
        {},
        "axes_are_not_named: layer 'layers.0' component 'kv': axes='BHN'; legal is each of B, H, "
        "N, C once, and S at most once",
        id="axis-missing",
    ),
    pytest.param(
        torch.zeros(B, H, N, 2, C),
        "BHNC",
        {},
        "axes_are_not_named: layer 'layers.0' component 'kv': axes='BHNC' name 4 dimensions, the "
        "tensor has 5",
        id="axis-unnamed",
    ),
    pytest.param(
        torch.zeros(B, H, N, 2, C),
        "BHNSC",
        {"component": "k"},
        "unknown_component: layer 'layers.0' component 'k': axes='BHNSC' pack K and V, so the "
        "only legal component is 'kv'",
        id="pair-as-k",
    ),
    pytest.param(
        torch.zeros(B, H, N, C),
        "BHNC",
        {"component": "index"},
        "unknown_component: layer 'layers.0' component 'index': component='index'; legal are kv, "
        "k, v",
        id="index-cache",
    ),
    pytest.param(
        torch.zeros(B, H, N, C),
        "BHNC",
        {"kind": "quantised-with-scales"},
        "quantised_cache_with_scales: layer 'layers.0' component 'kv': "
        "kind='quantised-with-scales'; legal is 'attention'",
        id="scales",
    ),
    pytest.param(
        torch.zeros(B, H, N, C, dtype=torch.uint8).view(torch.float4_e2m1fn_x2),
        "BHNC",
        {},
        "quantised_cache_with_scales: layer 'layers.0' component 'kv': dtype=float4_e2m1fn_x2; "
        "legal is a dtype whose elements are whole bytes without scales beside them",
        id="four-bit",
    ),
    pytest.param(
        torch.zeros(B, H, N, C),
        "BHNC",
        {"kind": "recurrent-state"},
        "hybrid_state: layer 'layers.0' component 'kv': kind='recurrent-state'; legal is "
        "'attention'",
        id="hybrid",
    ),
    pytest.param(
        torch.zeros(B, H, N, C),
        "BHNC",
        {"kind": "conv"},
        "unknown_kind: layer 'layers.0' component 'kv': kind='conv'; legal is 'attention'",
        id="unknown-kind",
    ),
    pytest.param(
        torch.zeros(0, H, N, C),
        "BHNC",
        {},
        "cache_is_empty: layer 'layers.0' component 'kv': shape=(0, 4, 5, 8); legal is 1 or more "
        "each",
        id="empty",
    ),
    pytest.param(
        torch.zeros(B, H, N, C, device="meta"),
        "BHNC",
        {},
        "memory_is_not_host_memory: layer 'layers.0' component 'kv': device=meta; legal is cpu",
        id="another-device",
    ),
    pytest.param(
        torch.zeros(B, H, N, C).to_sparse(),
        "BHNC",
        {},
        "tensor_is_not_strided: layer 'layers.0' component 'kv': layout=torch.sparse_coo; legal "
        "is torch.strided",
        id="sparse",
    ),
]


@pytest.mark.parametrize(("tensor", "axes", "changes", "message"), REFUSED)
def test_refused_by_name(
    tensor: torch.Tensor, axes: str, changes: dict[str, str], message: str
) -> None:
    with pytest.raises(UnsupportedCacheError) as raised:
        describe(tensor, axes, **changes)
    assert str(raised.value) == message
    assert raised.value.refusal == message.partition(":")[0]


def test_a_tensor_of_all_layers_is_not_a_region() -> None:
    with pytest.raises(HypothesisError) as raised:
        describe(torch.zeros(2, B, H, N, C), "LBHNC")
    assert raised.value.hypothesis == "a_region_is_one_layer"
    assert str(raised.value) == (
        "a_region_is_one_layer: layer 'layers.0' component 'kv': axes='LBHNC' span layers; legal "
        "is one tensor view per layer"
    )


# What the other side sends is checked the same way


GOOD = describe(torch.zeros(B, H, N, C))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"length": GOOD.length * 27},
            (
                "a_region_is_one_layer: layer 'layers.0' component 'kv': length=51840; legal is "
                "num_blocks * block_bytes = 1920, one layer and nothing else"
            ),
        ),
        (
            {"block_bytes": GOOD.block_bytes + 16},
            (
                "block_length_is_heads_times_bytes_per_head: layer 'layers.0' component 'kv': "
                "block_bytes=656; legal is heads * bytes_per_head = 640"
            ),
        ),
        (
            {"bytes_per_head": 1},
            (
                "block_length_is_heads_times_bytes_per_head: layer 'layers.0' component 'kv': "
                "bytes_per_head=1; legal is block_size * bytes_per_token = 160"
            ),
        ),
        (
            {"num_blocks": 0},
            (
                "block_length_is_heads_times_bytes_per_head: layer 'layers.0' component 'kv': "
                "num_blocks=0; legal is 1 or more"
            ),
        ),
        (
            {"base_address": 2**64 - 1920},
            (
                "a_region_is_one_layer: layer 'layers.0' component 'kv': "
                "base_address=18446744073709549696 plus length=1920 does not end below 2**64"
            ),
        ),
    ],
)
def test_contradicting_numbers_break_a_hypothesis(changes: dict[str, int], message: str) -> None:
    with pytest.raises(HypothesisError) as raised:
        check_region(changed(GOOD, **changes))
    assert str(raised.value) == message


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"layout": "LBNHC"},
            (
                "layout_is_not_head_major: layer 'layers.0' component 'kv': layout='LBNHC'; "
                "legal is "
                "'LBHNC'"
            ),
        ),
        (
            {"component": "scales"},
            "unknown_component: layer 'layers.0' component 'scales': legal are kv, k, v",
        ),
    ],
)
def test_an_unplanned_layout_from_the_other_side(changes: dict[str, str], message: str) -> None:
    with pytest.raises(UnsupportedCacheError) as raised:
        check_region(changed(GOOD, **changes))
    assert str(raised.value) == message


def changed(region: Region, **changes: object) -> Region:
    fields = {name: getattr(region, name) for name in Region.__struct_fields__}
    return Region(**(fields | changes))
