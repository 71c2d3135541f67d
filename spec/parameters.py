# SPDX-License-Identifier: Apache-2.0
"""The parameters of the specification: meaning, unit and legal range of each.

The legal range of a parameter is a list of named hypotheses. A formula assumes the legal ranges
of its own parameters and nothing else, so the names of its parameters are its precondition.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import z3

from kvreshard.spec.formula import Hypothesis, Integer
from kvreshard.spec.ownership import group_is_legal, replica_count

if TYPE_CHECKING:
    from collections.abc import Iterable


@dataclass(frozen=True)
class Parameter:
    """One parameter: its meaning, its unit and its legal range in words and as hypotheses."""

    name: str
    unit: str
    meaning: str
    legal: str
    hypotheses: tuple[Hypothesis, ...]


def _constants(names: str) -> list[Integer]:
    return list(z3.Ints(names))


H, T, r = _constants("total_num_kv_heads tp_size tp_rank")
P, p = _constants("producer_tp_size producer_tp_rank")
D, d = _constants("consumer_tp_size consumer_tp_rank")
e, h = _constants("elected_ordinal head")
B, N, C = _constants("bytes_per_head block_size token_bytes")
L_P, L_D = _constants("producer_region_bytes consumer_region_bytes")
a = z3.Int("byte_offset")


def _at_least_one(constant: Integer) -> Hypothesis:
    return Hypothesis(f"{constant.decl().name()}_is_positive", constant >= 1)


def _legal_group(side: str, size: Integer) -> tuple[Hypothesis, ...]:
    return (
        _at_least_one(size),
        Hypothesis(f"{side}group_is_legal", group_is_legal(H, size)),
    )


def _rank_in_range(side: str, rank: Integer, size: Integer) -> Hypothesis:
    return Hypothesis(f"{side}rank_is_in_range", z3.And(0 <= rank, rank < size))


_GROUP = "H % {0} == 0 (heads are split) or {0} % H == 0 (heads are replicated)"

PARAMETERS: dict[str, Parameter] = {
    entry.name: entry
    for entry in (
        Parameter(
            "total_num_kv_heads",
            "heads",
            "H, the KV heads of one layer of the model, before any sharding",
            "at least 1",
            (_at_least_one(H),),
        ),
        Parameter(
            "tp_size",
            "ranks",
            "T, the size of a tensor-parallel group",
            _GROUP.format("tp_size"),
            _legal_group("", T),
        ),
        Parameter(
            "tp_rank",
            "rank",
            "r, a rank of the group",
            "0 <= tp_rank < tp_size",
            (_rank_in_range("", r, T),),
        ),
        Parameter(
            "producer_tp_size",
            "ranks",
            "P, the size of the group that holds the cache (prefill)",
            _GROUP.format("producer_tp_size"),
            _legal_group("producer_", P),
        ),
        Parameter(
            "producer_tp_rank",
            "rank",
            "p, a rank of the producer group",
            "0 <= producer_tp_rank < producer_tp_size",
            (_rank_in_range("producer_", p, P),),
        ),
        Parameter(
            "consumer_tp_size",
            "ranks",
            "D, the size of the group that receives the cache (decode)",
            _GROUP.format("consumer_tp_size"),
            _legal_group("consumer_", D),
        ),
        Parameter(
            "consumer_tp_rank",
            "rank",
            "d, a rank of the consumer group",
            "0 <= consumer_tp_rank < consumer_tp_size",
            (_rank_in_range("consumer_", d, D),),
        ),
        Parameter(
            "elected_ordinal",
            "ordinal",
            "e, which of the producer ranks that hold a head sends it to this consumer",
            "0 <= elected_ordinal < replica_count(total_num_kv_heads, producer_tp_size)",
            (
                Hypothesis(
                    "elected_ordinal_is_in_range",
                    z3.And(0 <= e, e < replica_count(H, P)),
                ),
            ),
        ),
        Parameter(
            "head",
            "head",
            "h, a head of the model",
            "0 <= head < total_num_kv_heads",
            (Hypothesis("head_is_in_range", z3.And(0 <= h, h < H)),),
        ),
        Parameter(
            "ordinal",
            "ordinal",
            "one of the ranks that hold the same heads",
            "0 <= ordinal < replica_count(total_num_kv_heads, tp_size)",
            (
                Hypothesis(
                    "ordinal_is_in_range",
                    z3.And(z3.Int("ordinal") >= 0, z3.Int("ordinal") < replica_count(H, T)),
                ),
            ),
        ),
        Parameter(
            "bytes_per_head",
            "bytes",
            "bytes of one head in one block: block_size * token_bytes",
            "at least 1",
            (_at_least_one(B),),
        ),
        Parameter(
            "block_size",
            "tokens",
            "tokens in one block",
            "at least 1",
            (_at_least_one(N),),
        ),
        Parameter(
            "token_bytes",
            "bytes",
            "bytes of one head of one token (K and V together where they are packed)",
            "at least 1",
            (_at_least_one(C),),
        ),
        Parameter(
            "byte_offset",
            "bytes",
            "offset of a byte in a block",
            "at least 0",
            (Hypothesis("byte_offset_is_not_negative", a >= 0),),
        ),
        Parameter(
            "producer_region_bytes",
            "bytes",
            "length of the producer's region, per block, without padding",
            "any integer; the length check decides",
            (),
        ),
        Parameter(
            "consumer_region_bytes",
            "bytes",
            "length of the consumer's region, per block, without padding",
            "any integer; the length check decides",
            (),
        ),
    )
}


def hypotheses_for(names: Iterable[str]) -> tuple[Hypothesis, ...]:
    """Return the legal ranges of the named parameters, in the order of `PARAMETERS`."""
    wanted = set(names)
    unknown = wanted - PARAMETERS.keys()
    if unknown:
        raise KeyError(f"no such parameter: {sorted(unknown)}")
    return tuple(
        hypothesis
        for entry in PARAMETERS.values()
        if entry.name in wanted
        for hypothesis in entry.hypotheses
    )
