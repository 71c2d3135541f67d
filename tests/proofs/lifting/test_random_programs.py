# SPDX-License-Identifier: Apache-2.0
"""Random programs mean to the lifter what CPython computes."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest
from against_cpython import MEANINGS, Compared, Raised
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st
from random_programs import random_module

from kvreshard.proofs.lifting import path
from kvreshard.proofs.lifting.unsupported import UnsupportedError

if TYPE_CHECKING:
    from collections.abc import Iterator

MOST_PATHS = 200
numbers = st.one_of(st.integers(-4, 6), st.integers(-50, 50), st.integers(-(10**30), 10**30))


@pytest.fixture(autouse=True, scope="module")
def _few_ways() -> Iterator[None]:
    # A random program with more ways than this would take the time of many others.
    patch = pytest.MonkeyPatch()
    patch.setattr(path, "MOST_PATHS", MOST_PATHS)
    yield
    patch.undo()


def known(compared: Compared) -> bool:
    """Whether the function is known for all integers; most are, see below."""
    try:
        return bool(compared.ways)
    except UnsupportedError:
        return False


@settings(max_examples=120, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    st.randoms(use_true_random=False),
    st.integers(1, 7),
    st.sampled_from(MEANINGS),
    st.lists(st.tuples(numbers, numbers, numbers), min_size=1, max_size=4),
)
def test_a_random_program_means_what_cpython_computes(
    generator: random.Random,
    statements: int,
    meaning: type[path.Meaning],
    inputs: list[tuple[int, int, int]],
) -> None:
    source = random_module(generator, statements)
    compared = Compared(source, ["a", "b", "c"], meaning=meaning)
    symbols = known(compared)
    event(f"for all integers: {symbols}")
    for given_numbers in inputs:
        try:
            compared.with_numbers(*given_numbers)
        except UnsupportedError:
            event("not known")
            continue
        compared.check(*given_numbers, symbols=symbols)


def test_random_programs_are_known_and_differ() -> None:
    """What the test above compares is not next to nothing."""
    generator = random.Random(4)
    results = []
    symbolic = 0
    for _ in range(60):
        compared = Compared(random_module(generator, 6), ["a", "b", "c"])
        symbols = known(compared)
        symbolic += symbols
        for _ in range(3):
            inputs = [generator.randint(-5, 9) for _ in "abc"]
            try:
                results.append(compared.check(*inputs, symbols=symbols))
            except UnsupportedError:
                continue
    raised = {one.kind for one in results if isinstance(one, Raised)}
    returned = [one for one in results if not isinstance(one, Raised)]
    assert symbolic >= 50
    assert len(results) >= 150
    assert len(returned) >= 60
    assert raised >= {"AssertionError", "UnboundLocalError", "ValueError", "ZeroDivisionError"}
