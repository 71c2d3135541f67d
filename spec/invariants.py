# SPDX-License-Identifier: Apache-2.0
"""What every plan has to satisfy, whoever made it.

An invariant speaks of who holds which heads (`ownership`, `layout`) and of the copies that a
planner answers with, never of how the planner found them. It is a named sentence and one or more
claims; a claim is a goal that follows from named hypotheses, for all values of its constants.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import z3

from kvreshard.spec import planner as formulas
from kvreshard.spec.formula import Hypothesis, Integer, Truth
from kvreshard.spec.layout import byte_address, head_slot_at, position_at, token_at
from kvreshard.spec.ownership import first_head, head_count, holds, replica_count
from kvreshard.spec.parameters import L_D, L_P, B, C, D, H, N, P, d, e, h, hypotheses_for, p

if TYPE_CHECKING:
    from collections.abc import Callable

q = z3.Int("second_producer_tp_rank")
x = z3.Int("copied_head")
y = z3.Int("copied_byte")
M_P, M_D = z3.Ints("producer_block_bytes consumer_block_bytes")


@dataclass(frozen=True)
class Planner:
    """A planner as the invariants see it: what it answers for a pair of ranks, in heads.

    H, P, D and the elected ordinal are fixed; the arguments are the ranks p and d.
    """

    sends: Callable[[Integer, Integer], Truth]
    src_head_offset: Callable[[Integer, Integer], Integer]
    dst_head_offset: Callable[[Integer, Integer], Integer]
    copied_head_count: Callable[[Integer, Integer], Integer]
    first_sender: Callable[[Integer], Integer]
    last_sender: Callable[[Integer], Integer]
    sender_step: Callable[[], Integer]
    first_receiver_candidate: Callable[[Integer], Integer]
    last_receiver_candidate: Callable[[Integer], Integer]
    accepts_region_lengths: Callable[[Integer, Integer], Truth]


PLANNER = Planner(
    sends=lambda p, d: formulas.sends(H, P, p, D, d, e),
    src_head_offset=lambda p, d: formulas.src_head_offset(H, P, p, D, d),
    dst_head_offset=lambda p, d: formulas.dst_head_offset(H, P, p, D, d),
    copied_head_count=lambda p, d: formulas.copied_head_count(H, P, p, D, d),
    first_sender=lambda d: formulas.first_sender(H, P, D, d, e),
    last_sender=lambda d: formulas.last_sender(H, P, D, d, e),
    sender_step=lambda: replica_count(H, P),
    first_receiver_candidate=lambda p: formulas.first_receiver_candidate(H, P, p, D),
    last_receiver_candidate=lambda p: formulas.last_receiver_candidate(H, P, p, D),
    accepts_region_lengths=lambda a, b: formulas.region_lengths_match(H, P, D, a, b),
)


@dataclass(frozen=True)
class Claim:
    """One part of an invariant: the goal holds wherever the hypotheses do."""

    part: str
    hypotheses: tuple[Hypothesis, ...]
    goal: Truth


@dataclass(frozen=True)
class Invariant:
    """A named sentence and the claims that make it precise for a planner."""

    name: str
    sentence: str
    claims: Callable[[Planner], tuple[Claim, ...]]


INVARIANTS: dict[str, Invariant] = {}


def _invariant(state: Callable[[Planner], tuple[Claim, ...]]) -> Invariant:
    sentence = " ".join((state.__doc__ or "").split())
    made = Invariant(state.__name__, sentence, state)
    INVARIANTS[made.name] = made
    return made


_GROUPS = hypotheses_for(["total_num_kv_heads", "producer_tp_size", "consumer_tp_size"])
_ORDINAL = hypotheses_for(["elected_ordinal"])
_PRODUCER = hypotheses_for(["producer_tp_rank"])
_CONSUMER = hypotheses_for(["consumer_tp_rank"])
_SECOND_PRODUCER = (Hypothesis("second_producer_rank_is_in_range", z3.And(0 <= q, q < P)),)
PAIR = (*_GROUPS, *_PRODUCER, *_CONSUMER, *_ORDINAL)
_BYTES = hypotheses_for(["bytes_per_head"])
_BLOCK_LENGTHS = (
    Hypothesis("producer_block_length_is_heads_times_bytes_per_head", M_P == head_count(H, P) * B),
    Hypothesis("consumer_block_length_is_heads_times_bytes_per_head", M_D == head_count(H, D) * B),
)


def _writes_head(plan: Planner, p: Integer, d: Integer, h: Integer) -> Truth:
    """Whether p writes head h into the slot of d's block where d keeps it."""
    slot = h - first_head(H, D, d)
    start = plan.dst_head_offset(p, d)
    return z3.And(plan.sends(p, d), start <= slot, slot < start + plan.copied_head_count(p, d))


