# SPDX-License-Identifier: Apache-2.0
"""Faults put into the specification, one formula at a time, each with its smallest failure."""

# ruff: noqa: ARG001, ARG005 - a body gets all parameters, and a wrong one may ignore some

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import pytest
import z3

from kvreshard.spec.formula import FORMULAS, maximum, minimum
from kvreshard.spec.ownership import (
    first_head,
    head_count,
    owner,
    replica_count,
    replica_ordinal,
)
from kvreshard.spec.planner import overlap_end, overlap_start

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

COVERED = "every_consumer_head_is_covered_exactly_once"
OVERLAP = "no_two_writes_overlap"
READ = "every_read_is_inside_the_producer_block"
WRITE = "every_write_is_inside_the_consumer_block"
CONTENT = "every_written_byte_holds_the_same_head_token_and_position"
HOLDER = "only_a_holder_of_the_head_sends_it"
PEERS = "producers_and_consumers_agree_on_their_peers"
LENGTHS = "the_length_check_accepts_exactly_the_plannable_regions"

Sizes = tuple[int, int, int]


@dataclass(frozen=True)
class Mutant:
    """A formula with another body.

    Attributes:
        name: what is wrong with it.
        formula: the formula that is changed.
        body: the parameters, and then the right body as `right`, to the wrong body.
        smallest: the smallest (H, P, D) of each invariant that the replay finds broken.
        shows: the obligation that z3 refutes where no plan goes wrong, if it is such a mutant.
    """

    name: str
    formula: str
    body: Callable[..., Any] = field(repr=False)
    smallest: Mapping[str, Sizes] = field(default_factory=dict)
    shows: str | None = None

    @contextmanager
    def applied(self) -> Iterator[None]:
        """Put the wrong body in place of the right one."""
        made = FORMULAS[self.formula]
        wrong = replace(made, body=self.body(*made.parameters, right=made.body))
        with pytest.MonkeyPatch.context() as patch:
            patch.setitem(FORMULAS, self.formula, wrong)
            yield


def _plus(step: int) -> Callable[..., Any]:
    return lambda *_, right: right + step


def _sends(H: Any, P: Any, p: Any, D: Any, d: Any, e: Any) -> tuple[Any, Any, Any]:
    elected = replica_ordinal(H, P, p) == e
    return elected, overlap_start(H, P, p, D, d), overlap_end(H, P, p, D, d)


def _sends_to_touching_heads(*arguments: Any, right: Any) -> Any:
    elected, start, end = _sends(*arguments)
    return z3.And(elected, start <= end)


def _sends_without_election(*arguments: Any, right: Any) -> Any:
    _, start, end = _sends(*arguments)
    return start < end


def _sends_whether_or_not_heads_overlap(*arguments: Any, right: Any) -> Any:
    return _sends(*arguments)[0]


def _last_sender(H: Any, P: Any, D: Any, d: Any, e: Any, *, right: Any) -> Any:
    return owner(H, P, first_head(H, D, d), e)


def _last_sender_one_head_on(H: Any, P: Any, D: Any, d: Any, e: Any, *, right: Any) -> Any:
    return owner(H, P, first_head(H, D, d) + head_count(H, D), e)


def _lengths(H: Any, P: Any, D: Any, a: Any, b: Any) -> tuple[Any, Any, Any]:
    positive = z3.And(a >= 1, b >= 1)
    whole = a % head_count(H, P) == 0
    same = a * head_count(H, D) == b * head_count(H, P)
    return positive, whole, same


def _any_of(*left_out: int) -> Callable[..., Any]:
    """Return the length check without some of its three parts."""

    def body(*arguments: Any, right: Any) -> Any:
        parts = enumerate(_lengths(*arguments))
        return z3.And(*[part for number, part in parts if number not in left_out])

    return body


