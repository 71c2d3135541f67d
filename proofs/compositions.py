# SPDX-License-Identifier: Apache-2.0
"""How each invariant follows from the lemmas: which instances, and who is the witness.

The ownership formulas stay closed here: an invariant follows from what the lemmas say of them,
for all sizes and in every regime, without their definitions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import z3

from kvreshard.proofs.lemma import Instance, Proof
from kvreshard.proofs.lemmas import (
    OWNERSHIP,
    a_divisor_is_at_most_the_number,
    a_factor_can_be_split,
    a_positive_factor_cancels,
    a_rank_holds_heads_of_the_model,
    a_rank_holds_one_interval_of_heads,
    a_set_and_an_ordinal_make_a_rank,
    divisibility_is_transitive,
    division_brackets,
    division_forgets_a_multiple,
    equals_may_be_exchanged,
    every_head_has_an_owner_of_each_ordinal,
    exact_division,
    multiplication_keeps_order,
    one_changes_nothing,
    paired_replicas_feed_a_split_consumer,
    paired_replicas_feed_fewer_replicas,
    paired_replicas_feed_more_replicas,
    paired_split_ranks_feed_fewer_ranks,
    paired_split_ranks_feed_more_ranks,
    paired_split_ranks_feed_replicas,
    ranks_of_one_ordinal_hold_later_heads,
    replicated_group,
    sets_of_replicas,
    split_group,
)
from kvreshard.spec.invariants import PLANNER, q, x, y
from kvreshard.spec.ownership import first_head, head_count, owner, replica_count, replica_set
from kvreshard.spec.parameters import L_D, L_P, B, C, D, H, N, P, d, e, h, p

if TYPE_CHECKING:
    from kvreshard.spec.formula import Integer

c_P, c_D = head_count(H, P), head_count(H, D)
rho_P, rho_D = replica_count(H, P), replica_count(H, D)
first_p, first_d = first_head(H, P, p), first_head(H, D, d)
last_p, last_d = first_p + c_P - 1, first_d + c_D - 1
set_p, set_d = replica_set(H, P, p), replica_set(H, D, d)

# Existence is shown by naming the one that exists.
WITNESSES: dict[tuple[str, str], Integer] = {
    ("every_consumer_head_is_covered_exactly_once", "at_least_once"): owner(H, P, h, e),
}


def _from(*uses: Instance) -> Proof:
    return Proof(uses=uses, closed=OWNERSHIP)


def _byte_bounds(offset: Integer, block_heads: Integer) -> tuple[Instance, ...]:
    end = offset + PLANNER.copied_head_count(p, d)
    return (
        multiplication_keeps_order(z3.IntVal(0), offset, B),
        multiplication_keeps_order(end, block_heads, B),
    )


def _no_overlap() -> Proof:
    def start(rank: Integer) -> Integer:
        return PLANNER.dst_head_offset(rank, d)

    def end(rank: Integer) -> Integer:
        return start(rank) + PLANNER.copied_head_count(rank, d)

    return _from(
        ranks_of_one_ordinal_hold_later_heads(H, P, p, q),
        ranks_of_one_ordinal_hold_later_heads(H, P, q, p),
        multiplication_keeps_order(end(p), start(q), B),
        multiplication_keeps_order(end(q), start(p), B),
    )


_SOURCE, _TARGET = PLANNER.src_head_offset(p, d), PLANNER.dst_head_offset(p, d)
# The set of the producer rank p, counted from the first sender's.
_LISTED_SET = first_d // c_P + (p - PLANNER.first_sender(d)) // rho_P

PROOFS: dict[str, dict[str, Proof]] = {
    "every_consumer_head_is_covered_exactly_once": {
        "at_least_once": _from(
            a_rank_holds_one_interval_of_heads(H, D, d, h),
            every_head_has_an_owner_of_each_ordinal(H, P, h, e),
        ),
        "at_most_once": _from(
            ranks_of_one_ordinal_hold_later_heads(H, P, p, q),
            ranks_of_one_ordinal_hold_later_heads(H, P, q, p),
        ),
    },
    "no_two_writes_overlap": {"bytes": _no_overlap()},
    "every_read_is_inside_the_producer_block": {"bytes": _from(*_byte_bounds(_SOURCE, c_P))},
    "every_write_is_inside_the_consumer_block": {"bytes": _from(*_byte_bounds(_TARGET, c_D))},
    "every_written_byte_holds_the_same_head_token_and_position": {
        "bytes": _from(
            division_brackets(y, C),
            division_brackets(y // C, N),
        ),
    },
    "only_a_holder_of_the_head_sends_it": {
        "not_empty": _from(),
        "holder": _from(a_rank_holds_one_interval_of_heads(H, P, p, first_d + x)),
    },
    "producers_and_consumers_agree_on_their_peers": {
        "each_listed_rank_sends": _from(
            a_rank_holds_heads_of_the_model(H, D, d),
            sets_of_replicas(H, P, z3.IntVal(0)),
            exact_division(p - PLANNER.first_sender(d), rho_P),
            division_brackets(first_d, c_P),
            division_brackets(last_d, c_P),
            multiplication_keeps_order(last_d // c_P + 1, _LISTED_SET, rho_P),
            multiplication_keeps_order(_LISTED_SET + 1, first_d // c_P, rho_P),
            multiplication_keeps_order(_LISTED_SET, last_d // c_P, c_P),
            multiplication_keeps_order(first_d // c_P, _LISTED_SET, c_P),
            a_set_and_an_ordinal_make_a_rank(H, P, _LISTED_SET, e),
        ),
        "each_sender_is_listed": _from(
            sets_of_replicas(H, P, p),
            division_brackets(first_d, c_P),
            division_brackets(last_d, c_P),
            multiplication_keeps_order(set_p + 1, first_d // c_P, c_P),
            multiplication_keeps_order(last_d // c_P + 1, set_p, c_P),
            multiplication_keeps_order(first_d // c_P, set_p, rho_P),
            multiplication_keeps_order(set_p, last_d // c_P, rho_P),
            division_forgets_a_multiple(set_p - first_d // c_P, rho_P, z3.IntVal(0)),
        ),
        "each_receiver_is_a_candidate": _from(
            sets_of_replicas(H, D, d),
            division_brackets(first_p, c_D),
            division_brackets(last_p, c_D),
            multiplication_keeps_order(set_d + 1, first_p // c_D, c_D),
            multiplication_keeps_order(last_p // c_D + 1, set_d, c_D),
            multiplication_keeps_order(first_p // c_D, set_d, rho_D),
            multiplication_keeps_order(set_d, last_p // c_D, rho_D),
        ),
        "each_candidate_is_a_rank": _from(
            a_rank_holds_heads_of_the_model(H, P, p),
            sets_of_replicas(H, D, z3.IntVal(0)),
            every_head_has_an_owner_of_each_ordinal(H, D, first_p, z3.IntVal(0)),
            every_head_has_an_owner_of_each_ordinal(H, D, last_p, rho_D - 1),
        ),
    },
    "the_length_check_accepts_exactly_the_plannable_regions": {
        "accepted_is_plannable": _from(
            a_rank_holds_heads_of_the_model(H, P, z3.IntVal(0)),
            a_rank_holds_heads_of_the_model(H, D, z3.IntVal(0)),
            exact_division(L_P, c_P),
            a_factor_can_be_split(L_P, L_P // c_P, c_P, c_D),
            a_positive_factor_cancels((L_P // c_P) * c_D, L_D, c_P),
            division_forgets_a_multiple(L_P // c_P, c_D, z3.IntVal(0)),
        ),
        "plannable_is_accepted": _from(
            a_rank_holds_heads_of_the_model(H, P, z3.IntVal(0)),
            a_rank_holds_heads_of_the_model(H, D, z3.IntVal(0)),
            exact_division(L_P, c_P),
            exact_division(L_D, c_D),
            a_factor_can_be_split(L_P, L_P // c_P, c_P, c_D),
            a_factor_can_be_split(L_D, L_D // c_D, c_D, c_P),
        ),
    },
}

# Formulas whose definedness needs more than the definitions: that a head named by a rank is one
# of the model's.
DEFINEDNESS: dict[str, Proof] = {
    "first_sender": _from(
        a_rank_holds_heads_of_the_model(H, D, d),
    ),
    "last_sender": _from(
        a_rank_holds_heads_of_the_model(H, D, d),
    ),
    "first_receiver_candidate": _from(
        a_rank_holds_heads_of_the_model(H, P, p),
        sets_of_replicas(H, D, z3.IntVal(0)),
    ),
    "last_receiver_candidate": _from(
        a_rank_holds_heads_of_the_model(H, P, p),
        sets_of_replicas(H, D, z3.IntVal(0)),
    ),
}

# Why every legal pair is in exactly one regime.
REGIMES_ARE_EXHAUSTIVE = Proof(
    uses=(
        divisibility_is_transitive(P, H, D),
        divisibility_is_transitive(D, H, P),
        a_divisor_is_at_most_the_number(H, P),
        a_divisor_is_at_most_the_number(H, D),
        a_divisor_is_at_most_the_number(P, H),
        a_divisor_is_at_most_the_number(D, H),
    )
)

# Why the rank that policy `paired` elects is in the consumer's pairs, regime by regime.
_FIRST_PAIR = d * P // D
_ELECTED = (h // c_P) * rho_P + _FIRST_PAIR % rho_P
_HELD = a_rank_holds_one_interval_of_heads(H, D, d, h)
ELECTIONS: dict[str, Proof] = {
    "split_to_split_divisible": Proof(
        uses=(
            _HELD,
            split_group(H, P, z3.IntVal(0)),
            split_group(H, D, d),
            paired_split_ranks_feed_fewer_ranks(H, P, D, d, h),
            paired_split_ranks_feed_more_ranks(H, P, D, d, h),
            a_divisor_is_at_most_the_number(P, D),
            a_divisor_is_at_most_the_number(D, P),
            equals_may_be_exchanged(D, P, P, D),
            equals_may_be_exchanged(h, h, c_P, H // P),
            one_changes_nothing(h // c_P, rho_P),
            one_changes_nothing(_FIRST_PAIR, rho_P),
            equals_may_be_exchanged(_ELECTED, h // (H // P), P // D, P // D),
        ),
        closed=OWNERSHIP,
    ),
    "split_to_replicated_divisible": Proof(
        uses=(
            _HELD,
            split_group(H, P, z3.IntVal(0)),
            replicated_group(H, D, d),
            paired_split_ranks_feed_replicas(H, P, D, d),
            a_divisor_is_at_most_the_number(D, P),
            a_divisor_is_at_most_the_number(H, P),
        ),
        closed=OWNERSHIP,
    ),
    "replicated_to_split_divisible": Proof(
        uses=(
            _HELD,
            replicated_group(H, P, z3.IntVal(0)),
            split_group(H, D, d),
            paired_replicas_feed_a_split_consumer(H, P, D, d, h),
            a_divisor_is_at_most_the_number(H, D),
            one_changes_nothing(h, c_P),
            equals_may_be_exchanged(h // c_P, h, rho_P, P // H),
            equals_may_be_exchanged(_FIRST_PAIR, _FIRST_PAIR, rho_P, P // H),
            equals_may_be_exchanged(_ELECTED, h * (P // H), P // D, P // D),
        ),
        closed=OWNERSHIP,
    ),
    "replicated_to_replicated_divisible": Proof(
        uses=(
            _HELD,
            replicated_group(H, P, z3.IntVal(0)),
            replicated_group(H, D, d),
            paired_replicas_feed_fewer_replicas(H, P, D, d),
            paired_replicas_feed_more_replicas(H, P, D, d),
            a_divisor_is_at_most_the_number(P, D),
            a_divisor_is_at_most_the_number(D, P),
            equals_may_be_exchanged(D, P, P, D),
            one_changes_nothing(h, c_P),
            equals_may_be_exchanged(h // c_P, d // (D // H), rho_P, P // H),
            equals_may_be_exchanged(_FIRST_PAIR, d * (P // D), rho_P, P // H),
            equals_may_be_exchanged(_FIRST_PAIR, d // (D // P), rho_P, P // H),
            equals_may_be_exchanged(_ELECTED, d * (P // D), P // D, P // D),
        ),
        closed=OWNERSHIP,
    ),
}
