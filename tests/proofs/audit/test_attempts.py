# SPDX-License-Identifier: Apache-2.0
"""What is proved is proved of something, and stops where a proof would be of nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import z3
from asked import domain_of, heads, in_bytes, swept
from source_mutants import DIVISIBLE, LOWEST

from kvreshard.proofs.audit import all_sizes
from kvreshard.proofs.audit.all_sizes import Attempt, Goal, Prover, Setting, prove_for_all_sizes
from kvreshard.proofs.audit.in_range import prove_in_range
from kvreshard.proofs.audit.judging import IN_SCOPE
from kvreshard.proofs.audit.reduction import rules_of_quotients
from kvreshard.proofs.broken.names import CONTENT, COVERED, HOLDER, OVERLAP, READ, WRITE
from kvreshard.proofs.lifting.numbers import NOWHERE
from kvreshard.proofs.lifting.path import all_ways
from kvreshard.proofs.lifting.unsupported import UnsupportedError

if TYPE_CHECKING:
    from pathlib import Path

    from kvreshard.proofs.audit.claims import Claim
    from kvreshard.proofs.lifting.path import Path as Way

EQUAL = "H == P == D"


def proved(source: str, where: str, contract: str | Path = "head-list") -> Attempt:
    """Try to prove a planner right for all sizes of a domain."""
    domain = domain_of(source, where, contract)
    return prove_for_all_sizes(domain.asking, domain)


def in_range(source: str, where: str, maximum: int, contract: str | Path = "head-list") -> Attempt:
    """Try to prove a planner right for each size up to a bound."""
    domain = domain_of(source, where, contract)
    return prove_in_range(domain.asking, domain, maximum)


def test_a_range_without_sizes_proves_nothing() -> None:
    where = "H == 15 and P == 3 and D == 5"
    assert set(in_range(LOWEST, where, 12).open) == set(IN_SCOPE)
    assert not in_range(LOWEST, where, 15).open


def test_a_domain_without_sizes_proves_nothing() -> None:
    attempt = proved(LOWEST, "H == P == D and P != D")
    assert attempt.open == {
        name: [(all_sizes.EVERYWHERE, "the domain has no sizes")] for name in IN_SCOPE
    }


def test_a_domain_that_is_not_divisible_is_not_proved_for_all_sizes() -> None:
    attempt = proved(LOWEST, "P == 3 * D or P == D or 2 * P == 3 * D")
    assert set(attempt.open) == set(IN_SCOPE)
    assert "one divides the other" in attempt.open[COVERED][0][1]


def test_what_the_proof_rests_on_is_proved_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    real = rules_of_quotients()[0]
    false = type(real)("a false rule", (), (), z3.Int("n") == 0)

    def with_a_false_one() -> tuple[Claim, ...]:
        return (real, false)

    monkeypatch.setattr(all_sizes, "rules_of_quotients", with_a_false_one)
    attempt = proved(LOWEST, EQUAL)
    assert attempt.open[READ] == [(all_sizes.EVERYWHERE, "not proved: a false rule")]


def test_each_size_for_which_a_planner_raises_is_open() -> None:
    raising = LOWEST.replace("    start =", "    assert H != 1000\n    start =", 1)
    # None of the sizes that are tried shows it.
    assert not swept(raising, 4).failing
    attempt = proved(raising, EQUAL)
    assert set(attempt.open) == set(IN_SCOPE)
    assert "raises AssertionError at line 6" in attempt.open[WRITE][0][1]


@pytest.mark.parametrize(
    ("line", "invariants"),
    [
        # From 1,000 heads on, which no size that is tried shows.
        ("[(0, 0, 2 if H > 1000 else 1)]", {CONTENT, HOLDER, READ, WRITE}),
        ("[(0, 0, 0 if H > 1000 else 1)]", {COVERED, HOLDER}),
        ("[(0, 0, 1)] * (2 if H > 1000 else 1)", {COVERED, OVERLAP}),
        ("[] if H > 1000 else [(0, 0, 1)]", {COVERED}),
        ("[(1 if H > 1000 else 0, 0, 1)]", {CONTENT, READ}),
        ("[(0, -1 if H > 1000 else 0, 1)]", {CONTENT, COVERED, HOLDER, WRITE}),
        ("[(0, 0, 1)]", set()),
        # Beside what is right, a copy of nothing.
        ("[(0, 0, 1), (0, 0, 0)] if H > 1000 else [(0, 0, 1)]", {HOLDER}),
        # The answer is no list of copies, for some sizes.
        ("None if H > 1000 else [(0, 0, 1)]", set(IN_SCOPE)),
        ("[(0, 0)] if H > 1000 else [(0, 0, 1)]", set(IN_SCOPE)),
        ("[(0, 0, True)] if H > 1000 else [(0, 0, 1)]", set(IN_SCOPE)),
    ],
)
def test_a_fault_of_large_sizes_alone_is_not_proved_away(line: str, invariants: set[str]) -> None:
    source = heads(f"    return ({line}) if p == d else []\n")
    assert not swept(source, 4, where=EQUAL).failing
    assert set(proved(source, EQUAL).open) == invariants


def test_a_fault_of_some_ranks_alone_is_not_proved_away() -> None:
    source = heads("    return [(0, 0, 1)] if p == d and p != 77 else []\n")
    assert set(proved(source, EQUAL).open) == {COVERED}
    doubled = heads("    return [(0, 0, 1)] if p == d or p == d + 77 else []\n")
    assert set(proved(doubled, EQUAL).open) == {CONTENT, COVERED, HOLDER, OVERLAP}


@pytest.mark.parametrize(
    ("length", "holds"),
    [
        ("bytes_per_head", True),
        ("bytes_per_head * 2 // 2", True),
        ("bytes_per_head // 6 * 6", False),
        ("min(bytes_per_head, 4096)", False),
        ("bytes_per_head - 1", False),
        ("6", False),
    ],
)
def test_every_number_of_bytes_is_meant(length: str, holds: bool) -> None:
    source = in_bytes(f"    return [(0, 0, {length})] if p == d else []\n")
    attempt, bounded = proved(source, EQUAL, "byte-list"), in_range(source, EQUAL, 3, "byte-list")
    assert bool(attempt.open) is bool(bounded.open) is not holds


def test_copies_in_pieces_of_a_head_are_not_said_to_be_right() -> None:
    halves = in_bytes("""\
    half = bytes_per_head // 2
    return [(0, 0, half), (half, half, bytes_per_head - half)] if p == d else []
