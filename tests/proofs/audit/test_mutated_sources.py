# SPDX-License-Identifier: Apache-2.0
"""No proof of a changed planner says what trying it at small sizes refutes."""

from __future__ import annotations

from functools import cache
from itertools import groupby

import pytest
from asked import domain_of, swept
from source_mutants import DIVISIBLE, RIGHT_SOURCES, mutants

from kvreshard.proofs.audit.all_sizes import prove_for_all_sizes
from kvreshard.proofs.audit.in_range import prove_in_range
from kvreshard.proofs.audit.judging import IN_SCOPE

TRIED_TO = 6
# So many mutants of each planner, spread over all that there are.
TRIED = 10


@cache
def some_mutants(name: str, start: int) -> tuple[tuple[str, str], ...]:
    """Return some mutants of a right planner, each once; others from another start."""
    source, _, _ = RIGHT_SOURCES[name]
    each = {mutant: what for what, mutant in mutants(source)}
    step = len(each) // TRIED
    return tuple((what, mutant) for mutant, what in sorted(each.items())[start::step])


def chain(sizes: tuple[int, int, int]) -> str:
    """Return the order in which sizes stand, as a condition."""
    named = sorted(zip(sizes, "HPD", strict=True))
    tiers = [[name for _, name in tier] for _, tier in groupby(named, lambda one: one[0])]
    return " < ".join(" == ".join(tier) for tier in tiers) if len(tiers) > 1 else "H == P == D"


def proved_where(source: str, contract: str, where: str) -> set[str]:
    """Return the invariants that are proved for all sizes of a domain."""
    domain = domain_of(source, where, contract)
    return set(IN_SCOPE) - set(prove_for_all_sizes(domain.asking, domain).open)


@pytest.mark.parametrize("name", ["lowest", "paired"])
def test_no_mutant_is_proved_where_it_fails(name: str) -> None:
    _, contract, _ = RIGHT_SOURCES[name]
    wrong = 0
    for what, mutant in some_mutants(name, 0):
        failing = swept(mutant, TRIED_TO, contract, DIVISIBLE).failing
        if not failing:
            continue
        wrong += 1
        where = f"({DIVISIBLE}) and {chain(failing[0][0])}"
        broken = {
            violation.invariant
            for sizes, violations in failing
            if chain(sizes) == chain(failing[0][0])
            for violation in violations
        }
        assert not broken & proved_where(mutant, contract, where), (what, mutant)
    assert wrong >= 8


@pytest.mark.parametrize("name", ["lowest", "spread"])
def test_no_mutant_is_proved_by_value_where_it_fails(name: str) -> None:
    _, contract, _ = RIGHT_SOURCES[name]
    wrong = 0
    for what, mutant in some_mutants(name, 2):
        failing = swept(mutant, TRIED_TO, contract).failing
        if not failing:
            continue
        wrong += 1
        sizes, violations = failing[-1]
        where = "H == {} and P == {} and D == {}".format(*sizes)
        domain = domain_of(mutant, where, contract)
        attempt = prove_in_range(domain.asking, domain, TRIED_TO)
        broken = {violation.invariant for violation in violations}
        assert broken <= set(attempt.open), (what, mutant)
    assert wrong >= 8


@pytest.mark.parametrize("name", RIGHT_SOURCES)
def test_a_right_planner_is_proved_in_each_kind_of_order(name: str) -> None:
    source, contract, _ = RIGHT_SOURCES[name]
    for order in ("D < H < P", "P < D < H", "H == P < D"):
        where = f"({DIVISIBLE}) and {order}"
        assert proved_where(source, contract, where) == set(IN_SCOPE), order
