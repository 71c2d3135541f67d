# SPDX-License-Identifier: Apache-2.0
"""What `kvreshard plan` was asked, and the plans that answer it: one for each group of layers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from kvreshard.generated.planner import group_is_legal
from kvreshard.head_plan import HeadPlan, plan_heads

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kvreshard.model_shapes import LayerGroup, ModelShape


@dataclass(frozen=True)
class Region:
    """One tensor of a layer that a plan moves.

    Attributes:
        name: what it holds, in words; empty where that is not known.
        bytes_per_head: bytes of one head in one block.
        formula: how they were found, in words.
    """

    name: str
    bytes_per_head: int
    formula: str


@dataclass(frozen=True)
class GroupPlan:
    """The plan of the layers of one group.

    Attributes:
        layers: which layers they are.
        plan: it is the same for each of their regions, in heads.
        regions: with different bytes for a head; empty where bytes are not known.
    """

    layers: LayerGroup
    plan: HeadPlan
    regions: tuple[Region, ...]


@dataclass(frozen=True)
class Planned:
    """The answer.

    Attributes:
        shape: the model's.
        groups: a plan for each of its groups of layers.
        warnings: what was not checked, a sentence each.
        command: gives it again.
    """

    shape: ModelShape
    groups: tuple[GroupPlan, ...]
    warnings: tuple[str, ...]
    command: str

    @property
    def faults(self) -> tuple[str, ...]:
        """What is wrong with the plans; nothing, by the theorems."""
        return tuple(f"{one.layers.name}: {f}" for one in self.groups for f in one.plan.faults)


@dataclass(frozen=True)
class Bytes:
    """How many bytes a head has, as the user said it.

    Attributes:
        bytes_per_head: of one head in one block; None if they follow from the widths.
        block_size: tokens in a block.
        dtype_bytes: bytes of an element.
    """

    bytes_per_head: int | None
    block_size: int
    dtype_bytes: int


def plan_model(
    shape: ModelShape, prefill_tp: int, decode_tp: int, election: str, size: Bytes, command: str
) -> Planned:
    """Plan the layers of a model between a prefill and a decode group.

    Raises:
        ValueError: a TP size is not legal for one of the groups of layers or for the query heads;
            or the election for the sizes. The message says what is legal.
    """
    for option, tp_size in (("--prefill-tp", prefill_tp), ("--decode-tp", decode_tp)):
        _check_tp_size(shape, option, tp_size)
    groups = tuple(
        GroupPlan(
            layers,
            plan_heads(
                total_num_kv_heads=layers.kv_heads,
                producer_tp_size=prefill_tp,
                consumer_tp_size=decode_tp,
                election=election,
            ),
            tuple(_regions(layers, size)),
        )
        for layers in shape.groups
    )
    return Planned(shape, groups, tuple(_warnings(shape, groups)), command)


def _check_tp_size(shape: ModelShape, option: str, tp_size: int) -> None:
    for layers in shape.groups:
        if not group_is_legal(layers.kv_heads, tp_size):
            raise ValueError(
                f"{option}={tp_size} is not legal for the {layers.kv_heads} KV heads of "
                f"{_whose(shape, layers)}; legal: {_legal(shape, tp_size)}"
            )
        if layers.query_heads is not None and layers.query_heads % tp_size:
            raise ValueError(
                f"{option}={tp_size} does not divide the {layers.query_heads} query heads of "
                f"{_whose(shape, layers)}, so no engine can run that group; "
                f"legal: {_legal(shape, tp_size)}"
            )


def _whose(shape: ModelShape, layers: LayerGroup) -> str:
    if not layers.name:
        return "the model"
    return shape.name if len(shape.groups) == 1 else f"the {layers.name} layers of {shape.name}"


def _legal(shape: ModelShape, near: int) -> str:
    """Name the TP sizes that every group of layers allows, those about the one asked for."""
    bounds = [one.query_heads for one in shape.groups if one.query_heads is not None]
    largest = min(bounds) if bounds else 2 * max(near, *(one.kv_heads for one in shape.groups))
    legal = [
        size
        for size in range(1, largest + 1)
        if all(
            group_is_legal(one.kv_heads, size) and (one.query_heads or size) % size == 0
            for one in shape.groups
        )
    ]
    shown = [*[s for s in legal if s < near][-_NEAR:], *[s for s in legal if s > near][:_NEAR]]
    return ", ".join(map(str, shown)) + (", and others" if not bounds or shown != legal else "")


_NEAR = 6


def _regions(layers: LayerGroup, size: Bytes) -> Iterator[Region]:
    if size.bytes_per_head is not None:
        yield Region("", size.bytes_per_head, "as given")
        return
    for name, width in layers.widths():
        formula = (
            f"{size.block_size} tokens x {width} elements x {size.dtype_bytes} bytes, for {name}"
        )
        yield Region(name, size.block_size * width * size.dtype_bytes, formula)


def _warnings(shape: ModelShape, groups: tuple[GroupPlan, ...]) -> Iterator[str]:
    if any(one.query_heads is None for one in shape.groups):
        yield (
            "a TP size must also divide the query heads, which are not known here: a legal group "
            "for the KV heads is not always a legal deployment; give --query-heads, --model or "
            "--config to have that checked"
        )
    if not all(one.regions for one in groups):
        yield "offsets are in heads only: give --bytes-per-head to have them in bytes"
