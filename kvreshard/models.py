# SPDX-License-Identifier: Apache-2.0
"""Shapes of real models whose KV cache is plain grouped-query attention, one shape per model."""

from __future__ import annotations

from typing import NamedTuple


class Model(NamedTuple):
    """What the KV cache of a model looks like, from its published configuration."""

    layers: int
    kv_heads: int
    #: Elements of one head's key (and of its value) for one token.
    head_dim: int


MODELS = {
    "glm-4.7": Model(92, 8, 128),
    "gpt-oss-120b": Model(36, 8, 64),
    "gpt-oss-20b": Model(24, 8, 64),
    "llama-3.1-405b": Model(126, 8, 128),
    "llama-3.1-70b": Model(80, 8, 128),
    "llama-3.1-8b": Model(32, 8, 128),
    "llama-4-maverick": Model(48, 8, 128),
    "minimax-m2.5": Model(62, 8, 128),
    "mixtral-8x22b": Model(56, 8, 128),
    "mixtral-8x7b": Model(32, 8, 128),
    "qwen3-0.6b": Model(28, 8, 128),
    "qwen3-235b-a22b": Model(94, 4, 128),
    "qwen3-30b-a3b": Model(48, 4, 128),
    "qwen3-32b": Model(64, 8, 128),
    "qwen3-8b": Model(36, 8, 128),
    "qwen3-coder-480b": Model(62, 8, 128),
}
