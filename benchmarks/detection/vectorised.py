# SPDX-License-Identifier: Apache-2.0
"""Enumeration at the pace of numpy: all pairs of ranks of many sizes in one array.

The formulas are printed as `generated/planner_numpy.py` prints them, with a mutant in its place,
and judged by what `proofs/judge.py` asks. Who holds what is read from equal shares, not from a
formula: rank r of T holds the heads from r * H // T on, max(H // T, 1) of them.
"""

# ruff: noqa: N803, N806 - H, P and D are the names in the theorems

from __future__ import annotations

from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from detection.emitted import called
from kvreshard.codegen import printer
from kvreshard.codegen.modules import PLANNER
from kvreshard.codegen.selection import RESULT_UNITS
from kvreshard.spec.election import POLICIES

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from kvreshard.proofs.mutation.mutants import Mutant
    from kvreshard.spec.election import Policy

Sizes = tuple[int, int, int]
Array = Any  # numpy's arrays of integers and of truth values, mixed freely

# Pairs of ranks judged at once.
_CHUNK = 400_000


class Pairs(NamedTuple):
    """Every pair of ranks of some sizes, flat; `case` numbers the sizes that a pair belongs to."""

    case: Array
    H: Array
    P: Array
    p: Array
    D: Array
    d: Array


def formulas_as_arrays(mutant: Mutant | None = None) -> ModuleType:
    """Return the formulas of the planner module over arrays, with a mutant's in its place.

    Raises:
        UnprintableError: an operator of the mutant has no counterpart over arrays.
    """
    lines = ["import numpy as np", ""]
    needed = {made.name: made for made in PLANNER.formulas()}
    needed |= {made.name: made for made in (called(mutant) if mutant else ())}
    for made in needed.values():
        body = mutant.body if mutant is not None and mutant.formula == made.name else made.body
        taken = {*made.parameter_names, *RESULT_UNITS}
        lines += [f"def {made.name}({', '.join(made.parameter_names)}):"]
        lines += printer.print_body(body, taken, printer.NUMPY)
    module = ModuleType("formulas_over_arrays")
    exec(compile("\n".join(lines), "formulas.py", "exec"), module.__dict__)
    return module


def suspects(
    module: ModuleType, sizes: Iterable[Sizes], policies: Iterable[Policy] = POLICIES
) -> Iterator[Sizes]:
    """Yield, in their order, the sizes at which the planner violates an invariant.

    Args:
        module: the formulas over arrays.
        sizes: what to judge.
        policies: the elections to judge it with.

    Raises:
        FloatingPointError: a formula divides by zero; Python would raise there too.
    """
    for chunk in _chunks(sizes):
        with np.errstate(divide="raise", invalid="raise"):
            wrong = _judged(module, chunk, tuple(policies))
        yield from (triple for triple, bad in zip(chunk, wrong.tolist(), strict=True) if bad)


def _chunks(sizes: Iterable[Sizes]) -> Iterator[list[Sizes]]:
    chunk: list[Sizes] = []
    pairs = 0
    for triple in sizes:
        chunk.append(triple)
        pairs += triple[1] * triple[2]
        if pairs >= _CHUNK:
            yield chunk
            chunk, pairs = [], 0
    if chunk:
        yield chunk


def _judged(module: ModuleType, chunk: list[Sizes], policies: tuple[Policy, ...]) -> Array:
    sizes = np.array(chunk, dtype=np.int64)
    H, P, D = sizes.T
    wrong = _interface(module, H, P, D) | _lengths(module, H, P, D)
    divisible = (P % D == 0) | (D % P == 0)
    for policy in policies:
        chosen = np.flatnonzero(divisible) if policy.needs_divisible_pair else np.arange(len(sizes))
        if len(chosen):
            pairs = _pairs(sizes[chosen], chosen)
            wrong |= np.bincount(
                pairs.case, _wrong_pairs(module, pairs, policy.elect.name), len(sizes)
            ).astype(bool)
    return wrong


