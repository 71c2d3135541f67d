# SPDX-License-Identifier: Apache-2.0
"""Lemma instances that the proofs about survivors need beside the definitions.

No entry excuses a mutant: it only helps the solver to a proof, which is made or not. The first key
is a formula, or one mutant of it; the second the start of an obligation's name, empty for the
proof that the mutant is equal to the formula.
"""

from __future__ import annotations

import z3

from kvreshard.proofs.lemma import Proof
from kvreshard.proofs.lemmas import (
    OWNERSHIP,
    a_factor_can_be_split,
    a_positive_factor_cancels,
    a_rank_holds_heads_of_the_model,
    division_brackets,
    division_forgets_a_multiple,
    every_head_has_an_owner_of_each_ordinal,
    exact_division,
    multiplication_keeps_order,
    sets_of_replicas,
)
from kvreshard.spec.ownership import first_head, head_count, replica_count, replica_set
from kvreshard.spec.parameters import L_D, L_P, C, D, H, N, P, T, a, d, h, p, r

_ZERO, _ONE = z3.IntVal(0), z3.IntVal(1)

# The bounds of the head in `holds` follow from the others where the rank is in range.
_A_HEAD_OF_A_SHARE_IS_IN_RANGE = Proof(
    uses=(
        multiplication_keeps_order(_ZERO, r, H),
        multiplication_keeps_order(h + 1, _ZERO, T),
        multiplication_keeps_order(r + 1, T, H),
        multiplication_keeps_order(H, h, T),
    )
)

# Dividing by two numbers, in either order.
_BY_CONTENT, _BY_TOKENS = a // C // N, a // N // C
_DIVISIONS_COMMUTE = Proof(
    uses=(
        division_brackets(a, C),
        division_brackets(a // C, N),
        division_brackets(a, N),
        division_brackets(a // N, C),
        multiplication_keeps_order(_BY_CONTENT * N, a // C, C),
        multiplication_keeps_order(a // C + 1, _BY_CONTENT * N + N, C),
        multiplication_keeps_order(_BY_TOKENS * C, a // N, N),
        multiplication_keeps_order(a // N + 1, _BY_TOKENS * C + C, N),
        multiplication_keeps_order(_BY_CONTENT + 1, _BY_TOKENS, N * C),
        multiplication_keeps_order(_BY_TOKENS + 1, _BY_CONTENT, N * C),
        multiplication_keeps_order(_ONE, C, N),
    )
)

# Either length is a multiple of its heads, and at least 1, where the other is.
_HEADS_P, _HEADS_D = head_count(H, P), head_count(H, D)
_ONE_LENGTH_GIVES_THE_OTHER = Proof(
    (
        a_rank_holds_heads_of_the_model(H, P, _ZERO),
        a_rank_holds_heads_of_the_model(H, D, _ZERO),
        exact_division(L_P, _HEADS_P),
        exact_division(L_D, _HEADS_D),
        a_factor_can_be_split(L_P, L_P // _HEADS_P, _HEADS_P, _HEADS_D),
        a_factor_can_be_split(L_D, L_D // _HEADS_D, _HEADS_D, _HEADS_P),
        a_positive_factor_cancels((L_P // _HEADS_P) * _HEADS_D, L_D, _HEADS_P),
        a_positive_factor_cancels((L_D // _HEADS_D) * _HEADS_P, L_P, _HEADS_D),
        division_forgets_a_multiple(L_P // _HEADS_P, _HEADS_D, _ZERO),
        division_forgets_a_multiple(L_D // _HEADS_D, _HEADS_P, _ZERO),
        multiplication_keeps_order(L_P, _ZERO, _HEADS_D),
        multiplication_keeps_order(L_D, _ZERO, _HEADS_P),
        multiplication_keeps_order(_ONE, L_D, _HEADS_P),
        multiplication_keeps_order(_ONE, L_P, _HEADS_D),
    ),
    OWNERSHIP,
)

# A candidate found from the number of the set, which is at most the first head of the set.
_SET, _FIRST, _COUNT = replica_set(H, P, p), first_head(H, P, p), head_count(H, D)
_A_SET_IS_A_HEAD = (
    sets_of_replicas(H, P, p),
    sets_of_replicas(H, D, _ZERO),
    a_rank_holds_heads_of_the_model(H, P, p),
    multiplication_keeps_order(_ONE, head_count(H, P), _SET),
)
_PEERS = "producers_and_consumers_agree_on_their_peers"
_CANDIDATE_BY_SET = {
    "first_receiver_candidate/is_defined": Proof(_A_SET_IS_A_HEAD, OWNERSHIP),
    f"{_PEERS}/each_receiver_is_a_candidate": Proof(
        (
            *_A_SET_IS_A_HEAD,
            division_brackets(_SET, _COUNT),
            division_brackets(_FIRST, _COUNT),
            multiplication_keeps_order(_FIRST // _COUNT + 1, _SET // _COUNT, _COUNT),
            multiplication_keeps_order(_SET // _COUNT, replica_set(H, D, d), replica_count(H, D)),
        ),
        OWNERSHIP,
    ),
    f"{_PEERS}/each_candidate_is_a_rank": Proof(
        (*_A_SET_IS_A_HEAD, every_head_has_an_owner_of_each_ordinal(H, D, _SET, _ZERO)),
        OWNERSHIP,
    ),
}

HINTS: dict[str, dict[str, Proof]] = {
    "holds": {"": _A_HEAD_OF_A_SHARE_IS_IN_RANGE},
    "head_slot_at": {"": _DIVISIONS_COMMUTE},
    "region_lengths_match": {"": _ONE_LENGTH_GIVES_THE_OTHER},
    "first_receiver_candidate@3:first_head_to_replica_set": _CANDIDATE_BY_SET,
}
