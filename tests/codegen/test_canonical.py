# SPDX-License-Identifier: Apache-2.0
"""The hash of the specification: what is in its text, and that a weaker spec has another."""

from __future__ import annotations

from dataclasses import replace

import pytest
import z3

from kvreshard.spec import canonical
from kvreshard.spec.canonical import s_expression, spec_hash, spec_text
from kvreshard.spec.formula import FORMULAS, Hypothesis
from kvreshard.spec.invariants import INVARIANTS, PLANNER, Claim, Planner
from kvreshard.spec.parameters import PARAMETERS
from kvreshard.spec.regimes import IMPOSSIBLE_REGIMES, REGIMES
from kvreshard.spec.scenarios import SCENARIOS

a, b = z3.Ints("a b")
EXTRA = Hypothesis("a_is_positive", a >= 1)
CLAIMS = [
    (name, position)
    for name, invariant in INVARIANTS.items()
    for position in range(len(invariant.claims(PLANNER)))
]


def put_claim(monkeypatch: pytest.MonkeyPatch, name: str, position: int, *claims: Claim) -> None:
    """Put claims in the place of one claim of an invariant."""
    invariant = INVARIANTS[name]

    def changed(plan: Planner) -> tuple[Claim, ...]:
        kept = invariant.claims(plan)
        return (*kept[:position], *claims, *kept[position + 1 :])

    monkeypatch.setitem(INVARIANTS, name, replace(invariant, claims=changed))


def test_the_text_names_every_part_of_the_spec() -> None:
    text = f"\n{spec_text()}"
    for name in FORMULAS:
        assert f"\nformula {name} (" in text
    for name, parameter in PARAMETERS.items():
        assert f"\nparameter {name} [{parameter.unit}]" in text
    for name, invariant in INVARIANTS.items():
        assert f"\ninvariant {name} {invariant.sentence}\nclaim " in text
    for regime in REGIMES:
        assert f"\nregime {regime.name}\n" in text
    for regime in IMPOSSIBLE_REGIMES:
        assert f"\nimpossible_regime {regime.name}\n" in text
    for scenario in SCENARIOS:
        assert f"\nscenario {scenario.name} in {scenario.regime.name} " in text


def test_a_claim_is_written_with_its_goal_and_its_hypotheses() -> None:
    _, _, rest = spec_text().partition("\nclaim not_empty ")
    lines, _, _ = rest.partition("\nclaim ")
    pair = "total_num_kv_heads producer_tp_size producer_tp_rank consumer_tp_size consumer_tp_rank"
    goal, *hypotheses = lines.split("\n")
    assert goal == f"(>= (copied_head_count {pair}) 1)"
    assert hypotheses[0] == "  total_num_kv_heads_is_positive (>= total_num_kv_heads 1)"
    assert hypotheses[-1] == f"  the_producer_sends (sends {pair} elected_ordinal)"


def test_what_exists_is_named_in_the_claim() -> None:
    assert (
        "\nclaim at_least_once (exists (producer_tp_rank) "
        "(and (>= producer_tp_rank 0) (< producer_tp_rank producer_tp_size) (and (sends "
    ) in spec_text()


def test_the_hash_does_not_change_with_formulas_made_elsewhere(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    before = spec_hash()
    monkeypatch.setitem(FORMULAS, "of_a_test", FORMULAS["owner"])
    assert spec_hash() == before


@pytest.mark.parametrize(("name", "position"), CLAIMS)
def test_a_weakened_claim_changes_the_hash(
    monkeypatch: pytest.MonkeyPatch, name: str, position: int
) -> None:
    claim = INVARIANTS[name].claims(PLANNER)[position]
    found = {spec_hash()}
    weakened: list[tuple[Claim, ...]] = [
        (),
        (replace(claim, goal=z3.Or(claim.goal, a == b)),),
        (replace(claim, goal=z3.BoolVal(True)),),
        (replace(claim, hypotheses=(*claim.hypotheses, EXTRA)),),
        (replace(claim, hypotheses=(*claim.hypotheses, replace(EXTRA, condition=a >= 2))),),
    ]
    for claims in weakened:
        with monkeypatch.context() as patch:
            put_claim(patch, name, position, *claims)
            found.add(spec_hash())
    assert len(found) == 1 + len(weakened)


def test_a_claim_put_in_its_own_place_does_not_change_the_hash(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    before = spec_hash()
    for name, position in CLAIMS:
        put_claim(monkeypatch, name, position, INVARIANTS[name].claims(PLANNER)[position])
    assert spec_hash() == before


@pytest.mark.parametrize("regimes", ["REGIMES", "IMPOSSIBLE_REGIMES"])
def test_another_regime_changes_the_hash(monkeypatch: pytest.MonkeyPatch, regimes: str) -> None:
    first, *others = getattr(canonical, regimes)
    found = {spec_hash()}
    for changed in ([replace(first, hypotheses=(*first.hypotheses, EXTRA))], []):
        monkeypatch.setattr(canonical, regimes, (*changed, *others))
        found.add(spec_hash())
    assert len(found) == 3


def test_another_scenario_changes_the_hash(monkeypatch: pytest.MonkeyPatch) -> None:
    first, *others = SCENARIOS
    found = {spec_hash()}
    for changed in (
        [replace(first, condition=z3.BoolVal(True))],
        [replace(first, regime=REGIMES[1])],
        [],
    ):
        monkeypatch.setattr(canonical, "SCENARIOS", (*changed, *others))
        found.add(spec_hash())
    monkeypatch.setattr(canonical, "SCENARIO_HYPOTHESES", ())
    found.add(spec_hash())
    assert len(found) == 5


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        (FORMULAS["head_count"].body, "(max (div total_num_kv_heads tp_size) 1)"),
        (z3.If(a >= b, b, a), "(if (>= a b) b a)"),
        (z3.Exists([a], z3.And(a < b, a >= 0)), "(exists (a) (and (< a b) (>= a 0)))"),
        (z3.And(z3.Exists([a], a * a == b), b > 1), "(and (exists (a) (= (* a a) b)) (> b 1))"),
    ],
)
def test_expressions_are_written_in_prefix_form(expression: z3.ExprRef, text: str) -> None:
    assert s_expression(expression) == text


@pytest.mark.parametrize(
    "expression",
    [
        z3.ForAll([a], a >= b),
        z3.Exists([a, b], a >= b),
        z3.Exists([z3.Real("x")], z3.Real("x") > 0),
        z3.Lambda([a], a + b),
    ],
)
def test_other_quantifiers_are_refused(expression: z3.ExprRef) -> None:
    with pytest.raises(ValueError, match="not the existence of one integer"):
        s_expression(expression)