MUTANTS = (
    # Ownership
    Mutant(
        "head_count_without_max",
        "head_count",
        lambda H, T, right: H // T,
        {COVERED: (1, 1, 2), PEERS: (2, 1, 4)},
    ),
    Mutant(
        "head_count_of_all_heads",
        "head_count",
        lambda H, T, right: H,
        {
            WRITE: (2, 1, 2),
            PEERS: (2, 1, 2),
            LENGTHS: (2, 1, 2),
            READ: (2, 2, 1),
            HOLDER: (2, 2, 1),
            CONTENT: (2, 2, 1),
            COVERED: (2, 2, 1),
            OVERLAP: (2, 2, 1),
        },
    ),
    Mutant(
        "head_count_is_the_remainder",
        "head_count",
        lambda H, T, right: maximum(H % T, 1),
        {
            COVERED: (2, 1, 1),
            LENGTHS: (2, 1, 1),
            PEERS: (2, 1, 2),
            WRITE: (2, 2, 4),
            READ: (2, 4, 2),
            HOLDER: (2, 4, 2),
            CONTENT: (2, 4, 2),
            OVERLAP: (2, 4, 2),
        },
    ),
    Mutant(
        "replica_count_without_max",
        "replica_count",
        lambda H, T, right: T // H,
        {COVERED: (2, 1, 1), PEERS: (2, 2, 1)},
    ),
    Mutant(
        "replica_count_is_the_group",
        "replica_count",
        lambda H, T, right: T,
        {COVERED: (2, 2, 1), PEERS: (2, 2, 1)},
    ),
    Mutant(
        "replica_count_of_swapped_sizes",
        "replica_count",
        lambda H, T, right: maximum(H // T, 1),
        {PEERS: (1, 1, 2), COVERED: (1, 2, 1), OVERLAP: (1, 2, 1)},
    ),
    Mutant("first_head_plus_1", "first_head", _plus(1), {PEERS: (1, 1, 1)}),
    Mutant("first_head_minus_1", "first_head", _plus(-1), {PEERS: (1, 1, 1)}),
    Mutant(
        "first_head_modulo_heads",
        "first_head",
        lambda H, T, r, right: r % H,
        {
            CONTENT: (2, 1, 4),
            HOLDER: (2, 2, 4),
            PEERS: (2, 2, 4),
            COVERED: (2, 4, 1),
            OVERLAP: (2, 4, 1),
        },
    ),
    Mutant(
        "first_head_rounds_too_early",
        "first_head",
        lambda H, T, r, right: r * (H // T),
        {
            CONTENT: (2, 1, 4),
            HOLDER: (2, 2, 4),
            PEERS: (2, 2, 4),
            COVERED: (2, 4, 1),
            OVERLAP: (2, 4, 1),
        },
    ),
    Mutant(
        "ordinal_is_the_set",
        "replica_ordinal",
        lambda H, T, r, right: r // replica_count(H, T),
        {COVERED: (1, 2, 1), OVERLAP: (1, 2, 1), PEERS: (1, 2, 1)},
    ),
    Mutant(
        "ordinal_is_the_rank",
        "replica_ordinal",
        lambda H, T, r, right: r,
        {COVERED: (2, 2, 1), PEERS: (2, 2, 1)},
    ),
    Mutant("owner_plus_1", "owner", _plus(1), {PEERS: (1, 1, 1)}),
    Mutant(
        "owner_forgets_the_ordinal",
        "owner",
        lambda H, T, h, o, right: right - o,
        {PEERS: (1, 1, 2)},
    ),
    Mutant(
        "owner_without_replicas",
        "owner",
        lambda H, T, h, o, right: h // head_count(H, T) + o,
        {PEERS: (2, 1, 4)},
    ),
    # The plan
    Mutant(
        "overlap_start_is_the_smaller",
        "overlap_start",
        lambda H, P, p, D, d, right: minimum(first_head(H, P, p), first_head(H, D, d)),
        {
            WRITE: (2, 1, 2),
            READ: (2, 2, 1),
            HOLDER: (2, 2, 1),
            CONTENT: (2, 2, 1),
            COVERED: (2, 2, 1),
            OVERLAP: (2, 2, 1),
            PEERS: (2, 2, 2),
        },
    ),
    Mutant(
        "overlap_start_is_the_consumers",
        "overlap_start",
        lambda H, P, p, D, d, right: first_head(H, D, d),
        {
            READ: (2, 2, 1),
            HOLDER: (2, 2, 1),
            CONTENT: (2, 2, 1),
            COVERED: (2, 2, 1),
            OVERLAP: (2, 2, 1),
            PEERS: (2, 2, 2),
        },
    ),
    Mutant(
        "overlap_end_is_the_larger",
        "overlap_end",
        lambda H, P, p, D, d, right: maximum(
            first_head(H, P, p) + head_count(H, P), first_head(H, D, d) + head_count(H, D)
        ),
        {
            WRITE: (2, 1, 2),
            READ: (2, 2, 1),
            HOLDER: (2, 2, 1),
            CONTENT: (2, 2, 1),
            COVERED: (2, 2, 1),
            OVERLAP: (2, 2, 1),
            PEERS: (2, 2, 2),
        },
    ),
    Mutant(
        "overlap_end_is_the_producers",
        "overlap_end",
        lambda H, P, p, D, d, right: first_head(H, P, p) + head_count(H, P),
        {WRITE: (2, 1, 2), PEERS: (2, 2, 2)},
    ),
    Mutant(
        "overlap_end_with_swapped_counts",
        "overlap_end",
        lambda H, P, p, D, d, right: minimum(
            first_head(H, P, p) + head_count(H, D), first_head(H, D, d) + head_count(H, P)
        ),
        {
            COVERED: (2, 1, 2),
            PEERS: (2, 1, 2),
            WRITE: (4, 2, 4),
            READ: (4, 4, 2),
            HOLDER: (4, 4, 2),
            CONTENT: (4, 4, 2),
            OVERLAP: (4, 4, 2),
        },
    ),
    Mutant(
        "touching_heads_count_as_overlap",
        "sends",
        _sends_to_touching_heads,
        {HOLDER: (2, 2, 2), PEERS: (2, 2, 2)},
    ),
    Mutant(
        "every_replica_sends",
        "sends",
        _sends_without_election,
        {COVERED: (1, 2, 1), OVERLAP: (1, 2, 1), PEERS: (1, 2, 1)},
    ),
    Mutant(
        "the_elected_send_to_everyone",
        "sends",
        _sends_whether_or_not_heads_overlap,
        {HOLDER: (2, 2, 2), PEERS: (2, 2, 2)},
    ),
    Mutant(
        "overlap_of_swapped_sizes",
        "overlap_start",
        lambda H, P, p, D, d, right: maximum(first_head(H, D, p), first_head(H, P, d)),
        {
            COVERED: (1, 1, 2),
            PEERS: (1, 1, 2),
            READ: (2, 2, 4),
            HOLDER: (2, 2, 4),
            CONTENT: (2, 2, 4),
            OVERLAP: (2, 2, 4),
            WRITE: (2, 4, 2),
        },
    ),
    Mutant(
        "source_offset_of_swapped_ranks",
        "src_head_offset",
        lambda H, P, p, D, d, right: overlap_start(H, P, p, D, d) - first_head(H, D, d),
        {CONTENT: (2, 1, 2), READ: (2, 2, 1)},
    ),
    Mutant(
        "target_offset_of_swapped_ranks",
        "dst_head_offset",
        lambda H, P, p, D, d, right: overlap_start(H, P, p, D, d) - first_head(H, P, p),
        {
            WRITE: (2, 1, 2),
            COVERED: (2, 1, 2),
            HOLDER: (2, 2, 1),
            CONTENT: (2, 2, 1),
            OVERLAP: (2, 2, 1),
        },
    ),
    Mutant(
        "source_offset_plus_1", "src_head_offset", _plus(1), {READ: (1, 1, 1), CONTENT: (1, 1, 1)}
    ),
    Mutant(
        "source_offset_minus_1", "src_head_offset", _plus(-1), {READ: (1, 1, 1), CONTENT: (1, 1, 1)}
    ),
    Mutant(
        "source_offset_is_zero",
        "src_head_offset",
        lambda *_, right: z3.IntVal(0),
        {CONTENT: (2, 1, 2)},
    ),
    Mutant(
        "target_offset_plus_1",
        "dst_head_offset",
        _plus(1),
        {WRITE: (1, 1, 1), COVERED: (1, 1, 1), CONTENT: (2, 1, 1), HOLDER: (2, 2, 1)},
    ),
    Mutant(
        "target_offset_minus_1",
        "dst_head_offset",
        _plus(-1),
        {WRITE: (1, 1, 1), COVERED: (1, 1, 1), CONTENT: (2, 1, 1), HOLDER: (2, 2, 1)},
    ),
    Mutant(
        "target_offset_is_zero",
        "dst_head_offset",
        lambda *_, right: z3.IntVal(0),
        {HOLDER: (2, 2, 1), CONTENT: (2, 2, 1), COVERED: (2, 2, 1), OVERLAP: (2, 2, 1)},
    ),
    Mutant(
        "one_head_too_many",
        "copied_head_count",
        _plus(1),
        {
            READ: (1, 1, 1),
            WRITE: (1, 1, 1),
            HOLDER: (2, 2, 1),
            CONTENT: (2, 2, 1),
            COVERED: (2, 2, 1),
            OVERLAP: (2, 2, 1),
        },
    ),
    Mutant(
        "one_head_too_few", "copied_head_count", _plus(-1), {HOLDER: (1, 1, 1), COVERED: (1, 1, 1)}
    ),
    # Peers
    Mutant("first_sender_plus_1", "first_sender", _plus(1), {PEERS: (1, 1, 1)}),
    Mutant("first_sender_minus_1", "first_sender", _plus(-1), {PEERS: (1, 1, 1)}),
    Mutant("last_sender_is_the_first", "last_sender", _last_sender, {PEERS: (2, 2, 1)}),
    Mutant("last_sender_one_head_on", "last_sender", _last_sender_one_head_on, {PEERS: (1, 1, 1)}),
    Mutant("last_sender_minus_1", "last_sender", _plus(-1), {PEERS: (1, 1, 1)}),
    Mutant("first_candidate_plus_1", "first_receiver_candidate", _plus(1), {PEERS: (1, 1, 1)}),
    Mutant("last_candidate_minus_1", "last_receiver_candidate", _plus(-1), {PEERS: (1, 1, 1)}),
    Mutant(
        "last_candidate_is_the_lowest_replica",
        "last_receiver_candidate",
        lambda H, P, p, D, right: owner(
            H, D, first_head(H, P, p) + head_count(H, P) - 1, z3.IntVal(0)
        ),
        {PEERS: (1, 1, 2)},
    ),
    # Elections
    Mutant(
        "lowest_elects_the_second", "elect_lowest", _plus(1), {COVERED: (1, 1, 1), PEERS: (1, 1, 1)}
    ),
    Mutant(
        "spread_without_modulo",
        "elect_spread",
        lambda H, P, D, d, right: d,
        {COVERED: (1, 1, 2), PEERS: (1, 1, 2)},
    ),
    Mutant(
        "spread_over_the_consumers_replicas",
        "elect_spread",
        lambda H, P, D, d, right: d % replica_count(H, D),
        {COVERED: (1, 1, 2), PEERS: (1, 1, 2)},
    ),
    Mutant(
        "paired_plus_replica_count",
        "elect_paired",
        lambda H, P, D, d, right: right + replica_count(H, P),
        {COVERED: (1, 1, 1), PEERS: (1, 1, 1)},
    ),
    # The length check
    Mutant("lengths_by_product_alone", "region_lengths_match", _any_of(1), {LENGTHS: (2, 1, 1)}),
    Mutant("lengths_without_the_product", "region_lengths_match", _any_of(2), {LENGTHS: (1, 1, 1)}),
    Mutant("lengths_may_be_zero", "region_lengths_match", _any_of(0), {LENGTHS: (1, 1, 1)}),
    Mutant(
        "lengths_have_to_be_equal",
        "region_lengths_match",
        lambda H, P, D, a, b, right: z3.And(right, a == b),
        {LENGTHS: (2, 1, 2)},
    ),
    Mutant(
        "bytes_of_a_token_lie_apart",
        "byte_address",
        lambda slot, token, position, N, C, right: (slot * C + position) * N + token,
        smallest={CONTENT: (2, 1, 1)},
    ),
    Mutant(
        "head_slot_counts_tokens",
        "head_slot_at",
        lambda y, N, C, right: y // C,
        smallest={CONTENT: (2, 1, 1)},
    ),
    Mutant(
        "token_runs_over_heads",
        "token_at",
        lambda y, N, C, right: y // C,
        smallest={CONTENT: (2, 1, 1)},
    ),
    Mutant(
        "position_plus_1",
        "position_at",
        _plus(1),
        smallest={CONTENT: (2, 1, 1)},
    ),
)

# No plan goes wrong by these: they are faults in what the proofs are about, or a candidate too many
# that is sorted out again. The solver has to find them.
FOUND_BY_THE_SOLVER_ALONE = (
    Mutant(
        "first_candidate_minus_1",
        "first_receiver_candidate",
        _plus(-1),
        shows=f"{PEERS}/each_candidate_is_a_rank/split_to_split_divisible/bounded",
    ),
    Mutant(
        "last_candidate_plus_1",
        "last_receiver_candidate",
        _plus(1),
        shows=f"{PEERS}/each_candidate_is_a_rank/replicated_to_split_divisible/bounded",
    ),
    Mutant(
        "a_share_holds_the_head_it_touches",
        "holds",
        lambda H, T, r, h, right: z3.And(0 <= h, h < H, h * T <= (r + 1) * H, r * H < (h + 1) * T),
        shows=f"{COVERED}/at_least_once/split_to_split_divisible/bounded",
    ),
    Mutant(
        "set_is_the_ordinal",
        "replica_set",
        lambda H, T, r, right: r % replica_count(H, T),
        shows="lemma/sets_of_replicas",
    ),
    Mutant(
        "every_group_is_legal",
        "group_is_legal",
        lambda H, T, right: z3.BoolVal(True),
        shows="every_legal_pair_is_in_exactly_one_regime",
    ),
    Mutant(
        "only_a_larger_producer_is_divisible",
        "pair_is_divisible",
        lambda P, D, right: P % D == 0,
        shows="no_pair_is_in_split_to_replicated_indivisible",
    ),
    Mutant(
        "pairs_of_the_remainder",
        "is_paired",
        lambda P, p, D, d, right: z3.If(P >= D, p % D == d, d % P == p),
        shows="paired/the_elected_rank_is_in_the_consumers_pairs/split_to_replicated_divisible",
    ),
    Mutant(
        "paired_elects_replica_0",
        "elect_paired",
        lambda H, P, D, d, right: z3.IntVal(0),
        shows="paired/the_elected_rank_is_in_the_consumers_pairs/replicated_to_replicated_divisible",
    ),
)