@_invariant
def every_consumer_head_is_covered_exactly_once(plan: Planner) -> tuple[Claim, ...]:
    """Every head that a consumer rank holds is written to its slot by exactly one producer
    rank.
    """
    held = Hypothesis("the_consumer_holds_the_head", holds(H, D, d, h))
    shared = (*_GROUPS, *_CONSUMER, *_ORDINAL)
    return (
        Claim(
            "at_least_once",
            (*shared, held),
            z3.Exists([p], z3.And(0 <= p, p < P, _writes_head(plan, p, d, h))),
        ),
        Claim(
            "at_most_once",
            (
                *shared,
                *_PRODUCER,
                *_SECOND_PRODUCER,
                Hypothesis("the_first_writes_the_head", _writes_head(plan, p, d, h)),
                Hypothesis("the_second_writes_the_head", _writes_head(plan, q, d, h)),
            ),
            p == q,
        ),
    )


@_invariant
def no_two_writes_overlap(plan: Planner) -> tuple[Claim, ...]:
    """The bytes that two producer ranks write into one consumer block do not overlap."""

    def start(rank: Integer) -> Integer:
        return plan.dst_head_offset(rank, d) * B

    def end(rank: Integer) -> Integer:
        return (plan.dst_head_offset(rank, d) + plan.copied_head_count(rank, d)) * B

    return (
        Claim(
            "bytes",
            (
                *PAIR,
                *_SECOND_PRODUCER,
                *_BYTES,
                Hypothesis("the_first_sends", plan.sends(p, d)),
                Hypothesis("the_second_sends", plan.sends(q, d)),
            ),
            z3.Or(p == q, end(p) <= start(q), end(q) <= start(p)),
        ),
    )


def _inside(offset: Integer, count: Integer, block_bytes: Integer) -> Truth:
    return z3.And(0 <= offset * B, (offset + count) * B <= block_bytes)


@_invariant
def every_read_is_inside_the_producer_block(plan: Planner) -> tuple[Claim, ...]:
    """Every byte that a producer rank reads for a copy lies inside its own block."""
    goal = _inside(plan.src_head_offset(p, d), plan.copied_head_count(p, d), M_P)
    sending = Hypothesis("the_producer_sends", plan.sends(p, d))
    return (Claim("bytes", (*PAIR, *_BYTES, _BLOCK_LENGTHS[0], sending), goal),)


@_invariant
def every_write_is_inside_the_consumer_block(plan: Planner) -> tuple[Claim, ...]:
    """Every byte that a producer rank writes for a copy lies inside the consumer's block."""
    goal = _inside(plan.dst_head_offset(p, d), plan.copied_head_count(p, d), M_D)
    sending = Hypothesis("the_producer_sends", plan.sends(p, d))
    return (Claim("bytes", (*PAIR, *_BYTES, _BLOCK_LENGTHS[1], sending), goal),)


