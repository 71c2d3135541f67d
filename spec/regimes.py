# SPDX-License-Identifier: Apache-2.0
"""The regimes of a pair of groups: heads split or replicated on each side, divisible or not.

A group whose size equals the number of heads counts as split. Where one side is split and the
other replicated, the smaller size divides H and H divides the larger, so one size always divides
the other: of the eight combinations six remain. That they cover every legal input, and that the
two others are impossible, is proved.
"""

from __future__ import annotations

from dataclasses import dataclass

import z3

from kvreshard.spec.election import pair_is_divisible
from kvreshard.spec.formula import Hypothesis, Integer, Truth
from kvreshard.spec.parameters import D, H, P


def is_split(tp_size: Integer) -> Truth:
    """Whether each rank of the group holds its own heads."""
    return H % tp_size == 0


def is_replicated(tp_size: Integer) -> Truth:
    """Whether each head is held by several ranks of the group."""
    return z3.And(tp_size > H, tp_size % H == 0)


@dataclass(frozen=True)
class Regime:
    """One case of the proof: its name and the conditions that single it out."""

    name: str
    hypotheses: tuple[Hypothesis, ...]

    def condition(self) -> Truth:
        """Return the conjunction of the regime's hypotheses."""
        return z3.And(*[hypothesis.condition for hypothesis in self.hypotheses])


def _sharding(side: str, tp_size: Integer, sharding: str) -> Hypothesis:
    condition = is_split(tp_size) if sharding == "split" else is_replicated(tp_size)
    return Hypothesis(f"{side}_heads_are_{sharding}", condition)


def _divisibility(divisible: bool) -> Hypothesis:
    if divisible:
        return Hypothesis("one_tp_size_divides_the_other", pair_is_divisible(P, D))
    return Hypothesis("no_tp_size_divides_the_other", z3.Not(pair_is_divisible(P, D)))


def _regime(producer: str, consumer: str, divisible: bool) -> Regime:
    suffix = "divisible" if divisible else "indivisible"
    return Regime(
        f"{producer}_to_{consumer}_{suffix}",
        (
            _sharding("producer", P, producer),
            _sharding("consumer", D, consumer),
            _divisibility(divisible),
        ),
    )


REGIMES: tuple[Regime, ...] = (
    _regime("split", "split", True),
    _regime("split", "split", False),
    _regime("split", "replicated", True),
    _regime("replicated", "split", True),
    _regime("replicated", "replicated", True),
    _regime("replicated", "replicated", False),
)

IMPOSSIBLE_REGIMES: tuple[Regime, ...] = (
    _regime("split", "replicated", False),
    _regime("replicated", "split", False),
)
