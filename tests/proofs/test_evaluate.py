# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from functools import cache
from typing import Any

import pytest
import z3
from hypothesis import given, settings
from hypothesis import strategies as st

from kvreshard.proofs.evaluate import executable, executable_truth
from kvreshard.spec.canonical import spec_formulas
from kvreshard.spec.formula import FORMULAS, Formula, unfold
from kvreshard.spec.ownership import first_head, head_count, owner, replica_ordinal
from kvreshard.spec.parameters import PARAMETERS
from kvreshard.spec.planner import region_lengths_match, sends

MADE = spec_formulas()


@st.composite
def legal_values(draw: st.DrawFn) -> dict[str, int]:
    """Draw a value for every parameter of the specification, all in their legal ranges."""
    H = draw(st.integers(1, 64))
    multiples = st.integers(1, 12).map(lambda factor: H * factor)
    divisors = st.sampled_from([size for size in range(1, H + 1) if H % size == 0])
    T, P, D = (draw(st.one_of(divisors, multiples)) for _ in range(3))
    heads_p, heads_d = max(H // P, 1), max(H // D, 1)
    per_head = draw(st.integers(0, 9))
    off = st.sampled_from([-1, 0, 0, 0, 1])
    N, C = draw(st.integers(1, 9)), draw(st.integers(1, 9))
    return {
        "total_num_kv_heads": H,
        "tp_size": T,
        "tp_rank": draw(st.integers(0, T - 1)),
        "producer_tp_size": P,
        "producer_tp_rank": draw(st.integers(0, P - 1)),
        "consumer_tp_size": D,
        "consumer_tp_rank": draw(st.integers(0, D - 1)),
        "elected_ordinal": draw(st.integers(0, max(P // H, 1) - 1)),
        "head": draw(st.integers(0, H - 1)),
        "ordinal": draw(st.integers(0, max(T // H, 1) - 1)),
        "bytes_per_head": N * C,
        "block_size": N,
        "token_bytes": C,
        "byte_offset": draw(st.integers(0, 500)),
        "producer_region_bytes": heads_p * per_head + draw(off),
        "consumer_region_bytes": heads_d * per_head + draw(off),
        "head_slot": draw(st.integers(0, 9)),
        "token": draw(st.integers(0, N - 1)),
        "position": draw(st.integers(0, C - 1)),
    }


@cache
def unfolded(made: Formula) -> z3.ExprRef:
    return unfold(made.body)


def value_by_z3(made: Formula, arguments: list[int]) -> int | bool:
    pairs = [
        (parameter, z3.IntVal(argument))
        for parameter, argument in zip(made.parameters, arguments, strict=True)
    ]
    value = z3.simplify(z3.substitute(unfolded(made), *pairs))
    if z3.is_bool(value):
        assert z3.is_true(value) or z3.is_false(value)
        return bool(z3.is_true(value))
    return int(value.as_long())


@pytest.mark.parametrize("name", MADE)
@settings(max_examples=60, deadline=None)
@given(values=legal_values())
def test_python_and_z3_compute_the_same(name: str, values: dict[str, int]) -> None:
    arguments = [values[parameter] for parameter in MADE[name].parameter_names]
    computed = executable(MADE[name])(*arguments)
    expected = value_by_z3(MADE[name], arguments)
    assert computed == expected
    assert type(computed) is type(expected)


@settings(max_examples=30, deadline=None)
@given(values=legal_values())
def test_the_values_drawn_are_legal(values: dict[str, int]) -> None:
    pairs = [(z3.Int(name), z3.IntVal(value)) for name, value in values.items()]
    for parameter in PARAMETERS.values():
        for hypothesis in parameter.hypotheses:
            condition = z3.substitute(unfold(hypothesis.condition), *pairs)
            assert z3.is_true(z3.simplify(condition)), (hypothesis.name, values)


@pytest.mark.parametrize(
    ("made", "arguments"),
    [
        (first_head, (4, 0, 0)),
        (replica_ordinal, (0, 4, 1)),
        (owner, (4, 0, 0, 0)),
        (sends, (4, 2, 0, 0, 0, 0)),
        (region_lengths_match, (4, 0, 1, 8, 8)),
    ],
    ids=lambda value: value.name if isinstance(value, Formula) else None,
)
def test_a_divisor_of_0_raises_as_in_python(made: Formula, arguments: tuple[int, ...]) -> None:
    with pytest.raises(ZeroDivisionError):
        executable(made)(*arguments)


def test_a_conditional_computes_the_chosen_branch_alone() -> None:
    assert executable(FORMULAS["is_paired"])(4, 3, 2, 1) is True  # 2 // 4 is 0, and not divided by


def test_a_negative_dividend_floors() -> None:
    assert executable(first_head)(4, 3, -1) == -4 // 3 == -2


@pytest.mark.parametrize("arguments", [(), (4, 2), (4, 2, 1, 0)])
def test_the_number_of_arguments_is_checked(arguments: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="zip"):
        executable(first_head)(*arguments)


def test_what_has_no_meaning_in_python_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    a = z3.Int("a")
    body: Any = z3.ToInt(z3.ToReal(a) / 2)
    made = Formula("halved", (a,), body, z3.Function("halved", z3.IntSort(), z3.IntSort()), "")
    monkeypatch.setitem(FORMULAS, "halved", made)
    with pytest.raises(ValueError, match="has no meaning in Python here"):
        executable(made)


A, B = z3.Ints("a b")


@pytest.mark.parametrize(
    ("statement", "holds_for", "fails_for"),
    [
        (z3.Implies(A > 1, B > 1), {"a": 1, "b": 0}, {"a": 2, "b": 1}),
        (A != B, {"a": 1, "b": 0}, {"a": 2, "b": 2}),
        (z3.Exists([A], z3.And(0 <= A, A < B, A * A == B)), {"b": 4}, {"b": 5}),
        (z3.Not(z3.Exists([A], A * 2 == B)), {"b": 3}, {"b": 8}),
        (head_count(A, B) == 2, {"a": 4, "b": 2}, {"a": 4, "b": 8}),
    ],
    ids=str,
)
def test_a_statement_is_run_for_values_of_its_constants(
    statement: z3.BoolRef, holds_for: dict[str, int], fails_for: dict[str, int]
) -> None:
    run = executable_truth(statement, range(5))
    assert run(holds_for) is True
    assert run(fails_for) is False


def test_an_integer_exists_only_where_it_is_looked_for() -> None:
    exists = z3.Exists([A], A * A == B)
    assert executable_truth(exists, range(3))({"b": 4}) is True
    assert executable_truth(exists, range(2))({"b": 4}) is False


def test_a_bound_variable_is_not_the_constant_of_its_name() -> None:
    statement = z3.And(A == 7, z3.Exists([A], A == B))
    assert executable_truth(statement, range(5))({"a": 7, "b": 3}) is True


@pytest.mark.parametrize(
    "statement",
    [z3.And(A == 1, B // A == 1), z3.Or(A == 0, B % A == 1), z3.Implies(A > 0, B // A > 0)],
)
def test_every_operand_of_a_connective_is_computed(statement: z3.BoolRef) -> None:
    with pytest.raises(ZeroDivisionError):
        executable_truth(statement, range(0))({"a": 0, "b": 1})


def test_a_quantifier_over_all_integers_is_refused() -> None:
    with pytest.raises(ValueError, match="not the existence of one integer"):
        executable_truth(z3.ForAll([A], A >= 0), range(5))
