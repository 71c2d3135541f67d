# SPDX-License-Identifier: Apache-2.0
"""The lemmas: a small core about integers, and what holds in one tensor-parallel group.

The one idea: a legal group is sets of `replica_count` consecutive ranks, and each set holds the
next `head_count` heads. Split heads are the case of one rank in a set, replicated heads the case
of one head. `sets_of_replicas` proves this once for each case; everything after it is stated in
sets and needs neither the case nor a division.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import z3

from kvreshard.proofs.lemma import Proof, Statement, lemma
from kvreshard.spec.ownership import (
    first_head,
    group_is_legal,
    head_count,
    holds,
    owner,
    replica_count,
    replica_ordinal,
    replica_set,
)

if TYPE_CHECKING:
    from kvreshard.spec.formula import Integer, Truth

GROUP_SHAPE = frozenset({"head_count", "replica_count", "first_head"})
OWNERSHIP = GROUP_SHAPE | {"replica_set", "replica_ordinal", "holds", "group_is_legal"}


@lemma
def multiplication_keeps_order(u: Integer, v: Integer, m: Integer) -> Statement:
    """A factor that is not negative keeps the order."""
    return Statement(given=[m >= 0, u <= v], then=[u * m <= v * m])


@lemma
def a_positive_factor_cancels(u: Integer, v: Integer, m: Integer) -> Statement:
    """A positive factor on both sides of a comparison can be dropped."""
    return Statement(
        given=[m >= 1],
        then=[(u * m < v * m) == (u < v), (u * m == v * m) == (u == v)],
    )


@lemma
def a_factor_can_be_split(product: Integer, a: Integer, b: Integer, k: Integer) -> Statement:
    """A multiple of a product is a multiple of either factor."""
    return Statement(given=[product == a * b], then=[k * product == (k * a) * b])


@lemma
def division_brackets(a: Integer, b: Integer) -> Statement:
    """The quotient times the divisor is the last multiple that does not exceed the dividend."""
    return Statement(given=[b >= 1], then=[(a // b) * b <= a, a < (a // b) * b + b])


@lemma
def a_bracketed_quotient_is_the_quotient(a: Integer, b: Integer, q: Integer) -> Statement:
    """The quotient is the only number whose multiple brackets the dividend."""
    return Statement(
        given=[b >= 1, q * b <= a, a < q * b + b],
        then=[a // b == q, a % b == a - q * b],
        proof=Proof(
            uses=(
                division_brackets(a, b),
                multiplication_keeps_order(a // b + 1, q, b),
                multiplication_keeps_order(q + 1, a // b, b),
            )
        ),
    )


@lemma
def division_forgets_a_multiple(m: Integer, b: Integer, y: Integer) -> Statement:
    """Adding m times the divisor adds m to the quotient and nothing to the remainder."""
    return Statement(
        given=[b >= 1],
        then=[(m * b + y) // b == m + y // b, (m * b + y) % b == y % b],
        proof=Proof(
            uses=(
                division_brackets(y, b),
                a_bracketed_quotient_is_the_quotient(m * b + y, b, m + y // b),
                a_bracketed_quotient_is_the_quotient(y, b, y // b),
            )
        ),
    )


@lemma
def one_changes_nothing(a: Integer, b: Integer) -> Statement:
    """To multiply or to divide by 1 gives the number itself, and nothing remains."""
    return Statement(given=[b == 1], then=[a * b == a, a // b == a, a % b == 0])


@lemma
def equals_may_be_exchanged(a: Integer, b: Integer, u: Integer, v: Integer) -> Statement:
    """Equal numbers have equal products, quotients and remainders.

    No solver needs to be told, but one that sees it at once has less to search.
    """
    return Statement(
        given=[a == b, u == v, u >= 1],
        then=[a * u == b * v, a // u == b // v, a % u == b % v],
    )


@lemma
def exact_division(a: Integer, b: Integer) -> Statement:
    """Where nothing remains, the quotient times the divisor is the dividend."""
    return Statement(given=[b >= 1, a % b == 0], then=[a == (a // b) * b])


@lemma
def a_divisor_is_at_most_the_number(a: Integer, b: Integer) -> Statement:
    """A number of at least 1 is at least as large as what divides it."""
    return Statement(given=[a >= 1, b >= 1, a % b == 0], then=[b <= a])


@lemma
def divisibility_is_transitive(a: Integer, b: Integer, c: Integer) -> Statement:
    """What divides b divides every multiple of b; the quotients multiply."""
    return Statement(
        given=[a >= 1, b >= 1, b % a == 0, c % b == 0],
        then=[c % a == 0, c // a == (c // b) * (b // a)],
        proof=Proof(
            uses=(
                exact_division(b, a),
                exact_division(c, b),
                a_factor_can_be_split(b, b // a, a, c // b),
                division_forgets_a_multiple((c // b) * (b // a), a, z3.IntVal(0)),
            )
        ),
    )


def _group(H: Integer, T: Integer) -> list[Truth]:
    return [H >= 1, T >= 1, group_is_legal(H, T)]


def _rank(T: Integer, r: Integer) -> list[Truth]:
    return [0 <= r, r < T]


@lemma
def split_group(H: Integer, T: Integer, r: Integer) -> Statement:
    """Where T divides H, each rank holds the next H // T heads and no other rank holds them."""
    return Statement(
        given=[H >= 1, T >= 1, H % T == 0, *_rank(T, r)],
        then=[
            head_count(H, T) == H // T,
            H // T >= 1,
            H == T * (H // T),
            replica_count(H, T) == 1,
            first_head(H, T, r) == r * (H // T),
        ],
    )


@lemma
def replicated_group(H: Integer, T: Integer, r: Integer) -> Statement:
    """Where H divides T, each head is held by the next T // H ranks and these hold no other."""
    return Statement(
        given=[H >= 1, T >= 1, T % H == 0, *_rank(T, r)],
        then=[
            head_count(H, T) == 1,
            T // H >= 1,
            T == H * (T // H),
            replica_count(H, T) == T // H,
            first_head(H, T, r) == r // (T // H),
        ],
    )


@lemma
def sets_of_replicas(H: Integer, T: Integer, r: Integer) -> Statement:
    """A legal group is sets of consecutive ranks; the ranks of a set hold the same next heads."""
    c, rho, s = head_count(H, T), replica_count(H, T), replica_set(H, T, r)
    return Statement(
        given=[*_group(H, T), *_rank(T, r)],
        then=[
            c >= 1,
            rho >= 1,
            s >= 0,
            first_head(H, T, r) == s * c,
            r == s * rho + replica_ordinal(H, T, r),
            0 <= replica_ordinal(H, T, r),
            replica_ordinal(H, T, r) < rho,
        ],
        proof=Proof(uses=(split_group(H, T, r), replicated_group(H, T, r)), closed=GROUP_SHAPE),
    )


@lemma
def a_rank_holds_heads_of_the_model(H: Integer, T: Integer, r: Integer) -> Statement:
    """The heads that a rank holds are at least one and lie within the model."""
    return Statement(
        given=[*_group(H, T), *_rank(T, r)],
        then=[
            0 <= first_head(H, T, r),
            head_count(H, T) >= 1,
            first_head(H, T, r) + head_count(H, T) <= H,
        ],
    )


@lemma
def a_split_rank_holds_its_interval(H: Integer, T: Integer, r: Integer, h: Integer) -> Statement:
    """Where T divides H, a rank holds head h where h is in its interval of H // T heads."""
    c = H // T
    return Statement(
        given=[H >= 1, T >= 1, H % T == 0, *_rank(T, r)],
        then=[
            z3.And(h * T < (r + 1) * H, r * H < (h + 1) * T) == z3.And(r * c <= h, h < (r + 1) * c)
        ],
        proof=Proof(
            uses=(
                split_group(H, T, r),
                a_factor_can_be_split(H, c, T, r),
                a_factor_can_be_split(H, c, T, r + 1),
                a_positive_factor_cancels(h, (r + 1) * c, T),
                a_positive_factor_cancels(r * c, h + 1, T),
            ),
            closed=GROUP_SHAPE,
        ),
    )


@lemma
def a_replicated_rank_holds_its_head(H: Integer, T: Integer, r: Integer, h: Integer) -> Statement:
    """Where H divides T, a rank holds head h where its set of T // H ranks is the h-th."""
    rho = T // H
    return Statement(
        given=[H >= 1, T >= 1, T % H == 0, *_rank(T, r)],
        then=[z3.And(h * T < (r + 1) * H, r * H < (h + 1) * T) == (r // rho == h)],
        proof=Proof(
            uses=(
                replicated_group(H, T, r),
                a_factor_can_be_split(T, rho, H, h),
                a_factor_can_be_split(T, rho, H, h + 1),
                a_positive_factor_cancels(h * rho, r + 1, H),
                a_positive_factor_cancels(r, (h + 1) * rho, H),
                division_brackets(r, rho),
                multiplication_keeps_order(r // rho + 1, h, rho),
                multiplication_keeps_order(h + 1, r // rho, rho),
            ),
            closed=GROUP_SHAPE,
        ),
    )


@lemma
def a_rank_holds_one_interval_of_heads(H: Integer, T: Integer, r: Integer, h: Integer) -> Statement:
    """A rank holds exactly the head_count heads from first_head on."""
    first = first_head(H, T, r)
    return Statement(
        given=[*_group(H, T), *_rank(T, r)],
        then=[
            holds(H, T, r, h) == z3.And(first <= h, h < first + head_count(H, T)),
            z3.Implies(holds(H, T, r, h), z3.And(0 <= h, h < H)),
        ],
        proof=Proof(
            uses=(
                split_group(H, T, r),
                replicated_group(H, T, r),
                a_split_rank_holds_its_interval(H, T, r, h),
                a_replicated_rank_holds_its_head(H, T, r, h),
                a_rank_holds_heads_of_the_model(H, T, r),
            ),
            closed=GROUP_SHAPE,
        ),
    )


@lemma
def ranks_of_one_ordinal_hold_later_heads(
    H: Integer, T: Integer, r: Integer, s: Integer
) -> Statement:
    """Of two ranks with the same ordinal, the later one holds heads after all of the earlier's."""
    set_r, set_s = replica_set(H, T, r), replica_set(H, T, s)
    return Statement(
        given=[
            *_group(H, T),
            *_rank(T, r),
            *_rank(T, s),
            r < s,
            replica_ordinal(H, T, r) == replica_ordinal(H, T, s),
        ],
        then=[first_head(H, T, r) + head_count(H, T) <= first_head(H, T, s)],
        proof=Proof(
            uses=(
                sets_of_replicas(H, T, r),
                sets_of_replicas(H, T, s),
                multiplication_keeps_order(set_s, set_r, replica_count(H, T)),
                multiplication_keeps_order(set_r + 1, set_s, head_count(H, T)),
            ),
            closed=OWNERSHIP,
        ),
    )


@lemma
def a_set_and_an_ordinal_make_a_rank(
    H: Integer, T: Integer, set_index: Integer, ordinal: Integer
) -> Statement:
    """The set that holds heads of the model and an ordinal in range name one rank."""
    rho = replica_count(H, T)
    rank = set_index * rho + ordinal
    return Statement(
        given=[
            *_group(H, T),
            0 <= set_index,
            set_index * head_count(H, T) < H,
            0 <= ordinal,
            ordinal < rho,
        ],
        then=[
            0 <= rank,
            rank < T,
            replica_ordinal(H, T, rank) == ordinal,
            first_head(H, T, rank) == set_index * head_count(H, T),
        ],
        proof=Proof(
            uses=(
                split_group(H, T, z3.IntVal(0)),
                replicated_group(H, T, z3.IntVal(0)),
                a_divisor_is_at_most_the_number(H, T),
                a_divisor_is_at_most_the_number(T, H),
                multiplication_keeps_order(z3.IntVal(0), set_index, rho),
                multiplication_keeps_order(set_index + 1, H, rho),
                division_forgets_a_multiple(set_index, rho, ordinal),
                a_factor_can_be_split(H, H // T, T, set_index),
                a_positive_factor_cancels(set_index, T, H // T),
                division_forgets_a_multiple(set_index * (H // T), T, z3.IntVal(0)),
                a_factor_can_be_split(T, T // H, H, set_index),
                multiplication_keeps_order(z3.IntVal(0), ordinal, H),
                multiplication_keeps_order(ordinal + 1, T // H, H),
                a_bracketed_quotient_is_the_quotient(rank * H, T, set_index),
            ),
            closed=frozenset({"head_count", "replica_count"}),
        ),
    )


@lemma
def every_head_has_an_owner_of_each_ordinal(
    H: Integer, T: Integer, h: Integer, ordinal: Integer
) -> Statement:
    """For each head and each ordinal in range there is a rank that holds the head."""
    c = head_count(H, T)
    rank = owner(H, T, h, ordinal)
    return Statement(
        given=[*_group(H, T), 0 <= h, h < H, 0 <= ordinal, ordinal < replica_count(H, T)],
        then=[
            0 <= rank,
            rank < T,
            replica_ordinal(H, T, rank) == ordinal,
            first_head(H, T, rank) <= h,
            h < first_head(H, T, rank) + c,
        ],
        proof=Proof(
            uses=(
                a_rank_holds_heads_of_the_model(H, T, z3.IntVal(0)),
                division_brackets(h, c),
                a_set_and_an_ordinal_make_a_rank(H, T, h // c, ordinal),
            ),
            closed=OWNERSHIP,
        ),
    )


# Why the rank that policy `paired` elects is in the consumer's pairs. R is the ratio of the larger
# group to the smaller.


@lemma
def paired_split_ranks_feed_fewer_ranks(
    H: Integer, P: Integer, D: Integer, d: Integer, h: Integer
) -> Statement:
    """Where both sides split and the producer is larger, the rank that holds a head is in the
    pairs of the consumer rank that holds it.
    """
    c_P, c_D, R = H // P, H // D, P // D
    set_h = h // c_P
    return Statement(
        given=[
            *(H >= 1, P >= 1, D >= 1, H % P == 0, H % D == 0, P % D == 0, *_rank(D, d)),
            *(d * c_D <= h, h < d * c_D + c_D),
        ],
        then=[R >= 1, c_P >= 1, set_h // R == d],
        proof=Proof(
            uses=(
                divisibility_is_transitive(D, P, H),
                a_divisor_is_at_most_the_number(H, P),
                a_divisor_is_at_most_the_number(P, D),
                exact_division(H, P),
                exact_division(P, D),
                division_brackets(h, c_P),
                a_factor_can_be_split(c_D, R, c_P, d),
                a_positive_factor_cancels(d * R, set_h + 1, c_P),
                a_positive_factor_cancels(set_h, d * R + R, c_P),
                a_bracketed_quotient_is_the_quotient(set_h, R, d),
            ),
        ),
    )


@lemma
def paired_split_ranks_feed_more_ranks(
    H: Integer, P: Integer, D: Integer, d: Integer, h: Integer
) -> Statement:
    """Where both sides split and the consumer is larger, the rank that holds a head is the only
    one of the pairs of the consumer rank that holds it.
    """
    c_P, c_D, R = H // P, H // D, D // P
    pair = d // R
    return Statement(
        given=[
            *(H >= 1, P >= 1, D >= 1, H % P == 0, H % D == 0, D % P == 0, *_rank(D, d)),
            *(d * c_D <= h, h < d * c_D + c_D),
        ],
        then=[R >= 1, c_P >= 1, h // c_P == pair],
        proof=Proof(
            uses=(
                divisibility_is_transitive(P, D, H),
                a_divisor_is_at_most_the_number(H, D),
                a_divisor_is_at_most_the_number(H, P),
                a_divisor_is_at_most_the_number(D, P),
                exact_division(H, D),
                exact_division(D, P),
                division_brackets(d, R),
                a_factor_can_be_split(c_P, R, c_D, pair),
                multiplication_keeps_order(pair * R, d, c_D),
                multiplication_keeps_order(d + 1, pair * R + R, c_D),
                a_bracketed_quotient_is_the_quotient(h, c_P, pair),
            ),
        ),
    )


@lemma
def paired_split_ranks_feed_replicas(H: Integer, P: Integer, D: Integer, d: Integer) -> Statement:
    """Where the producer splits and the consumer replicates, the rank that holds the consumer's
    head is the only one of its pairs.
    """
    c_P, rho_D, R = H // P, D // H, D // P
    pair = d // R
    return Statement(
        given=[*(H >= 1, P >= 1, D >= 1, H % P == 0, D % H == 0, *_rank(D, d))],
        then=[R >= 1, c_P >= 1, D % P == 0, (d // rho_D) // c_P == pair],
        proof=Proof(
            uses=(
                divisibility_is_transitive(P, H, D),
                a_divisor_is_at_most_the_number(H, P),
                a_divisor_is_at_most_the_number(D, H),
                a_divisor_is_at_most_the_number(D, P),
                exact_division(H, P),
                exact_division(D, H),
                division_brackets(d, R),
                division_brackets(d, rho_D),
                a_factor_can_be_split(R, c_P, rho_D, pair),
                a_positive_factor_cancels(pair * c_P, d // rho_D + 1, rho_D),
                a_positive_factor_cancels(d // rho_D, pair * c_P + c_P, rho_D),
                a_bracketed_quotient_is_the_quotient(d // rho_D, c_P, pair),
            ),
        ),
    )


@lemma
def paired_replicas_feed_a_split_consumer(
    H: Integer, P: Integer, D: Integer, d: Integer, h: Integer
) -> Statement:
    """Where the producer replicates and the consumer splits, replica 0 of a head is in the pairs
    of the rank that holds the head.
    """
    rho, c, R = P // H, H // D, P // D
    return Statement(
        given=[
            *(H >= 1, P >= 1, D >= 1, P % H == 0, H % D == 0, *_rank(D, d)),
            *(d * c <= h, h < d * c + c),
        ],
        then=[R >= 1, (d * P // D) % rho == 0, (h * rho) // R == d],
        proof=Proof(
            uses=(
                divisibility_is_transitive(D, H, P),
                a_divisor_is_at_most_the_number(P, H),
                a_divisor_is_at_most_the_number(H, D),
                exact_division(P, D),
                exact_division(P, H),
                exact_division(H, D),
                a_factor_can_be_split(P, R, D, d),
                division_forgets_a_multiple(d * R, D, z3.IntVal(0)),
                a_factor_can_be_split(R, c, rho, d),
                division_forgets_a_multiple(d * c, rho, z3.IntVal(0)),
                multiplication_keeps_order(d * c, h, rho),
                multiplication_keeps_order(h + 1, d * c + c, rho),
                a_bracketed_quotient_is_the_quotient(h * rho, R, d),
            )
        ),
    )


@lemma
def paired_replicas_feed_fewer_replicas(
    H: Integer, P: Integer, D: Integer, d: Integer
) -> Statement:
    """Where both sides replicate and the producer is larger, the elected rank is the first of the
    consumer's pairs.
    """
    rho_P, rho_D, R = P // H, D // H, P // D
    return Statement(
        given=[*(H >= 1, P >= 1, D >= 1, P % H == 0, D % H == 0, P % D == 0, *_rank(D, d))],
        then=[
            R >= 1,
            d * P // D == d * R,
            (d // rho_D) * rho_P + (d * R) % rho_P == d * R,
            (d * R) // R == d,
        ],
        proof=Proof(
            uses=(
                divisibility_is_transitive(H, D, P),
                a_divisor_is_at_most_the_number(P, D),
                a_divisor_is_at_most_the_number(D, H),
                a_divisor_is_at_most_the_number(P, H),
                exact_division(P, D),
                a_factor_can_be_split(P, R, D, d),
                division_forgets_a_multiple(d * R, D, z3.IntVal(0)),
                division_forgets_a_multiple(d, R, z3.IntVal(0)),
                division_brackets(d, rho_D),
                a_factor_can_be_split(rho_P, rho_D, R, d // rho_D),
                multiplication_keeps_order((d // rho_D) * rho_D, d, R),
                multiplication_keeps_order(d + 1, (d // rho_D) * rho_D + rho_D, R),
                a_bracketed_quotient_is_the_quotient(d * R, rho_P, d // rho_D),
            )
        ),
    )


@lemma
def paired_replicas_feed_more_replicas(H: Integer, P: Integer, D: Integer, d: Integer) -> Statement:
    """Where both sides replicate and the consumer is larger, the elected rank is the only one of
    the consumer's pairs.
    """
    rho_P, rho_D, R = P // H, D // H, D // P
    pair = d // R
    return Statement(
        given=[*(H >= 1, P >= 1, D >= 1, P % H == 0, D % H == 0, D % P == 0, *_rank(D, d))],
        then=[
            R >= 1,
            d * P // D == pair,
            (d // rho_D) * rho_P + pair % rho_P == pair,
        ],
        proof=Proof(
            uses=(
                divisibility_is_transitive(H, P, D),
                a_divisor_is_at_most_the_number(D, P),
                a_divisor_is_at_most_the_number(D, H),
                a_divisor_is_at_most_the_number(P, H),
                exact_division(D, P),
                division_brackets(d, R),
                a_factor_can_be_split(D, R, P, pair),
                multiplication_keeps_order(pair * R, d, P),
                multiplication_keeps_order(d + 1, pair * R + R, P),
                a_bracketed_quotient_is_the_quotient(d * P, D, pair),
                division_brackets(d, rho_D),
                a_factor_can_be_split(rho_D, rho_P, R, d // rho_D),
                multiplication_keeps_order(pair + 1, (d // rho_D) * rho_P, R),
                multiplication_keeps_order((d // rho_D) * rho_P + rho_P, pair, R),
                a_bracketed_quotient_is_the_quotient(pair, rho_P, d // rho_D),
            )
        ),
    )
