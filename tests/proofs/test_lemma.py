# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import itertools
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
import z3

from kvreshard.proofs import compositions
from kvreshard.proofs import lemma as lemma_module
from kvreshard.proofs.lemma import LEMMAS, Instance, Lemma, Proof, Statement, lemma
from kvreshard.proofs.lemmas import exact_division, multiplication_keeps_order, sets_of_replicas
from kvreshard.proofs.obligations import obligations
from kvreshard.spec.canonical import spec_formulas
from kvreshard.spec.formula import unfold
from kvreshard.spec.ownership import replica_count

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from kvreshard.spec.formula import Integer


@pytest.fixture
def own_registry(monkeypatch: pytest.MonkeyPatch) -> dict[str, Lemma]:
    """Let lemmas that a test states be forgotten after it."""
    registry = dict(LEMMAS)
    monkeypatch.setattr(lemma_module, "LEMMAS", registry)
    return registry


def test_an_instance_is_the_implication_with_terms_in_place_of_variables() -> None:
    x, H, T = z3.Ints("x total_num_kv_heads tp_size")
    fact = multiplication_keeps_order(x, replica_count(H, T), 3).fact()
    expected = z3.Implies(
        z3.And(z3.IntVal(3) >= 0, x <= replica_count(H, T)),
        z3.And(x * z3.IntVal(3) <= replica_count(H, T) * z3.IntVal(3)),
    )
    assert fact.eq(expected)


def test_variables_are_replaced_all_at_once() -> None:
    u, v, m = z3.Ints("u v m")
    fact = multiplication_keeps_order(v, m, u).fact()
    assert fact.eq(z3.Implies(z3.And(u >= 0, v <= m), z3.And(v * u <= m * u)))


@pytest.mark.parametrize("terms", [(), (1,), (1, 2, 3)])
def test_a_wrong_number_of_terms_is_refused(terms: tuple[int, ...]) -> None:
    with pytest.raises(TypeError, match="exact_division has variables"):
        exact_division(*terms)


def test_a_lemma_is_registered_with_what_it_says(own_registry: dict[str, Lemma]) -> None:
    @lemma
    def a_square_is_not_negative(w: Integer) -> Statement:
        """A square
        is not negative.
        """
        return Statement(given=[], then=[w * w >= 0])

    assert own_registry["a_square_is_not_negative"] is a_square_is_not_negative
    assert a_square_is_not_negative.sentence == "A square is not negative."
    assert "a_square_is_not_negative" not in LEMMAS


def test_a_lemma_cannot_use_one_that_is_stated_later(own_registry: dict[str, Lemma]) -> None:
    later = own_registry.pop("exact_division")

    def early(w: Integer) -> Statement:
        return Statement(given=[], then=[w == w], proof=Proof(uses=(later(w, 1),)))

    with pytest.raises(ValueError, match="early uses exact_division before it is stated"):
        lemma(early)
    assert "early" not in own_registry


def test_a_lemma_cannot_use_another_of_the_same_name(own_registry: dict[str, Lemma]) -> None:
    w = z3.Int("w")
    forged = Lemma("exact_division", "Anything.", (w,), (), (w == 0,), Proof())

    def late(w: Integer) -> Statement:
        return Statement(given=[], then=[w == 0], proof=Proof(uses=(forged(w),)))

    with pytest.raises(ValueError, match="late uses exact_division before it is stated"):
        lemma(late)
    assert own_registry["exact_division"] is exact_division


@pytest.mark.usefixtures("own_registry")
def test_a_lemma_cannot_be_stated_twice() -> None:
    def sets_of_replicas(w: Integer) -> Statement:
        return Statement(given=[], then=[w == w])

    with pytest.raises(ValueError, match="lemma sets_of_replicas is stated twice"):
        lemma(sets_of_replicas)


def test_every_fact_comes_from_a_lemma_that_is_shown() -> None:
    declared = obligations()
    shown = {item.name for item in declared if item.kind == "lemma"}
    used = [use for item in declared for use in item.proof.uses]
    assert len(used) > 100
    for use in used:
        assert LEMMAS[use.lemma.name] is use.lemma
        assert f"lemma/{use.lemma.name}" in shown


