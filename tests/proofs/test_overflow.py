# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import operator
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
import z3

from kvreshard.proofs.obligations import Obligation, obligations
from kvreshard.proofs.overflow import does_not_overflow, int64_formulas
from kvreshard.proofs.question import RLIMIT, refutation, satisfiability
from kvreshard.proofs.solve import answer
from kvreshard.spec.formula import FORMULAS, Hypothesis, unfold
from kvreshard.spec.int64 import INT64_BOUNDS, INT64_MAX, INT64_MIN
from kvreshard.spec.ownership import head_count
from kvreshard.spec.parameters import H, T, r

if TYPE_CHECKING:
    from collections.abc import Callable


def stated() -> dict[str, Obligation]:
    """Return the obligations by the name of the formula, as formulas and bounds are now."""
    return {item.name.partition("/")[0]: item for item in obligations() if item.kind == "overflow"}


OVERFLOW = stated()


def refuted(item: Obligation) -> dict[str, int] | None:
    """Return the parameters of a counterexample, None where there is proved to be none."""
    solver = z3.Solver()
    solver.set("rlimit", RLIMIT)
    solver.add(*(unfold(hypothesis.condition) for hypothesis in item.hypotheses))
    solver.add(z3.Not(unfold(item.goal)))
    result = solver.check()
    if result == z3.unsat:
        return None
    assert result == z3.sat
    assert item.about is not None
    model = solver.model()
    return {
        name: model.eval(parameter, model_completion=True).as_long()
        for name, parameter in zip(item.about.parameter_names, item.about.parameters, strict=True)
    }


def test_every_formula_but_those_of_the_byte_layout_has_an_obligation() -> None:
    assert FORMULAS.keys() - OVERFLOW.keys() == {
        "byte_address",
        "head_slot_at",
        "position_at",
        "token_at",
    }
    assert [made.name for made in int64_formulas()] == list(OVERFLOW)


@pytest.mark.parametrize("name", OVERFLOW)
def test_each_is_proved_with_each_seed_and_not_for_want_of_cases(name: str) -> None:
    (question,) = refutation(OVERFLOW[name])
    assert len(question.seeds) == 3
    assert answer(question).result == "unsat"
    assert answer(satisfiability(OVERFLOW[name])).result == "sat"


def test_nothing_is_assumed_but_legal_ranges_and_bounds() -> None:
    assumed = [hypothesis.name for hypothesis in OVERFLOW["first_head"].given()]
    assert assumed == [
        "total_num_kv_heads_is_positive",
        "tp_size_is_positive",
        "group_is_legal",
        "rank_is_in_range",
        "total_num_kv_heads_is_at_most_2_to_the_20",
        "tp_size_is_at_most_2_to_the_31",
    ]


OPERATORS: dict[int, Callable[..., int | bool]] = {
    z3.Z3_OP_ADD: lambda *terms: sum(terms),
    z3.Z3_OP_SUB: operator.sub,
    z3.Z3_OP_MUL: operator.mul,
    z3.Z3_OP_IDIV: operator.floordiv,
    z3.Z3_OP_MOD: operator.mod,
    z3.Z3_OP_EQ: operator.eq,
    z3.Z3_OP_LE: operator.le,
    z3.Z3_OP_LT: operator.lt,
    z3.Z3_OP_GE: operator.ge,
    z3.Z3_OP_AND: lambda *all_of: all(all_of),
    z3.Z3_OP_OR: lambda *any_of: any(any_of),
}


def overflows(name: str, values: dict[str, int]) -> bool:
    """Whether a formula computes an integer beyond 64 bits: in plain Python, operand by operand."""
    seen = list(values.values())

    def compute(expression: z3.ExprRef, values: dict[str, int]) -> int | bool:
        if z3.is_int_value(expression):
            return int(expression.as_long())
        symbol, children = expression.decl(), expression.children()
        if not children:
            return values[symbol.name()]
        if z3.is_app_of(expression, z3.Z3_OP_ITE):
            test, then, otherwise = children
            return compute(then if compute(test, values) else otherwise, values)
        operands = [compute(child, values) for child in children]
        if symbol.name() in FORMULAS:
            callee = FORMULAS[symbol.name()]
            return compute(callee.body, dict(zip(callee.parameter_names, operands, strict=True)))
        result = OPERATORS[symbol.kind()](*operands)
        seen.append(result)
        return result

    compute(FORMULAS[name].body, values)
    assert len(seen) > len(values)
    return not all(INT64_MIN <= one <= INT64_MAX for one in seen)


