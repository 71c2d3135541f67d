# SPDX-License-Identifier: Apache-2.0
"""Faults made up to show late: each is right up to a size and wrong for the next larger one.

They are formulas, changed as a mutant is, so that every check can be asked about them.
"""

# ruff: noqa: N806 - N is the name of a bound in the document

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import z3

from kvreshard.proofs.evaluate import executable, executable_truth
from kvreshard.proofs.judge import is_legal
from kvreshard.proofs.mutation.mutants import Mutant
from kvreshard.proofs.mutation.statements import claims_about
from kvreshard.spec.canonical import s_expression
from kvreshard.spec.formula import FORMULAS, maximum

if TYPE_CHECKING:
    from kvreshard.spec.formula import Integer

# Whoever sends holds the head: a claim that can be replayed for one pair of ranks.
_CLAIM = "only_a_holder_of_the_head_sends_it/holder"
# How far the changed formula is compared with the right one.
_COMPARED_TO = 256

_H, _T, _r = z3.Ints("total_num_kv_heads tp_size tp_rank")


@dataclass(frozen=True)
class LateFault:
    """A changed formula and the smallest largest size at which it is wrong.

    Attributes:
        name: says what is wrong.
        sentence: the same as a sentence.
        mutant: the changed formula.
        fails_at: the least N such that it is wrong for some H, P and D up to N.
    """

    name: str
    sentence: str
    mutant: Mutant
    fails_at: int


def _wrapped(value: Integer, bits: int) -> Integer:
    """Return what a signed integer of so many bits makes of the value."""
    half = 2 ** (bits - 1)
    return (value + half) % 2**bits - half


def _fault(name: str, sentence: str, formula: str, body: z3.ExprRef, fails_at: int) -> LateFault:
    right = FORMULAS[formula].body
    mutant = Mutant(formula, None, name, s_expression(right), s_expression(body), body)
    return LateFault(name, sentence, mutant, fails_at)


FAULTS: tuple[LateFault, ...] = (
    _fault(
        "a_table_of_16_ranks",
        "First heads are looked up in a table of 16 ranks that is entered modulo its length.",
        "first_head",
        _r % 16 * _H / _T,
        17,
    ),
    _fault(
        "a_table_of_64_ranks",
        "The same with 64 ranks.",
        "first_head",
        _r % 64 * _H / _T,
        65,
    ),
    _fault(
        "the_head_count_is_kept_in_a_byte",
        "The number of heads less one is kept in one byte.",
        "head_count",
        maximum(((_H - 1) % 256 + 1) / _T, 1),
        257,
    ),
    _fault(
        "the_product_has_32_bits",
        "Rank times heads is computed in 32 bits, with a sign.",
        "first_head",
        _wrapped(_r * _H, 32) / _T,
        46_342,
    ),
    _fault(
        "the_product_has_64_bits",
        "Rank times heads is computed in 64 bits, with a sign.",
        "first_head",
        _wrapped(_r * _H, 64) / _T,
        3_037_000_501,
    ),
)


def unchanged_up_to(fault: LateFault) -> int:
    """Return the largest N up to 256 such that the formula has its right values for all sizes to N.

    Up to there no check that only plans can tell the fault from the right planner.
    """
    name = fault.mutant.formula
    right = executable(FORMULAS[name])
    with fault.mutant.applied():
        changed = executable(FORMULAS[name])
    least = _COMPARED_TO + 1
    for heads in range(1, _COMPARED_TO + 1):
        for size in range(1, _COMPARED_TO + 1):
            largest = max(heads, size)
            if largest < least and is_legal(heads, size):
                ranks = range(size) if name == "first_head" else (None,)
                given = [(heads, size) if rank is None else (heads, size, rank) for rank in ranks]
                if any(right(*one) != changed(*one) for one in given):
                    least = largest
    return least - 1


def replayed(fault: LateFault) -> dict[str, int] | None:
    """Return one pair of ranks, at the size where the fault shows, for which a claim fails.

    Every rank of two groups of H ranks holds one head; the pair is that of the last two. None
    where the claim holds for it.
    """
    N = fault.fails_at
    model = {
        "total_num_kv_heads": N,
        "producer_tp_size": N,
        "consumer_tp_size": N,
        "producer_tp_rank": N - 1,
        "consumer_tp_rank": N - 1,
        "elected_ordinal": 0,
        "copied_head": 0,
    }
    (claim,) = (one for one in claims_about(fault.mutant.formula) if one.name == _CLAIM)
    with fault.mutant.applied():
        given = [executable_truth(one, range(0))(model) for one in claim.hypotheses]
        holds = executable_truth(claim.goal, range(0))(model)
    return model if all(given) and not holds else None
