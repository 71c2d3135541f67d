# SPDX-License-Identifier: Apache-2.0
"""A region: one component of one layer's cache on one rank, as the engine sees it.

Addresses, strides and lengths come from the tensor. Nothing is derived from a length divided by
a number of heads, and no axis is guessed from its size: the caller says what each axis means.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from kvreshard.runtime.errors import HypothesisError, UnsupportedCacheError

if TYPE_CHECKING:
    import torch

#: The one physical axis order that is planned: layer, block, head, token, content.
HEAD_MAJOR = "LBHNC"

#: What a region may hold: K and V packed in one tensor, or one of the two.
COMPONENTS = ("kv", "k", "v")

#: The kind of cache the planner's theorems speak of.
ATTENTION = "attention"

#: Kinds a caller may meet in a model and that are refused until they are planned.
REFUSED_KINDS = {
    "quantised-with-scales": "quantised_cache_with_scales",
    "recurrent-state": "hybrid_state",
}

_ADDRESS_LIMIT = 1 << 64


class Region(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One component of one layer on one rank; travels in the handshake as it is.

    Logical shape [blocks, heads, tokens, content], contiguous in this order. The lengths are
    redundant on purpose: the other side checks them against each other.
    """

    layer: str
    component: str
    #: KV heads of this layer in the whole model, not on this rank.
    total_num_kv_heads: int
    layout: str
    dtype: str
    #: Unsigned 64-bit address of block 0.
    base_address: int
    #: Bytes of the whole region.
    length: int
    num_blocks: int
    #: Bytes from one block to the next, all of them payload.
    block_bytes: int
    #: Heads this rank holds.
    heads: int
    #: Bytes of one head in one block.
    bytes_per_head: int
    #: Tokens in a block.
    block_size: int
    #: Bytes of one head's content for one token.
    bytes_per_token: int

    @property
    def key(self) -> tuple[str, str]:
        """What names the region within its rank: (layer, component)."""
        return (self.layer, self.component)

    @property
    def label(self) -> str:
        """The key in words, for messages."""
        return f"layer {self.layer!r} component {self.component!r}"


def region_from_tensor(
    tensor: torch.Tensor,
    *,
    layer: str,
    component: str,
    kind: str,
    axes: str,
    total_num_kv_heads: int,
) -> Region:
    """Describe one layer's cache tensor (or one of its components).

    ``axes`` names the tensor's dimensions in order: B block, H head, N token, C content, each
    once, and optionally S, the pair K and V packed next to each other within a token. A view
    whose shape says [B, N, H, C] while its strides are head-major is fine: the strides decide.
    K and V in tensors of their own are two regions, components "k" and "v".

    ``kind`` is what the model says this layer keeps; only "attention" is planned.

    Raises UnsupportedCacheError for a layout or a kind that is not planned yet,
    HypothesisError where a block is not heads times bytes per head.
    """
    where = f"layer {layer!r} component {component!r}"
    _refuse_kind(kind, where)
    _refuse_component(component, axes, where)
    _refuse_axes(axes, tensor.dim(), where)
    _refuse_storage(tensor, where)
    size = dict(zip(axes, tensor.shape, strict=True))
    stride = dict(zip(axes, tensor.stride(), strict=True))
    _refuse_strides(size, stride, where)
    content = size["C"] * size.get("S", 1)
    bytes_per_token = content * tensor.element_size()
    bytes_per_head = size["N"] * bytes_per_token
    block_bytes = size["H"] * bytes_per_head
    region = Region(
        layer=layer,
        component=component,
        total_num_kv_heads=total_num_kv_heads,
        layout=HEAD_MAJOR,
        dtype=str(tensor.dtype).removeprefix("torch."),
        base_address=tensor.data_ptr(),
        length=size["B"] * block_bytes,
        num_blocks=size["B"],
        block_bytes=block_bytes,
        heads=size["H"],
        bytes_per_head=bytes_per_head,
        block_size=size["N"],
        bytes_per_token=bytes_per_token,
    )
    check_region(region)
    return region


def check_region(region: Region) -> None:
    """Check a region against itself, wherever it came from.

    Raises UnsupportedCacheError for a layout other than head-major, HypothesisError where the
    numbers contradict each other or the region spans several layers.
    """
    where = region.label
    if region.component not in COMPONENTS:
        raise UnsupportedCacheError(
            "unknown_component", f"{where}: legal are {', '.join(COMPONENTS)}"
        )
    if region.layout != HEAD_MAJOR:
        raise UnsupportedCacheError(
            "layout_is_not_head_major",
            f"{where}: layout={region.layout!r}; legal is {HEAD_MAJOR!r}",
        )
    for field in ("num_blocks", "heads", "block_size", "bytes_per_token", "base_address"):
        value = getattr(region, field)
        if value < 1:
            raise HypothesisError(
                "block_length_is_heads_times_bytes_per_head",
                f"{where}: {field}={value}; legal is 1 or more",
            )
    _check_lengths(region)
    if region.base_address + region.length >= _ADDRESS_LIMIT:
        raise HypothesisError(
            "a_region_is_one_layer",
            f"{where}: base_address={region.base_address} plus length={region.length} "
            "does not end below 2**64",
        )


def _check_lengths(region: Region) -> None:
    name = "block_length_is_heads_times_bytes_per_head"
    if region.bytes_per_head != region.block_size * region.bytes_per_token:
        raise HypothesisError(
            name,
            f"{region.label}: bytes_per_head={region.bytes_per_head}; legal is "
            f"block_size * bytes_per_token = {region.block_size * region.bytes_per_token}",
        )
    if region.block_bytes != region.heads * region.bytes_per_head:
        raise HypothesisError(
            name,
            f"{region.label}: block_bytes={region.block_bytes}; legal is "
            f"heads * bytes_per_head = {region.heads * region.bytes_per_head}",
        )
    if region.length != region.num_blocks * region.block_bytes:
        raise HypothesisError(
            "a_region_is_one_layer",
            f"{region.label}: length={region.length}; legal is num_blocks * block_bytes = "
            f"{region.num_blocks * region.block_bytes}, one layer and nothing else",
        )


