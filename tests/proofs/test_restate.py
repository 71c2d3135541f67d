# SPDX-License-Identifier: Apache-2.0
"""Quotients as witnesses: the same statement, and nothing but it."""

from __future__ import annotations

import pytest
import z3
from hypothesis import given
from hypothesis import strategies as st

from kvreshard.proofs.obligations import Obligation, obligations
from kvreshard.proofs.question import Question, negated, smt2
from kvreshard.proofs.restate import Restated, with_witnesses
from kvreshard.proofs.solve import answer

a, b, c = z3.Ints("a b c")
NESTED = [(a // b) // c == 2, (a // b) % c + a % b >= 1, b >= 1, c >= 1]
DIVIDING = [
    item
    for item in obligations(maximum=4)
    if item.kind in {"lemma", "definedness"} and with_witnesses(negated(item)) is not None
]


def holds(conditions: list[z3.BoolRef], values: dict[z3.ArithRef, int]) -> bool:
    """Return whether all conditions hold for these values."""
    pairs = [(name, z3.IntVal(value)) for name, value in values.items()]
    return all(z3.is_true(z3.simplify(z3.substitute(one, *pairs))) for one in conditions)


def restated(conditions: list[z3.BoolRef]) -> Restated:
    made = with_witnesses(conditions)
    assert made is not None
    return made


def test_no_division_is_left() -> None:
    text = "".join(one.sexpr() for one in restated(NESTED).conditions)
    assert "div" not in text
    assert "mod" not in text


def test_equal_divisions_share_their_witnesses() -> None:
    assert restated(NESTED).definitions == 2


@pytest.mark.parametrize("item", DIVIDING, ids=lambda item: item.name)
def test_the_terms_put_back_give_the_statement(item: Obligation) -> None:
    made = restated(negated(item))
    back = made.originals()[made.definitions :]
    assert all(new.eq(old) for new, old in zip(back, negated(item), strict=True))
    # In a context of its own: z3's answers in a used one depend on what was built there before.
    assert made.witnesses_exist()
    for exists in made.witnesses_exist():
        question = Question(smt2([z3.Not(exists)]), (0,), 1_000_000)
        assert answer(question).result == "unsat"


@given(st.integers(-50, 50), st.integers(1, 9), st.integers(1, 9))
def test_the_true_witnesses_decide_as_the_statement_does(x: int, y: int, z: int) -> None:
    made = restated(NESTED)
    values = {a: x, b: y, c: z}
    for name, term in made.witnesses:
        pairs = [(known, z3.IntVal(value)) for known, value in values.items()]
        values[name] = z3.simplify(z3.substitute(term, *pairs)).as_long()
    assert holds(list(made.conditions), values) == holds(NESTED, {a: x, b: y, c: z})


def test_a_false_witness_does_not_meet_its_definition() -> None:
    made = restated([a // b == 3])
    (quotient, _), (remainder, _) = made.witnesses
    definition = [made.conditions[0]]
    assert holds(definition, {a: 7, b: 2, quotient: 3, remainder: 1})
    assert not holds(definition, {a: 7, b: 2, quotient: 2, remainder: 3})
    assert not holds(definition, {a: 7, b: 2, quotient: 4, remainder: -1})


def test_what_has_no_division_or_a_quantifier_is_not_restated() -> None:
    assert with_witnesses([a >= b]) is None
    assert with_witnesses([z3.Exists([a], a // b == 1)]) is None
