# SPDX-License-Identifier: Apache-2.0
"""Whether an invariant says anything that the others do not say already.

The planner here is any table: for a triple of sizes, who sends, which offsets and counts, which
peers, which lengths are accepted, all free within a window around what is right. Either some table
satisfies all the other invariants and breaks this one, and `proofs/judge.py` has to agree, or none
does: on these sizes the others imply it.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

import z3

from kvreshard.proofs.judge import Copy, Subject, is_legal, judge
from kvreshard.proofs.mutation.refute import DoesNotReplayError, written_out
from kvreshard.proofs.rewrite import constants_of
from kvreshard.spec.formula import Truth, unfold
from kvreshard.spec.invariants import INVARIANTS, M_D, M_P, Claim, Planner
from kvreshard.spec.ownership import head_count
from kvreshard.spec.parameters import L_D, L_P, B, C, D, H, N, P, e

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

LARGEST = 4
RLIMIT = 20_000_000

Sizes = tuple[int, int, int]
Domains = dict[str, range]


@dataclass(frozen=True)
class Standing:
    """What an invariant adds to the others.

    Attributes:
        invariant: its name.
        needed_at: the smallest sizes for which a table breaks it and no other; None if none does.
        implied_by: where none does, other invariants that imply it; without any of them, those
            left do not.
    """

    invariant: str
    needed_at: Sizes | None
    implied_by: tuple[str, ...]


def standing(name: str) -> Standing:
    """Return what an invariant adds to the others, for sizes up to `LARGEST`.

    Raises:
        DoesNotReplayError: plain Python judges a table otherwise than the solver.
        ValueError: the solver does not decide.
    """
    others = [other for other in INVARIANTS if other != name]
    for sizes in _triples():
        table = _broken_alone(name, others, sizes)
        if table is not None:
            _replay(name, table, sizes)
            return Standing(name, sizes, ())
    for other in list(others):
        fewer = [one for one in others if one != other]
        if all(_broken_alone(name, fewer, sizes) is None for sizes in _triples()):
            others = fewer
    return Standing(name, None, tuple(others))


def _triples() -> Iterator[Sizes]:
    sizes = range(1, LARGEST + 1)
    for heads, producers, consumers in itertools.product(sizes, sizes, sizes):
        if is_legal(heads, producers) and is_legal(heads, consumers):
            yield heads, producers, consumers


# A table as solver symbols: functions of ranks, and of lengths.
_I, _T = z3.IntSort(), z3.BoolSort()
_SENDS = z3.Function("table_sends", _I, _I, _T)
_SRC = z3.Function("table_src_head_offset", _I, _I, _I)
_DST = z3.Function("table_dst_head_offset", _I, _I, _I)
_COUNT = z3.Function("table_copied_head_count", _I, _I, _I)
_FIRST = z3.Function("table_first_sender", _I, _I)
_LAST = z3.Function("table_last_sender", _I, _I)
_LOW = z3.Function("table_first_receiver_candidate", _I, _I)
_HIGH = z3.Function("table_last_receiver_candidate", _I, _I)
_ACCEPTS = z3.Function("table_accepts", _I, _I, _T)
_STEP = z3.Int("table_sender_step")

_TABLE = Planner(
    sends=_SENDS,
    src_head_offset=_SRC,
    dst_head_offset=_DST,
    copied_head_count=_COUNT,
    first_sender=_FIRST,
    last_sender=_LAST,
    sender_step=lambda: _STEP,
    first_receiver_candidate=_LOW,
    last_receiver_candidate=_HIGH,
    accepts_region_lengths=_ACCEPTS,
)


def _broken_alone(name: str, others: Sequence[str], sizes: Sizes) -> z3.ModelRef | None:
    """Return a table that breaks the named invariant and none of the others, or None."""
    solver = z3.Solver()
    solver.set("rlimit", RLIMIT)
    solver.add(*_window(sizes))
    for other in others:
        solver.add(*_instances(other, sizes))
    solver.add(z3.Or(*[z3.Not(one) for one in _instances(name, sizes)]))
    result = solver.check()
    if result == z3.unknown:
        raise ValueError(f"{name} for {sizes}: not decided, {solver.reason_unknown()}")
    return solver.model() if result == z3.sat else None


def _implication(claim: Claim) -> Truth:
    given = [hypothesis.condition for hypothesis in claim.hypotheses]
    return unfold(z3.Implies(z3.And(*given), claim.goal))


def _at(claim: Truth, sizes: Sizes) -> Truth:
    """Return the claim for a triple, with the block lengths that its hypotheses give."""
    lengths = [(M_P, unfold(head_count(H, P) * B)), (M_D, unfold(head_count(H, D) * B))]
    pairs = [(one, z3.IntVal(value)) for one, value in zip((H, P, D), sizes, strict=True)]
    claim = z3.substitute(z3.substitute(claim, *lengths), *pairs, (e, z3.IntVal(0)))
    return z3.simplify(claim)


def _domains(sizes: Sizes) -> Domains:
    heads, producers, consumers = sizes
    return {
        "producer_tp_rank": range(-1, producers + 1),
        "second_producer_tp_rank": range(producers),
        "consumer_tp_rank": range(consumers),
        "head": range(-1, 3 * heads + 2),
        "copied_head": range(-1, 2 * heads + 2),
        "copied_byte": range((heads + 1) * 4),
        str(B): range(1, 3),
        str(N): range(1, 3),
        str(C): range(1, 3),
        str(L_P): range(-1, 4 * heads + 3),
        str(L_D): range(-1, 4 * heads + 3),
    }


@cache
def _instances(name: str, sizes: Sizes) -> tuple[Truth, ...]:
    """Return what an invariant says of a table, one by one."""
    domains = _domains(sizes)
    claims = [_at(_implication(claim), sizes) for claim in INVARIANTS[name].claims(_TABLE)]
    return tuple(one for claim in claims for one in _instances_of(claim, domains))


def _instances_of(claim: Truth, domains: Domains) -> Iterator[Truth]:
    """Yield the claim for all values of its constants, with "some rank" written out."""
    free = sorted(constants_of(_without_existence(claim)) - {_STEP}, key=str)
    for values in itertools.product(*[domains[str(constant)] for constant in free]):
        pairs = [(constant, z3.IntVal(value)) for constant, value in zip(free, values, strict=True)]
        instance = z3.simplify(z3.substitute(claim, *pairs))
        if not z3.is_true(instance):
            yield written_out(instance, domains["producer_tp_rank"])


def _without_existence(claim: Truth) -> Truth:
    return z3.And(*_leaves(claim))


def _leaves(claim: z3.ExprRef) -> Iterator[z3.ExprRef]:
    if z3.is_quantifier(claim):
        yield from _leaves(z3.substitute_vars(claim.body(), z3.IntVal(0)))
    elif z3.is_and(claim) or z3.is_or(claim) or z3.is_not(claim) or z3.is_implies(claim):
        for child in claim.children():
            yield from _leaves(child)
    else:
        yield claim


def _window(sizes: Sizes) -> Iterable[Truth]:
    """Limit the numbers of a table to one beyond what a rank or a head can be."""
    heads, producers, consumers = sizes

    def within(value: z3.ArithRef, largest: int) -> Truth:
        return z3.And(-1 <= value, value <= largest)

    for p in range(-1, producers + 1):
        yield from (within(_LOW(p), consumers), within(_HIGH(p), consumers))
        for d in range(consumers):
            yield from (within(made(p, d), heads + 1) for made in (_SRC, _DST, _COUNT))
    for d in range(consumers):
        yield from (within(_FIRST(d), producers), within(_LAST(d), producers))
    yield within(_STEP, producers + 1)


def _replay(name: str, table: z3.ModelRef, sizes: Sizes) -> None:
    """Judge the table in plain Python.

    Raises:
        DoesNotReplayError: it breaks another invariant, or not this one.
    """
    found = {violation.invariant for violation in judge(_subject(table), *sizes)}
    if found != {name}:
        raise DoesNotReplayError(f"a table for {sizes} breaks {sorted(found)}, not {name} alone")


def _subject(table: z3.ModelRef) -> Subject:
    def number(term: z3.ArithRef) -> int:
        return int(table.eval(term, model_completion=True).as_long())

    def holds(term: Truth) -> bool:
        return bool(z3.is_true(table.eval(term, model_completion=True)))

    def plan(_H: int, _P: int, p: int, _D: int, d: int) -> Copy:
        numbers = (number(made(p, d)) for made in (_SRC, _DST, _COUNT))
        return Copy(holds(_SENDS(p, d)), *numbers)

    def senders(_H: int, _P: int, _D: int, d: int) -> list[int]:
        step = number(_STEP)
        return list(range(number(_FIRST(d)), number(_LAST(d)) + 1, step)) if step >= 1 else []

    def receivers(_H: int, _P: int, p: int, D: int) -> list[int]:
        listed = range(number(_LOW(p)), number(_HIGH(p)) + 1)
        return [d for d in listed if 0 <= d < D and holds(_SENDS(p, d))]

    def accepts(_H: int, _P: int, _D: int, a: int, b: int) -> bool:
        return holds(_ACCEPTS(a, b))

    return Subject(plan, senders, receivers, accepts)