def _refuse_kind(kind: str, where: str) -> None:
    if kind == ATTENTION:
        return
    refusal = REFUSED_KINDS.get(kind, "unknown_kind")
    raise UnsupportedCacheError(refusal, f"{where}: kind={kind!r}; legal is {ATTENTION!r}")


def _refuse_component(component: str, axes: str, where: str) -> None:
    if component not in COMPONENTS:
        raise UnsupportedCacheError(
            "unknown_component",
            f"{where}: component={component!r}; legal are {', '.join(COMPONENTS)}",
        )
    if "S" in axes and component != "kv":
        raise UnsupportedCacheError(
            "unknown_component",
            f"{where}: axes={axes!r} pack K and V, so the only legal component is 'kv'",
        )


def _refuse_axes(axes: str, dimensions: int, where: str) -> None:
    if "L" in axes:
        raise HypothesisError(
            "a_region_is_one_layer",
            f"{where}: axes={axes!r} span layers; legal is one tensor view per layer",
        )
    if sorted(axes) not in (sorted("BHNC"), sorted("BHNCS")):
        raise UnsupportedCacheError(
            "axes_are_not_named",
            f"{where}: axes={axes!r}; legal is each of B, H, N, C once, and S at most once",
        )
    if len(axes) != dimensions:
        raise UnsupportedCacheError(
            "axes_are_not_named",
            f"{where}: axes={axes!r} name {len(axes)} dimensions, the tensor has {dimensions}",
        )


def _refuse_storage(tensor: torch.Tensor, where: str) -> None:
    dtype = str(tensor.dtype).removeprefix("torch.")
    if tensor.is_quantized or dtype.startswith(("float4", "quint", "qint", "bits")):
        raise UnsupportedCacheError(
            "quantised_cache_with_scales",
            f"{where}: dtype={dtype}; legal is a dtype whose elements are whole bytes "
            "without scales beside them",
        )
    if str(tensor.layout) != "torch.strided":
        raise UnsupportedCacheError(
            "tensor_is_not_strided", f"{where}: layout={tensor.layout}; legal is torch.strided"
        )
    if tensor.device.type != "cpu":
        raise UnsupportedCacheError(
            "memory_is_not_host_memory", f"{where}: device={tensor.device}; legal is cpu"
        )
    if tensor.numel() == 0:
        raise UnsupportedCacheError(
            "cache_is_empty", f"{where}: shape={tuple(tensor.shape)}; legal is 1 or more each"
        )


def _refuse_strides(size: dict[str, int], stride: dict[str, int], where: str) -> None:
    """Refuse, by name, whatever is not contiguous blocks of [head, token, content].

    The stride of an axis of length 1 is never followed, so it is never looked at.
    """
    if "S" in size:
        _refuse_pair_axis(size, stride, where)
    content = size["C"] * size.get("S", 1)
    _expect(size, stride, "C", 1, "content_is_not_contiguous", where)
    if size["H"] > 1 and size["N"] > 1 and 0 < stride["H"] < stride["N"]:
        raise UnsupportedCacheError(
            "token_major_layout",
            f"{where}: head stride {stride['H']} is below token stride {stride['N']} elements; "
            "legal is head-major, all tokens of a head together",
        )
    if size["B"] > 1 and size["H"] > 1 and 0 < stride["B"] < stride["H"]:
        raise UnsupportedCacheError(
            "heads_outside_blocks",
            f"{where}: block stride {stride['B']} is below head stride {stride['H']} elements; "
            "legal is blocks outside heads",
        )
    _expect(size, stride, "N", content, "tokens_are_not_contiguous", where)
    _expect(size, stride, "H", size["N"] * content, "heads_are_not_contiguous", where)
    if size["B"] > 1:
        _refuse_block_stride(size["H"] * size["N"] * content, stride["B"], where)


def _refuse_pair_axis(size: dict[str, int], stride: dict[str, int], where: str) -> None:
    if size["S"] != 2:
        raise UnsupportedCacheError(
            "axes_are_not_named", f"{where}: axis S has length {size['S']}; legal is 2, K and V"
        )
    if stride["S"] != size["C"]:
        raise UnsupportedCacheError(
            "k_and_v_are_apart",
            f"{where}: K and V are {stride['S']} elements apart; legal with axis S is "
            f"{size['C']}, next to each other in a token; otherwise describe each as its own "
            "region, components 'k' and 'v'",
        )


def _expect(
    size: dict[str, int], stride: dict[str, int], axis: str, legal: int, refusal: str, where: str
) -> None:
    if size[axis] > 1 and stride[axis] != legal:
        raise UnsupportedCacheError(
            refusal,
            f"{where}: stride of axis {axis} is {stride[axis]} elements; legal is {legal}",
        )


def _refuse_block_stride(payload: int, stride: int, where: str) -> None:
    """Padding and packed rows look alike to one tensor: the gap's size names the likelier one."""
    detail = f"{where}: block stride {stride} elements, payload {payload}; legal is {payload}"
    if stride < payload:
        raise UnsupportedCacheError("blocks_overlap", detail)
    if stride >= 2 * payload:
        raise UnsupportedCacheError(
            "packed_row", f"{detail}: a row has room for more than this layer's component"
        )
    if stride > payload:
        raise UnsupportedCacheError("padded_page", f"{detail}: a page is longer than its payload")