def _pairs(sizes: Array, cases: Array) -> Pairs:
    """Return the pairs of ranks of the sizes, those of one consumer rank next to each other."""
    H, P, D = sizes.T
    counts = P * D
    start = np.repeat(np.cumsum(counts) - counts, counts)
    number = np.arange(counts.sum()) - start
    H, P, D, case = (np.repeat(one, counts) for one in (H, P, D, cases))
    return Pairs(case, H, P, number % P, D, number // P)


def _interface(module: ModuleType, H: Array, P: Array, D: Array) -> Array:
    """Return where the interface refuses sizes that are legal."""
    legal = module.group_is_legal(H, P) & module.group_is_legal(H, D)
    divisible = (P % D == 0) | (D % P == 0)
    return ~legal | (divisible & ~module.pair_is_divisible(P, D))


def _wrong_pairs(module: ModuleType, pairs: Pairs, election: str) -> Array:
    """Return 1 for each pair of ranks at which something is wrong, else 0."""
    case, H, P, p, D, d = pairs
    e = getattr(module, election)(H, P, D, d)
    sends = np.broadcast_to(module.sends(H, P, p, D, d, e), case.shape)
    source, target, count = (
        np.broadcast_to(made(H, P, p, D, d), case.shape)
        for made in (module.src_head_offset, module.dst_head_offset, module.copied_head_count)
    )
    held_p, held_d = np.maximum(H // P, 1), np.maximum(H // D, 1)
    inside = (0 <= source) & (source + count <= held_p) & (0 <= target)
    inside &= (target + count <= held_d) & (count >= 1)
    same = p * H // P + source == d * H // D + target
    wrong = sends & ~(inside & same)
    wrong = wrong | _uncovered(pairs, sends, target, count, held_d)
    wrong = wrong | _wrong_senders(module, pairs, sends, e)
    return wrong | _wrong_receivers(module, pairs, sends, election)


def _uncovered(pairs: Pairs, sends: Array, target: Array, count: Array, held: Array) -> Array:
    """Return the first pair of each consumer rank that is not covered exactly once.

    What is written inside the block without overlap covers it if the heads add up.
    """
    first = _first_of_consumer(pairs)
    consumer = np.cumsum(first) - 1
    total = np.bincount(consumer, np.where(sends, count, 0))
    uneven = first & (total[consumer] != held)
    rows = np.flatnonzero(sends)
    rows = rows[np.lexsort((target[rows], consumer[rows]))]
    before, after = rows[:-1], rows[1:]
    meets = consumer[before] == consumer[after]
    overlap = meets & (target[before] + count[before] > target[after])
    uneven[after[overlap]] = True
    return uneven


def _first_of_consumer(pairs: Pairs) -> Array:
    return pairs.p == 0


def _wrong_senders(module: ModuleType, pairs: Pairs, sends: Array, e: Array) -> Array:
    _, H, P, p, D, d = pairs
    first = np.broadcast_to(module.first_sender(H, P, D, d, e), p.shape)
    last = np.broadcast_to(module.last_sender(H, P, D, d, e), p.shape)
    step = np.broadcast_to(module.replica_count(H, P), p.shape)
    if np.any(step == 0):
        raise FloatingPointError("a range of senders has step 0")
    listed = (step > 0) & (first <= p) & (p <= last) & ((p - first) % step == 0)
    starts = _first_of_consumer(pairs)
    consumer = np.cumsum(starts) - 1
    rows = np.bincount(consumer, listed)[consumer]
    # A rank listed that the group does not have makes the list longer than what is seen in it.
    length = np.where((last >= first) & (step > 0), (last - first) // step + 1, 0)
    return (listed != sends) | (starts & (rows != length))


def _wrong_receivers(module: ModuleType, pairs: Pairs, sends: Array, election: str) -> Array:
    _, H, P, p, D, d = pairs
    low = np.broadcast_to(module.first_receiver_candidate(H, P, p, D), p.shape)
    high = np.broadcast_to(module.last_receiver_candidate(H, P, p, D), p.shape)
    wrong = sends & ((d < low) | (d > high))
    # A candidate that is no rank is harmless where nothing would be sent to it. Where there are too
    # many of them, plain Python looks.
    first = d == 0
    for start, end in ((low, np.minimum(high, -1)), (np.maximum(low, D), high)):
        rows = np.flatnonzero(first & (start <= end))
        counts = end[rows] - start[rows] + 1
        if counts.sum() > _CHUNK * 10:
            wrong[rows] = True
            continue
        stray = np.repeat(rows, counts)
        rank = np.arange(len(stray)) - np.repeat(np.cumsum(counts) - counts, counts) + start[stray]
        given = H[stray], P[stray], p[stray], D[stray], rank
        e = getattr(module, election)(H[stray], P[stray], D[stray], rank)
        wrong[stray[np.broadcast_to(module.sends(*given, e), rank.shape)]] = True
    return wrong


def _lengths(module: ModuleType, H: Array, P: Array, D: Array) -> Array:
    """Return where the length check errs at no, one, two or three bytes per head, or next to it."""
    heads_p, heads_d = np.maximum(H // P, 1), np.maximum(H // D, 1)
    wrong = np.zeros(H.shape, dtype=bool)
    around = [(whole, off) for whole in range(4) for off in (-1, 0, 1)]
    for whole, off in around:
        a = heads_p * whole + off
        others = [heads_d * other + more for other, more in around]
        for b in (*others, a * heads_d // heads_p):
            plannable = (a >= 1) & (a % heads_p == 0) & (b % heads_d == 0)
            plannable &= a // heads_p == b // heads_d
            wrong |= module.region_lengths_match(H, P, D, a, b) != plannable
    return wrong