def doubled(bound: Hypothesis) -> Hypothesis:
    """Return the bound with twice the numbers in it."""
    numbers = {str(n): n for n in _numbers(bound.condition)}.values()
    pairs = [(number, z3.IntVal(2 * number.as_long())) for number in numbers]
    return Hypothesis(bound.name, z3.substitute(bound.condition, *pairs))


def _numbers(expression: z3.ExprRef) -> list[z3.IntNumRef]:
    if z3.is_int_value(expression):
        return [expression]
    return [number for child in expression.children() for number in _numbers(child)]


@pytest.mark.parametrize(
    ("doubling", "broken"),
    [
        (("total_num_kv_heads",), "region_lengths_match"),
        (("tp_size", "producer_tp_size", "consumer_tp_size"), "elect_paired"),
        (("producer_region_bytes",), "region_lengths_match"),
        (("consumer_region_bytes",), "region_lengths_match"),
    ],
)
def test_no_bound_can_be_doubled(
    monkeypatch: pytest.MonkeyPatch, doubling: tuple[str, ...], broken: str
) -> None:
    beyond = [z3.Not(bound.condition) for name in doubling for bound in INT64_BOUNDS[name]]
    for name in doubling:
        (bound,) = INT64_BOUNDS[name]
        monkeypatch.setitem(INT64_BOUNDS, name, (doubled(bound),))
    found = {name: refuted(item) for name, item in stated().items()}
    assert [name for name, values in found.items() if values is not None] == [broken]
    values = found[broken]
    assert values is not None
    pairs = [(z3.Int(name), z3.IntVal(value)) for name, value in values.items()]
    assert z3.is_true(z3.simplify(z3.substitute(z3.Or(*beyond), *pairs)))
    assert overflows(broken, values)


@pytest.mark.parametrize(
    ("bound", "broken"),
    [
        ("total_num_kv_heads", "first_head"),
        ("tp_size", "first_head"),
        ("producer_tp_size", "elect_paired"),
        ("consumer_tp_size", "elect_paired"),
        ("producer_region_bytes", "region_lengths_match"),
        ("consumer_region_bytes", "region_lengths_match"),
    ],
)
def test_no_bound_can_be_left_out(monkeypatch: pytest.MonkeyPatch, bound: str, broken: str) -> None:
    monkeypatch.setitem(INT64_BOUNDS, bound, ())
    if bound == "producer_tp_size":
        # It is given to a formula that bounds its tp_size, which refutes the caller even where
        # nothing wraps. Without that bound a counterexample is an integer beyond 64 bits.
        monkeypatch.setitem(INT64_BOUNDS, "tp_size", ())
    values = refuted(stated()[broken])
    assert values is not None
    assert overflows(broken, values)


@pytest.mark.parametrize(
    "change",
    [
        lambda body: body * T * T // T // T,
        lambda body: body + (r * H * T - r * H * T),
        lambda body: body + 2**63,
        lambda body: body - 2**63 - 1,
        lambda body: z3.If(r == 0, r * H * T * T, body),
        lambda body: z3.If(r > 0, body, z3.If(r * 2**60 >= 0, body, body)),
    ],
    ids=["product", "cancelled", "above", "below", "dead", "in_a_test"],
)
def test_a_formula_that_overflows_is_refuted_unless_it_never_gets_there(
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
    change: Callable[[z3.ArithRef], z3.ArithRef],
) -> None:
    right = FORMULAS["first_head"]
    monkeypatch.setitem(FORMULAS, "first_head", replace(right, body=change(right.body)))
    harmless = request.node.callspec.id in ("dead", "in_a_test")
    assert (refuted(stated()["first_head"]) is None) == harmless


def test_an_argument_beyond_the_callees_bound_is_refuted_even_where_nothing_wraps() -> None:
    made = replace(FORMULAS["head_count"], body=head_count(H * 2, T))
    solver = z3.Solver()
    legal = (hypothesis.condition for hypothesis in stated()["head_count"].hypotheses)
    solver.add(*map(unfold, legal), z3.Not(unfold(does_not_overflow(made))))
    assert solver.check() == z3.sat
    heads = solver.model().eval(H, model_completion=True).as_long()
    assert 2**19 < heads <= 2**20