def test_lemmas_rest_on_earlier_ones_alone() -> None:
    order = list(LEMMAS)
    for name, made in LEMMAS.items():
        for use in made.proof.uses:
            assert order.index(use.lemma.name) < order.index(name)


def test_only_formulas_stay_closed() -> None:
    closed = set().union(*(item.proof.closed for item in obligations()))
    assert closed
    assert closed <= set(spec_formulas())


# Every lemma, run on small integers without the solver

SPANS = {2: range(-12, 40), 3: range(-6, 14), 4: range(-2, 10), 5: range(-1, 9)}


def divide(dividend: int, divisor: int) -> int:
    """Divide where z3 and Python agree, and nowhere else."""
    assert divisor >= 1
    return dividend // divisor


def remainder(dividend: int, divisor: int) -> int:
    """Return the remainder where z3 and Python agree, and nowhere else."""
    assert divisor >= 1
    return dividend % divisor


TEXTS: dict[int, str] = {
    z3.Z3_OP_ADD: "({} + {})",
    z3.Z3_OP_SUB: "({} - {})",
    z3.Z3_OP_MUL: "({} * {})",
    z3.Z3_OP_IDIV: "divide({}, {})",
    z3.Z3_OP_MOD: "remainder({}, {})",
    z3.Z3_OP_EQ: "({} == {})",
    z3.Z3_OP_LE: "({} <= {})",
    z3.Z3_OP_LT: "({} < {})",
    z3.Z3_OP_GE: "({} >= {})",
    z3.Z3_OP_GT: "({} > {})",
    z3.Z3_OP_NOT: "(not {})",
    z3.Z3_OP_IMPLIES: "({1} if {0} else True)",
    z3.Z3_OP_ITE: "({1} if {0} else {2})",
}


def text(expression: z3.ExprRef) -> str:
    if z3.is_int_value(expression):
        return str(expression.as_long())
    children = [text(child) for child in expression.children()]
    kind = expression.decl().kind()
    if kind == z3.Z3_OP_UNINTERPRETED:
        assert not children
        return str(expression.decl().name())
    if kind in {z3.Z3_OP_AND, z3.Z3_OP_OR}:
        return f"({(' and ' if kind == z3.Z3_OP_AND else ' or ').join(children)})"
    assert TEXTS[kind].count("{") == len(children)
    return TEXTS[kind].format(*children)


def compiled(
    parameters: Iterable[z3.ExprRef], conditions: Iterable[z3.ExprRef]
) -> Callable[..., bool]:
    """Return the conjunction as a Python function, computed from the left."""
    body = " and ".join(["True", *(text(unfold(condition)) for condition in conditions)])
    names = ", ".join(str(parameter) for parameter in parameters)
    operators = {"divide": divide, "remainder": remainder}
    made: Callable[..., bool] = eval(f"lambda {names}: {body}", operators)
    return made


@pytest.mark.parametrize("made", LEMMAS.values(), ids=lambda made: made.name)
def test_a_lemma_is_true_of_small_integers(made: Lemma) -> None:
    given = compiled(made.variables, made.given)
    then = compiled(made.variables, made.then)
    met = 0
    for values in itertools.product(SPANS[len(made.variables)], repeat=len(made.variables)):
        if given(*values):
            met += 1
            assert then(*values), dict(zip(map(str, made.variables), values, strict=True))
    assert met > 20


def test_a_false_lemma_is_seen_to_be_false() -> None:
    u, v, m = z3.Ints("u v m")
    given, then = (compiled((u, v, m), [part]) for part in (u <= v, u * m <= v * m))
    assert given(1, 2, -1)
    assert not then(1, 2, -1)


def test_the_lemma_about_sets_is_not_about_split_groups_alone() -> None:
    given = compiled(sets_of_replicas.variables, sets_of_replicas.given)
    assert given(4, 2, 1)
    assert given(2, 4, 3)
    assert not given(4, 3, 0)


def test_an_obligation_cannot_use_a_lemma_that_only_has_the_name(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    right = LEMMAS["exact_division"]
    false = replace(right, then=(z3.BoolVal(False),))
    proof = Proof(uses=(Instance(false, right.variables),))
    monkeypatch.setitem(compositions.ELECTIONS, "split_to_split_divisible", proof)
    with pytest.raises(ValueError, match="uses exact_division, which is not stated"):
        obligations()
