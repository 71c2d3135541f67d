# SPDX-License-Identifier: Apache-2.0
"""Read the shape of a model's KV cache from its Hugging Face config.json."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Any

from kvreshard.model_shapes import LayerGroup, ModelShape

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

# Where a config for text and images keeps what its language model is.
_NESTED = ("text_config", "llm_config", "language_config")
_STATE = "layers of type {}: {}; their state has no KV heads and is not planned yet"


class ConfigError(ValueError):
    """A config that cannot be read: the message names file, field, value and what is legal."""


def read_config(path: Path) -> ModelShape:
    """Return the shape that a config.json describes.

    Raises:
        ConfigError: it is not a config, or a field of it is missing or not legal.
    """
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, json.JSONDecodeError) as error:
        raise ConfigError(f"{path} is not readable as JSON: {error}") from error
    if not isinstance(document, dict):
        raise ConfigError(f"{path} holds {type(document).__name__}; legal: a JSON object")
    nested = next((key for key in _NESTED if isinstance(document.get(key), dict)), None)
    fields = _Fields(path, nested, document[nested] if nested else document)
    return ModelShape(str(path), "the config given", *_shape(fields))


class _Fields:
    """The fields of a config, with errors that name the file and the field."""

    def __init__(self, path: Path, nested: str | None, values: dict[str, Any]) -> None:
        self._path, self._prefix, self.values = path, f"{nested}." if nested else "", values

    def error(self, name: str, legal: str) -> ConfigError:
        found = repr(self.values[name]) if name in self.values else "is missing"
        joint = "=" if name in self.values else " "
        shown = found if len(found) <= _SHOWN else f"{found[:_SHOWN]}..."
        return ConfigError(f"{self._path}: {self._prefix}{name}{joint}{shown}; legal: {legal}")

    def number(self, name: str) -> int:
        value = self.values.get(name)
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise self.error(name, "an integer of 1 or more")
        return value

    def number_or_none(self, name: str) -> int | None:
        return None if self.values.get(name) is None else self.number(name)

    def listing(self, name: str) -> list[Any] | None:
        value = self.values.get(name)
        if value is not None and not (isinstance(value, list) and value):
            raise self.error(name, "a list with one entry for each layer")
        return value

    def kinds(self, name: str, legal: tuple[object, ...]) -> Counter[Any] | None:
        """Count the entries of a list that has one for each layer."""
        value = self.listing(name)
        if value is None:
            return None
        if not all(type(entry) in {type(one) for one in legal} for entry in value):
            raise self.error(name, f"a list of {' or '.join(map(repr, legal))}")
        return Counter(value)


_SHOWN = 60


def _shape(fields: _Fields) -> tuple[tuple[LayerGroup, ...], tuple[str, ...]]:
    _check_head_fields(fields)
    if fields.values.get("kv_lora_rank") is not None:
        return _latent(fields)
    if fields.values.get("block_configs") is not None:
        return _by_block(fields)
    if fields.values.get("hybrid_layer_pattern") is not None:
        return _with_window_heads(fields)
    if fields.values.get("compress_ratios") is not None:
        return _compressed(fields)
    return _by_layer_type(fields)


def _check_head_fields(fields: _Fields) -> None:
    """Refuse a head count that would be overlooked: a plan with one H for all would be wrong."""
    for name, value in fields.values.items():
        needs = _HEAD_FIELDS.get(name)
        if value is None or "key_value_heads" not in name or needs == "":
            continue
        if needs is None:
            raise fields.error(name, f"of such fields {', '.join(_HEAD_FIELDS)}")
        if fields.values.get(needs) is None:
            raise fields.error(name, f"together with {needs}, which says which layers it is for")


# Fields with a number of KV heads, and the field that says which layers they are for.
_HEAD_FIELDS = {
    "num_key_value_heads": "",
    "num_global_key_value_heads": "layer_types",
    "swa_num_key_value_heads": "hybrid_layer_pattern",
}


# Kinds of models


def _latent(fields: _Fields) -> tuple[tuple[LayerGroup, ...], tuple[str, ...]]:
    """MLA: num_key_value_heads says how attention unfolds the latent, not what the cache has."""
    width = fields.number("kv_lora_rank") + fields.number("qk_rope_head_dim")
    layers, notes = _attention_layers(fields)
    group = LayerGroup(
        "MLA", layers, 1, fields.number("num_attention_heads"), width, 0, latent=True
    )
    notes.insert(0, MLA_NOTE)
    notes += _index_note(fields)
    return (group,), tuple(notes)


MLA_NOTE = (
    "MLA: one latent for all heads, planned as one KV head (H=1) that every rank holds whole; this "
    "is for an engine that caches the latent, and not keys and values unfolded from it"
)


def _by_block(fields: _Fields) -> tuple[tuple[LayerGroup, ...], tuple[str, ...]]:
    """Each layer says how many query heads share a KV head, or that it has no attention."""
    query_heads, blocks = fields.number("num_attention_heads"), fields.listing("block_configs")
    counts: Counter[int | None] = Counter()
    for block in blocks or ():
        attention = block.get("attention") if isinstance(block, dict) else None
        if not isinstance(attention, dict):
            raise fields.error("block_configs", "a list of objects with an object `attention`")
        shared = attention.get("n_heads_in_group")
        if attention.get("no_op") or attention.get("replace_with_linear"):
            shared = None
        elif type(shared) is not int or shared < 1 or query_heads % shared:
            legal = f"attention.n_heads_in_group a divisor of {query_heads}"
            raise fields.error("block_configs", f"{legal}, in each layer with attention")
        counts[shared] += 1
    without = counts.pop(None, 0)
    if not counts:
        raise fields.error("block_configs", "at least one layer with attention")
    width = _head_width(fields)
    groups = tuple(
        LayerGroup(
            "attention" if len(counts) == 1 else f"attention with {query_heads // shared} KV heads",
            count,
            query_heads // shared,
            query_heads,
            width,
            width,
        )
        for shared, count in counts.items()
        if shared is not None
    )
    return groups, (
        f"layers without attention, which have no KV cache: {without}",
    ) if without else ()


def _with_window_heads(fields: _Fields) -> tuple[tuple[LayerGroup, ...], tuple[str, ...]]:
    """MiMo-V2: 0 is a layer with full attention, 1 one with a window and heads of its own."""
    pattern = fields.kinds("hybrid_layer_pattern", (0, 1)) or Counter()
    if set(pattern) - {0, 1}:
        raise fields.error("hybrid_layer_pattern", "a list of 0 or 1")
    groups = []
    for kind, name, prefix in ((0, "full attention", ""), (1, "sliding window", "swa_")):
        if pattern[kind]:
            names = [f"{prefix}{field}" for field in ("num_attention_heads", "num_key_value_heads")]
            query_heads, kv_heads = (fields.number(field) for field in names)
            _check_grouping(fields, names[1], query_heads, kv_heads)
            key = fields.number(f"{prefix}head_dim")
            value = fields.number_or_none(f"{prefix}v_head_dim") or key
            groups.append(LayerGroup(name, pattern[kind], kv_heads, query_heads, key, value))
    return tuple(groups), ()


def _compressed(fields: _Fields) -> tuple[tuple[LayerGroup, ...], tuple[str, ...]]:
    """DeepSeek-V4: a cache entry stands for several tokens, so a token has no fixed width."""
    query_heads, kv_heads, notes = _heads(fields)
    notes.append(
        "compress_ratios: layers keep one entry for several tokens, so bytes do not follow from "
        "the head's width; give --bytes-per-head"
    )
    notes += _index_note(fields)
    layers = fields.number_or_none("num_hidden_layers")
    return (LayerGroup("attention", layers, kv_heads, query_heads),), tuple(notes)


def _by_layer_type(fields: _Fields) -> tuple[tuple[LayerGroup, ...], tuple[str, ...]]:
    query_heads, kv_heads, notes = _heads(fields)
    width = _head_width(fields)
    value = fields.number_or_none("v_head_dim") or width
    of_full = fields.number_or_none("num_global_key_value_heads")
    types = fields.kinds("layer_types", ("full_attention",))
    if of_full is not None and types:
        full = types.pop("full_attention", 0)
        windows = sum(count for kind, count in types.items() if _has_cache(kind))
        wide = fields.number_or_none("global_head_dim") or width
        _check_grouping(fields, "num_global_key_value_heads", query_heads, of_full)
        groups = [
            LayerGroup("sliding window", windows, kv_heads, query_heads, width, value),
            LayerGroup("full attention", full, of_full, query_heads, wide, wide),
        ]
        if fields.values.get("attention_k_eq_v"):
            notes.append(
                "attention_k_eq_v: full attention layers have keys and values that are alike; an "
                "engine may keep one of them"
            )
        return tuple(group for group in groups if group.layers), (*notes, *_state_notes(types))
    layers, more = _attention_layers(fields)
    notes += more
    notes += _index_note(fields)
    group = LayerGroup("attention", layers, kv_heads, query_heads, width, value)
    return (group,), tuple(notes)


# What the kinds share


def _heads(fields: _Fields) -> tuple[int, int, list[str]]:
    query_heads = fields.number("num_attention_heads")
    if fields.values.get("num_key_value_heads") is not None:
        kv_heads = fields.number("num_key_value_heads")
        _check_grouping(fields, "num_key_value_heads", query_heads, kv_heads)
        return query_heads, kv_heads, []
    if fields.values.get("new_decoder_architecture") and "num_kv_heads" in fields.values:
        kv_heads = fields.number("num_kv_heads")
        _check_grouping(fields, "num_kv_heads", query_heads, kv_heads)
        return query_heads, kv_heads, []
    if fields.values.get("multi_query") is True:
        return query_heads, 1, ["multi_query: all query heads share one KV head"]
    said = (
        "the config has no num_key_value_heads: taken as num_attention_heads, as is the custom; "
        "give --heads if the model shares its KV heads otherwise"
    )
    return query_heads, query_heads, [said]


def _check_grouping(fields: _Fields, name: str, query_heads: int, kv_heads: int) -> None:
    if query_heads % kv_heads:
        raise fields.error(name, f"a divisor of the {query_heads} query heads")


def _head_width(fields: _Fields) -> int | None:
    given = fields.number_or_none("head_dim")
    if given is not None:
        return given
    hidden, query_heads = fields.number_or_none("hidden_size"), fields.number("num_attention_heads")
    if hidden is None or hidden % query_heads:
        return None
    return hidden // query_heads


def _attention_layers(fields: _Fields) -> tuple[int | None, list[str]]:
    """Return how many layers have keys and values, and notes on the others."""
    counts = _layer_kinds(fields)
    if counts is None:
        return fields.number_or_none("num_hidden_layers"), []
    layers = sum(count for kind, count in counts.items() if _has_cache(kind))
    if not layers:
        raise fields.error(_pattern_field(fields), "at least one layer with attention")
    return layers, list(_state_notes(counts))


_PATTERNS = (
    "layer_types",
    "layers_block_type",
    "hybrid_override_pattern",
    "linear_attn_config",
    "full_attention_interval",
)


def _pattern_field(fields: _Fields) -> str:
    return next((name for name in _PATTERNS if fields.values.get(name) is not None), "")


def _layer_kinds(fields: _Fields) -> Counter[str] | None:
    name = _pattern_field(fields)
    value = fields.values.get(name)
    if name in ("layer_types", "layers_block_type"):
        return fields.kinds(name, ("full_attention",))
    if name == "hybrid_override_pattern":
        if not isinstance(value, str) or set(value) - set(_LETTERS):
            raise fields.error(name, f"a text of {' '.join(_LETTERS)}")
        return Counter(_LETTERS[letter] for letter in value)
    if name == "linear_attn_config":
        counts = Counter[str]()
        for key, kind in _LINEAR.items():
            listed = value.get(key) if isinstance(value, dict) else None
            if not isinstance(listed, list):
                raise fields.error(name, f"an object with the lists {' and '.join(_LINEAR)}")
            counts[kind] = len(listed)
        return counts
    if name == "full_attention_interval":
        layers, interval = fields.number("num_hidden_layers"), fields.number(name)
        full = layers // interval
        return Counter({"full_attention": full, "linear_attention": layers - full})
    return None


# Nemotron-H: Mamba, attention, and layers without a cache.
_LETTERS = {"M": "mamba", "*": "attention", "-": "mlp", "E": "moe"}
_LINEAR = {"full_attn_layers": "full_attention", "kda_layers": "kda"}
_NO_STATE = ("mlp", "moe")


def _has_cache(kind: str) -> bool:
    return "attention" in kind and "linear" not in kind


def _state_notes(kinds: Counter[str]) -> Iterable[str]:
    others = {k: n for k, n in kinds.items() if n and not _has_cache(k) and k not in _NO_STATE}
    return [_STATE.format(kind, count) for kind, count in others.items()]


def _index_note(fields: _Fields) -> list[str]:
    sparse = fields.values.get("sparse_attention_config")
    inner = sparse.get("sparse_index_dim") if isinstance(sparse, dict) else None
    width = fields.number_or_none("index_head_dim") or inner
    if width is None:
        return []
    said = f"the indexer has a region of its own, {width} wide, which every rank holds whole"
    return [f"{said}: plan it with --heads 1"]
