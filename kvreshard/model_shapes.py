# SPDX-License-Identifier: Apache-2.0
"""The KV cache of a model as a plan needs it: one group of layers for each number of KV heads.

Ownership is per region, never one head count for a whole model: the layers of one kind may have
more KV heads than those of another.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from importlib.resources import files


@dataclass(frozen=True)
class LayerGroup:
    """Layers whose caches have the same shape.

    Attributes:
        name: which layers they are, in words.
        layers: how many; None where that is not known.
        kv_heads: KV heads of a layer, before any sharding; 1 for a latent cache.
        query_heads: query heads of a layer; None where that is not known.
        key_width, value_width: elements of one head of one token; None where they are not known
            or a token has no fixed number of them. The latent of MLA is all key: the other is 0.
        latent: whether it is the cache of MLA, which every rank holds whole.
    """

    name: str
    layers: int | None
    kv_heads: int
    query_heads: int | None = None
    key_width: int | None = None
    value_width: int | None = None
    latent: bool = False

    def widths(self) -> tuple[tuple[str, int], ...]:
        """Return the regions of a layer that differ in width: what each holds, elements a head."""
        if self.key_width is None or self.value_width is None:
            return ()
        if self.latent:
            return (("the latent", self.key_width),)
        if self.key_width == self.value_width:
            return (("each of K and V", self.key_width),)
        return ("K", self.key_width), ("V", self.value_width)


@dataclass(frozen=True)
class ModelShape:
    """The cache of a model.

    Attributes:
        name: as the user gave it.
        source: where the numbers are from, in words.
        groups: its layers with a cache of keys and values, at least one group.
        notes: what else there is to know, and what no plan covers, a sentence each.
    """

    name: str
    source: str
    groups: tuple[LayerGroup, ...]
    notes: tuple[str, ...] = ()


def built_in_models() -> dict[str, ModelShape]:
    """Return the models that ship with kvreshard, by name."""
    text = files("kvreshard").joinpath("model_shapes.json").read_text(encoding="utf-8")
    return {
        row["name"]: ModelShape(
            row["name"],
            row["source"],
            tuple(LayerGroup(**group) for group in row["groups"]),
            tuple(row.get("notes", ())),
        )
        for row in json.loads(text)["models"]
    }
