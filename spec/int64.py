# SPDX-License-Identifier: Apache-2.0
"""How large the parameters may be where the formulas are computed in 64-bit integers.

Python's integers grow, those of an array wrap around. Under these bounds, beside the legal
ranges, no integer that a formula computes leaves the 64 bits, which is proved. None of the three
exponents can be raised while the others stay: `consumer_tp_rank * producer_tp_size` limits the
group sizes, and `region_bytes * head_count` the heads and the bytes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import z3

from kvreshard.spec.formula import Hypothesis, Integer, Truth
from kvreshard.spec.parameters import L_D, L_P, D, H, P, T

if TYPE_CHECKING:
    from collections.abc import Iterable

INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1

HEADS_EXPONENT = 20
TP_SIZE_EXPONENT = 31
REGION_BYTES_EXPONENT = 42


def fits_int64(value: Integer) -> Truth:
    """Whether a signed 64-bit integer can hold the value."""
    return z3.And(INT64_MIN <= value, value <= INT64_MAX)


def _at_most(constant: Integer, exponent: int) -> tuple[Hypothesis, ...]:
    name = f"{constant.decl().name()}_is_at_most_2_to_the_{exponent}"
    return (Hypothesis(name, constant <= 2**exponent),)


def _within(constant: Integer, exponent: int) -> tuple[Hypothesis, ...]:
    name = f"{constant.decl().name()}_is_within_2_to_the_{exponent}_of_zero"
    return (Hypothesis(name, z3.And(-(2**exponent) <= constant, constant <= 2**exponent)),)


# Ranks, ordinals and heads are below a bounded size by their legal ranges. The parameters of the
# byte layout are not listed: it is not computed over arrays.
INT64_BOUNDS: dict[str, tuple[Hypothesis, ...]] = {
    "total_num_kv_heads": _at_most(H, HEADS_EXPONENT),
    "tp_size": _at_most(T, TP_SIZE_EXPONENT),
    "tp_rank": (),
    "producer_tp_size": _at_most(P, TP_SIZE_EXPONENT),
    "producer_tp_rank": (),
    "consumer_tp_size": _at_most(D, TP_SIZE_EXPONENT),
    "consumer_tp_rank": (),
    "elected_ordinal": (),
    "head": (),
    "ordinal": (),
    "producer_region_bytes": _within(L_P, REGION_BYTES_EXPONENT),
    "consumer_region_bytes": _within(L_D, REGION_BYTES_EXPONENT),
}


def int64_bounds_for(names: Iterable[str]) -> tuple[Hypothesis, ...]:
    """Return the bounds of the named parameters, in the order of the names."""
    return tuple(hypothesis for name in names for hypothesis in INT64_BOUNDS[name])