@_invariant
def every_written_byte_holds_the_same_head_token_and_position(
    plan: Planner,
) -> tuple[Claim, ...]:
    """Every byte of a copy is the same head, token and position in the producer's block as in
    the consumer's.
    """
    size = N * C
    copied = Hypothesis(
        "the_byte_is_copied", z3.And(0 <= y, y < plan.copied_head_count(p, d) * size)
    )
    slot, token, position = head_slot_at(y, N, C), token_at(y, N, C), position_at(y, C)

    def lies_at(offset: Integer) -> Truth:
        return byte_address(offset + slot, token, position, N, C) == offset * size + y

    source, target = plan.src_head_offset(p, d), plan.dst_head_offset(p, d)
    return (
        Claim(
            "bytes",
            (
                *PAIR,
                *hypotheses_for(["block_size", "token_bytes"]),
                Hypothesis("the_producer_sends", plan.sends(p, d)),
                copied,
            ),
            z3.And(
                z3.And(0 <= slot, slot < plan.copied_head_count(p, d)),
                z3.And(0 <= token, token < N, 0 <= position, position < C),
                lies_at(source),
                lies_at(target),
                first_head(H, P, p) + source + slot == first_head(H, D, d) + target + slot,
            ),
        ),
    )


@_invariant
def only_a_holder_of_the_head_sends_it(plan: Planner) -> tuple[Claim, ...]:
    """A producer rank that sends copies at least one head, and holds each head it copies."""
    sending = Hypothesis("the_producer_sends", plan.sends(p, d))
    start = plan.dst_head_offset(p, d)
    copied = Hypothesis(
        "the_head_is_copied",
        z3.And(start <= x, x < start + plan.copied_head_count(p, d)),
    )
    return (
        Claim("not_empty", (*PAIR, sending), plan.copied_head_count(p, d) >= 1),
        Claim(
            "holder",
            (*PAIR, sending, copied),
            holds(H, P, p, first_head(H, D, d) + x),
        ),
    )


@_invariant
def producers_and_consumers_agree_on_their_peers(plan: Planner) -> tuple[Claim, ...]:
    """The ranks that a consumer waits for are exactly the ranks that send to it, and every rank
    that a producer sends to is among those it looks at.
    """
    sending = Hypothesis("the_producer_sends", plan.sends(p, d))
    first, last, step = plan.first_sender(d), plan.last_sender(d), plan.sender_step()
    listed = z3.And(step >= 1, first <= p, p <= last, (p - first) % step == 0)
    return (
        Claim(
            "each_listed_rank_sends",
            (*_GROUPS, *_CONSUMER, *_ORDINAL, Hypothesis("the_sender_is_listed", listed)),
            z3.And(0 <= p, p < P, plan.sends(p, d)),
        ),
        Claim("each_sender_is_listed", (*PAIR, sending), listed),
        Claim(
            "each_receiver_is_a_candidate",
            (*PAIR, sending),
            z3.And(plan.first_receiver_candidate(p) <= d, d <= plan.last_receiver_candidate(p)),
        ),
        Claim(
            "each_candidate_is_a_rank",
            (*_GROUPS, *_PRODUCER),
            z3.And(0 <= plan.first_receiver_candidate(p), plan.last_receiver_candidate(p) < D),
        ),
    )


@_invariant
def the_length_check_accepts_exactly_the_plannable_regions(
    plan: Planner,
) -> tuple[Claim, ...]:
    """The length check accepts two regions exactly where each is a whole number of bytes per
    head, at least one, and the number is the same on both sides.
    """
    heads_P, heads_D = head_count(H, P), head_count(H, D)
    plannable = z3.And(
        L_P >= 1,
        L_D >= 1,
        L_P % heads_P == 0,
        L_D % heads_D == 0,
        L_P // heads_P == L_D // heads_D,
    )
    accepted = plan.accepts_region_lengths(L_P, L_D)
    return (
        Claim(
            "accepted_is_plannable",
            (*_GROUPS, Hypothesis("the_check_accepts", accepted)),
            plannable,
        ),
        Claim(
            "plannable_is_accepted",
            (*_GROUPS, Hypothesis("the_lengths_are_plannable", plannable)),
            accepted,
        ),
    )


# Named in the design, not stated here yet: they come with descriptors and striped election.
NOT_YET_STATED = (
    "replicas_share_the_load_evenly",
    "no_two_descriptors_of_a_pair_can_be_merged",
)
