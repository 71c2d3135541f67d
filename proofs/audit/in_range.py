# SPDX-License-Identifier: Apache-2.0
"""Prove a lifted planner right for the sizes up to a bound, each by value, for all ranks and bytes.

It is for domains that the proof for all sizes does not cover, or does not settle: groups of which
neither size divides the other among them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import z3

from kvreshard.proofs.audit.all_sizes import (
    Attempt,
    Prover,
    Setting,
    goals_of_one,
    goals_of_two,
    goals_of_witness,
    witnesses,
)
from kvreshard.proofs.audit.sweep import sizes_up_to
from kvreshard.proofs.judge import held_heads

if TYPE_CHECKING:
    from kvreshard.proofs.audit.asking import Asking
    from kvreshard.proofs.audit.domain import Domain
    from kvreshard.proofs.audit.model import Sizes


def prove_in_range(asking: Asking, domain: Domain, maximum: int) -> Attempt:
    """Try to prove every invariant in scope for the sizes of a domain up to a bound.

    Raises:
        UnsupportedError: the planner cannot be lifted.
    """
    attempt = Attempt()
    inside = [sizes for sizes in sizes_up_to(maximum) if domain.has(sizes)]
    if not inside:
        attempt.all_failed(f"the domain has no sizes up to {maximum}")
    for sizes in inside:
        _at(Prover(asking, domain, setting_at(sizes), attempt), sizes)
    return attempt


def setting_at(sizes: Sizes) -> Setting:
    """Return the case of sizes by value."""
    return Setting("H={}, P={}, D={}".format(*sizes), sizes, ())


def _at(prover: Prover, sizes: Sizes) -> None:
    heads, producers, consumers = sizes
    p, q, d, x = z3.Ints("p q d x")
    ranks = [0 <= p, p < producers, 0 <= d, d < consumers]
    prover.settle(ranks, lambda path: goals_of_one(prover, path, p, d))
    prover.settle([*ranks, p < q, q < producers], lambda path: goals_of_two(prover, path, p, q, d))
    slots = [0 <= d, d < consumers, 0 <= x, x < len(held_heads(heads, consumers, 0))]
    prover.cover(
        slots, lambda path, elect: goals_of_witness(prover, path, elect, d, x), witnesses(prover)
    )