""")
    assert not swept(halves, 4, "byte-list", EQUAL).failing
    assert set(proved(halves, EQUAL, "byte-list").open) == set(IN_SCOPE)


def test_several_copies_of_one_producer_are_proved() -> None:
    # The first head by itself, and then the rest, if there is any.
    source = heads("""\
    if p != d:
        return []
    count = H // P
    if count <= 1:
        return [(0, 0, 1)]
    return [(0, 0, 1), (1, 1, count - 1)]
""")
    assert not proved(source, "P == D and D < H").open
    twice = source.replace("(1, 1, count - 1)", "(0, 0, count)")
    assert set(proved(twice, "P == D and D < H").open) == {COVERED, OVERLAP}
    short = source.replace("(1, 1, count - 1)", "(2, 2, count - 2)")
    assert COVERED in proved(short, "P == D and D < H").open


def test_a_list_of_unknown_length_is_not_decided_for_all_sizes() -> None:
    headwise = heads("""\
    return [(h, h, 1) for h in range(H // P)] if p == d else []
""")
    with pytest.raises(UnsupportedError, match="turns of a loop"):
        proved(headwise, "P == D and D < H")
    # By value each length is known.
    assert not in_range(headwise, "P == D and D < H", 6).open
    wrong = headwise.replace("(h, h, 1)", "(h, h, 1 + h // 3)")
    assert set(in_range(wrong, "P == D and D < H", 6).open) >= {OVERLAP, WRITE}


def test_each_way_is_looked_at_whatever_came_of_another() -> None:
    # Where the producer's heads start first, CONTENT fails alone; where not, READ as well.
    source = LOWEST.replace("(start - mine,", "(start - mine - 1,")
    attempt = proved(source, f"({DIVISIBLE}) and P < D < H")
    assert set(attempt.open) == {CONTENT, READ}


def test_a_way_that_nothing_leads_to_needs_no_proof() -> None:
    source = LOWEST.replace("    start =", "    assert H * P >= 1 and H != 0\n    start =", 1)
    assert not proved(source, "H == P and P < D").open


def test_ways_that_are_left_out_leave_everything_open(monkeypatch: pytest.MonkeyPatch) -> None:
    def some_ways(*asked: Any) -> list[Any]:
        return all_ways(*asked)[:-1]

    domain = domain_of(LOWEST, DIVISIBLE)
    n = z3.Int("n")
    prover = Prover(domain.asking, domain, Setting("a case", (n, n, n), ()), Attempt())

    def run(path: Way) -> list[Goal]:
        path.decide(n > 3, NOWHERE)
        return []

    assert prover.settle([], run)
    monkeypatch.setattr(all_sizes, "all_ways", some_ways)
    assert not prover.settle([], run)
    assert set(prover.attempt.open) == set(IN_SCOPE)
