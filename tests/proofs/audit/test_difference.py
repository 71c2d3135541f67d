# SPDX-License-Identifier: Apache-2.0
"""Where two planners differ, which of them is right there, and what proves that they do not."""

from __future__ import annotations

import ast
from functools import cache
from itertools import groupby
from typing import TYPE_CHECKING, Any

import pytest
from asked import asking_of, heads, in_bytes
from hypothesis import given, settings
from hypothesis import strategies as st
from source_mutants import DIVISIBLE, LOWEST, PAIRED, RIGHT_SOURCES, SPREAD, mutants

from kvreshard.proofs.audit import same_copies
from kvreshard.proofs.audit.comparing import compare
from kvreshard.proofs.audit.contract import ContractError
from kvreshard.proofs.audit.difference import DiffRequest, diff
from kvreshard.proofs.audit.difference_model import DiffReport, Equality, WhichIsRight
from kvreshard.proofs.audit.model import Method
from kvreshard.proofs.audit.same_copies import (
    CommonDomain,
    prove_guards_same_for_all_sizes,
    prove_same_for_all_sizes,
    prove_same_in_range,
)
from kvreshard.proofs.audit.sweep import Lifted
from kvreshard.proofs.broken.names import COVERED
from kvreshard.proofs.lifting import expressions

if TYPE_CHECKING:
    from pathlib import Path

EQUAL = "H == P == D"
ONE = heads("    return [(0, 0, 1)] if p == d else []\n")
NOTHING = heads("    return []\n")
RAISING = heads("    raise ValueError(p)\n")
HEADWISE = heads("    return [(h, h, 1) for h in range(H // P)] if p == d else []\n")
# What both hold, written without a product of a rank and H: (r // replicas) * count.
CLOSED = heads("""\
    mine, theirs = max(H // P, 1), max(H // D, 1)
    begin = p // max(P // H, 1) * mine
    wanted = d // max(D // H, 1) * theirs
    low = wanted if wanted > begin else begin
    high = begin + mine if begin + mine < wanted + theirs else wanted + theirs
    if low < high and p % max(P // H, 1) == 0:
        return [(low - begin, low - wanted, high - low)]
    return []
""")


def compared(folder: Path, old: str, new: str, **options: Any) -> DiffReport:
    for name, source in (("old", old), ("new", new)):
        (folder / f"{name}.py").write_text(source, encoding="utf-8")
    asked: dict[str, Any] = {
        "old": f"{folder}/old.py::plan",
        "new": f"{folder}/new.py::plan",
        "contract": "head-list",
        "command": "kvreshard diff ...",
        "swept_to": 4,
        "range_to": 3,
        **options,
    }
    return diff(DiffRequest(**asked))


def kinds(report: DiffReport) -> dict[WhichIsRight, int]:
    assert report.sweep is not None
    made = {one.right: one.sizes for one in report.sweep.counted}
    assert sum(made.values()) == report.sweep.differing
    return {right: many for right, many in made.items() if many}


# Equal


def test_another_formula_for_the_same_copies_is_proved_equal_for_all_sizes(tmp_path: Path) -> None:
    report = compared(tmp_path, LOWEST, CLOSED, where=DIVISIBLE)
    assert (report.verdict, report.method) == (Equality.EQUAL, Method.ALL_SIZES)
    assert report.sentence.endswith("the same copies: proved for all sizes of the domain.")
    assert (report.differences, report.stopped_by, report.guards) == ((), (), None)
    assert report.sweep is not None
    assert report.sweep.differing == 0


TWO = "    return [(0, 0, 1), (p, d, P)] if p == d else []\n"


@pytest.mark.parametrize(
    "other",
    [
        "    return [(p, d, P), (0, 0, 1)] if p == d else []\n",
        "    return [(d, p, H), (0 * P, p - d, P // D)] if d == p else []\n",
    ],
)
def test_the_order_of_copies_is_no_difference(tmp_path: Path, other: str) -> None:
    report = compared(tmp_path, heads(TWO), heads(other), where=EQUAL)
    assert (report.verdict, report.method) == (Equality.EQUAL, Method.ALL_SIZES)


def test_copies_are_matched_whatever_they_look_like() -> None:
    # Only the condition of the way tells that (p, d) and (d, p) are the same.
    old, new = asking_of(heads(TWO)), asking_of(heads(TWO.replace("(p, d, P)", "(d, p, P)")))
    domain = CommonDomain.of_both(old, new, EQUAL)
    assert not prove_same_for_all_sizes(old, new, domain).open


def test_planners_that_raise_together_make_the_same_copies(tmp_path: Path) -> None:
    other = heads("    return [(0, 0, 1 // (P - H))]\n")
    report = compared(tmp_path, RAISING, other, where=EQUAL)
    assert (report.verdict, report.method) == (Equality.EQUAL, Method.ALL_SIZES)


def test_two_contracts_are_compared_in_bytes(tmp_path: Path) -> None:
    in_bytes_of_it = in_bytes("    return [(0, 0, bytes_per_head)] if p == d else []\n")
    options = {"contract": "byte-list", "old_contract": "head-list", "where": EQUAL}
    report = compared(tmp_path, ONE, in_bytes_of_it, **options)
    assert (report.verdict, report.method) == (Equality.EQUAL, Method.ALL_SIZES)
    assert (report.old_contract.name, report.contract.name) == ("head-list", "byte-list")
    off = in_bytes_of_it.replace("bytes_per_head)]", "bytes_per_head - 1)]")
    assert compared(tmp_path, ONE, off, **options).verdict is Equality.DIFFERENT


def test_sizes_beyond_the_proof_for_all_are_proved_in_a_range(tmp_path: Path) -> None:
    where = "H == 6 and P == 3 and D == 2"
    report = compared(tmp_path, LOWEST, CLOSED, where=where, swept_to=6, range_to=6)
    assert (report.verdict, report.method) == (Equality.EQUAL, Method.RANGE)
    assert "Not proved for all sizes: " in report.detail
    beyond = compared(tmp_path, LOWEST, CLOSED, where=where, swept_to=6, range_to=5)
    assert (beyond.verdict, beyond.method) == (Equality.NOT_DECIDED, None)
    assert "there is no proof" in beyond.detail


LOOPING = heads("""\
    copies = []
    while p == d and not copies:
        copies.append((0, 0, 1))
    return copies
""")


def test_what_cannot_be_lifted_is_run_if_that_is_allowed(tmp_path: Path) -> None:
    report = compared(tmp_path, ONE, LOOPING, where=EQUAL)
    assert (report.verdict, report.method) == (Equality.NOT_DECIDED, None)
    (place,) = report.stopped_by
    assert (place.file, place.line) == (f"{tmp_path}/new.py", 5)
    assert place.what == "a while statement, for the new planner"
    assert "new.py:5 has a while statement" in report.sentence
    report = compared(tmp_path, ONE, LOOPING, where=EQUAL, execute=True)
    assert (report.verdict, report.method) == (Equality.EQUAL, Method.FINITE)
    assert report.detail == "4 sizes up to 4, with 6 bytes per head."
    wrong = compared(tmp_path, ONE, LOOPING.replace("(0, 0, 1)", "(0, 1, 1)"), execute=True)
    assert wrong.verdict is Equality.DIFFERENT
    assert wrong.sweep is not None
    assert wrong.sweep.executed


@pytest.mark.parametrize(
    ("required", "verdict"),
    [
        (Method.ALL_SIZES, Equality.NOT_DECIDED),
        (Method.RANGE, Equality.NOT_DECIDED),
        (Method.FINITE, Equality.EQUAL),
    ],
)
def test_less_than_is_demanded_is_not_decided(
    tmp_path: Path, required: Method, verdict: Equality
) -> None:
    report = compared(tmp_path, ONE, LOOPING, where=EQUAL, execute=True, required=required)
    assert report.verdict is verdict
    assert ("which is demanded, is not decided" in report.sentence) == (
        verdict is Equality.NOT_DECIDED
    )


# Different


@pytest.mark.parametrize(
    ("old", "new", "right"),
    [
        (NOTHING, ONE, WhichIsRight.NEW),
        (ONE, NOTHING, WhichIsRight.OLD),
        (RAISING, ONE, WhichIsRight.NEW),
        (ONE, RAISING, WhichIsRight.OLD),
        (NOTHING, RAISING, WhichIsRight.NEITHER),
        (NOTHING, ONE.replace("(0, 0, 1)", "(0, 0, 0)"), WhichIsRight.NEITHER),
    ],
)
def test_the_judge_says_which_of_the_two_is_right(
    tmp_path: Path, old: str, new: str, right: WhichIsRight
) -> None:
    report = compared(tmp_path, old, new, where=EQUAL)
    assert (report.verdict, report.method) == (Equality.DIFFERENT, None)
    assert kinds(report) == {right: 4}
    first = report.differences[0]
    assert (first.sizes, first.right, first.choice) == ((1, 1, 1), right, "")
    old_wrong = right in (WhichIsRight.NEW, WhichIsRight.NEITHER)
    new_wrong = right in (WhichIsRight.OLD, WhichIsRight.NEITHER)
    assert bool(first.old.broken) == old_wrong == bool(first.old.seen)
    assert bool(first.new.broken) == new_wrong == bool(first.new.seen)
    (pair,) = first.pairs
    assert pair.differs


def test_the_smallest_input_is_told_with_both_plans_side_by_side(tmp_path: Path) -> None:
    wrong = LOWEST.replace("start - theirs", "(start - theirs) % 2")
    report = compared(tmp_path, wrong, LOWEST, where=DIVISIBLE, swept_to=6)
    sweep, first = report.sweep, report.differences[0]
    assert sweep is not None
    assert first.sizes == (3, 3, 1)
    assert first.bytes_per_head == 65_536
    third = first.pairs[2]
    assert (third.producer_tp_rank, third.consumer_tp_rank) == (2, 0)
    assert (third.old, third.new) == (((0, 0, 65_536),), ((0, 131_072, 65_536),))
    assert [pair.differs for pair in first.pairs] == [False, False, True]
    assert COVERED in first.old.broken
    assert report.sentence == (
        f"The planners differ at {sweep.differing} of {sweep.tried} sizes tried, first at H=3, "
        "P=3, D=1: there the old one is wrong and the new one right."
    )
    assert "H = P = D" not in report.detail
    assert "proved equal for all sizes but those with " in report.detail


def test_both_right_by_another_replica_or_by_another_cut(tmp_path: Path) -> None:
    report = compared(tmp_path, LOWEST, SPREAD)
    assert report.verdict is Equality.DIFFERENT
    assert set(kinds(report)) == {WhichIsRight.BOTH}
    first = report.differences[0]
    assert (first.sizes, first.choice) == ((1, 2, 2), "by another choice of replica")
    whole = heads("    return [(0, 0, H // P)] if p == d else []\n")
    cut = compared(tmp_path, whole, HEADWISE, where="P == D and H % P == 0")
    assert cut.differences[0].choice == "by cutting the same bytes into other copies"
    assert cut.differences[0].sizes == (2, 1, 1)


def test_the_first_of_each_kind_is_told(tmp_path: Path) -> None:
    old = heads("    return [(0, 0, 1)] if p == d and H != 1 else []\n")
    new = heads("    return [(0, 0, 1)] if p == d and H != 3 else []\n")
    report = compared(tmp_path, old, new, where=EQUAL)
    assert [(one.sizes, one.right) for one in report.differences] == [
        ((1, 1, 1), WhichIsRight.NEW),
        ((3, 3, 3), WhichIsRight.OLD),
    ]


def test_a_difference_beyond_the_sweep_is_not_proved_away_and_told_where_it_is_asked_for(
    tmp_path: Path,
) -> None:
    late = ONE.replace("p == d", "p == d and H < 9")
    near = compared(tmp_path, ONE, late, where=EQUAL)
    assert (near.verdict, near.method) == (Equality.EQUAL, Method.RANGE)
    assert "at all sizes of the domain up to 3: proved in a range" in near.sentence
    further = compared(tmp_path, ONE, late, where=EQUAL, range_to=9)
    assert further.verdict is Equality.NOT_DECIDED
    report = compared(tmp_path, ONE, late, where=EQUAL, at=(9, 9, 9))
    assert report.verdict is Equality.DIFFERENT
    assert "differ at H=9, P=9, D=9: there the old one is right" in report.sentence
    before = compared(tmp_path, ONE, late, where=EQUAL, at=(8, 8, 8))
    assert before.verdict is Equality.EQUAL
    assert "At H=8, P=8, D=8, with 65,536 and with 6 bytes per head, they make" in before.detail


def test_a_difference_at_some_number_of_bytes_is_not_proved_away(tmp_path: Path) -> None:
    old = in_bytes("    return [(0, 0, bytes_per_head)] if p == d else []\n")
    new = old.replace("p == d", "p == d and bytes_per_head != 4096")
    options: dict[str, Any] = {"contract": "byte-list", "where": EQUAL}
    assert compared(tmp_path, old, new, **options).verdict is Equality.NOT_DECIDED
    report = compared(tmp_path, old, new, **options, at=(2, 2, 2), bytes_per_head=4096)
    assert report.verdict is Equality.DIFFERENT
    # And one that shows at the bytes of the sweep alone is told with those.
    report = compared(tmp_path, old, new.replace("4096", "6"), **options)
    assert (report.verdict, report.differences[0].bytes_per_head) == (Equality.DIFFERENT, 6)


def test_an_input_outside_the_domain_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="P=3 is not legal for H=4"):
        compared(tmp_path, ONE, ONE, at=(4, 3, 1))
    with pytest.raises(ValueError, match="outside the domain"):
        compared(tmp_path, ONE, ONE, where=EQUAL, at=(4, 2, 1))
    with pytest.raises(ContractError, match="no sizes up to 4"):
        compared(tmp_path, ONE, ONE, where="H == 5")


# Targets that are run


@pytest.fixture
def misread(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lift every floor division of a new planner as its dividend."""
    real = expressions.apply

    def apply(run: Any, scope: Any, op: ast.operator, left: Any, right: Any, node: ast.AST) -> Any:
        if isinstance(op, ast.FloorDiv) and scope.file.endswith("new.py"):
            return left
        return real(run, scope, op, left, right, node)

    monkeypatch.setattr(expressions, "apply", apply)


@pytest.mark.usefixtures("misread")
def test_a_target_that_does_otherwise_is_not_decided(tmp_path: Path) -> None:
    misread = ONE.replace("p == d", "p == d // 2")
    assert compared(tmp_path, ONE, misread, where=EQUAL).verdict is Equality.EQUAL
    report = compared(tmp_path, ONE, misread, where=EQUAL, execute=True)
    assert report.verdict is Equality.NOT_DECIDED
    assert "is not seen to do what was lifted" in report.sentence
    assert not report.differences


@pytest.mark.usefixtures("misread")
def test_a_told_input_that_the_target_does_not_show_is_not_decided(tmp_path: Path) -> None:
    # The two differ beyond what is tried.
    misread = ONE.replace("p == d", "p == d + max(H - 8, 0) // 99")
    options: dict[str, Any] = {"where": EQUAL, "at": (9, 9, 9)}
    assert compared(tmp_path, ONE, misread, **options).verdict is Equality.DIFFERENT
    report = compared(tmp_path, ONE, misread, **options, execute=True)
    assert report.verdict is Equality.NOT_DECIDED


def test_a_target_that_stops_decides_nothing(tmp_path: Path) -> None:
    stops = heads("    while True:\n        pass\n")
    limits = DiffRequest("", "", "", "").limits
    quick = type(limits)(seconds_per_call=0.5, seconds=2, memory_bytes=limits.memory_bytes)
    report = compared(tmp_path, ONE, stops, where=EQUAL, execute=True, limits=quick)
    assert report.verdict is Equality.NOT_DECIDED
    assert any("execution of the new planner stopped" in one.what for one in report.stopped_by)


# Guards

GUARDED = '''\
"""A planner with a guard."""

UNIT = "heads"
DOMAIN = "legal groups"
GUARD = "check"


def plan(
    planner,
    total_num_kv_heads,
    producer_tp_size,
    producer_tp_rank,
    consumer_tp_size,
    consumer_tp_rank,
):
    """The copies as the planner lists them."""
    return planner(
        total_num_kv_heads, producer_tp_size, producer_tp_rank, consumer_tp_size, consumer_tp_rank
    )


def refused(guard, total_num_kv_heads, producer_tp_size):
    """Whether the guard says so."""
    return guard(total_num_kv_heads, producer_tp_size)
'''


def check(condition: str) -> str:
    return f"\n\ndef check(H, P):\n    return {condition}\n"


def guarded(folder: Path, old: str, new: str, **options: Any) -> DiffReport:
    (folder / "contract.py").write_text(GUARDED, encoding="utf-8")
    contract = str(folder / "contract.py")
    return compared(folder, old, new, contract=contract, where=EQUAL, **options)


def test_a_difference_of_the_guards_alone_is_told_as_such(tmp_path: Path) -> None:
    report = guarded(tmp_path, ONE + check("H > 2"), ONE + check("P > 3"))
    assert (report.verdict, report.method) == (Equality.EQUAL, Method.ALL_SIZES)
    guards = report.guards
    assert guards is not None
    assert (guards.verdict, guards.differing, guards.first) == (Equality.DIFFERENT, 1, (3, 3, 3))


def test_guards_are_proved_to_refuse_the_same(tmp_path: Path) -> None:
    report = guarded(tmp_path, ONE + check("H > 2"), ONE + check("not P <= 2"))
    assert report.guards is not None
    assert (report.guards.verdict, report.guards.method) == (Equality.EQUAL, Method.ALL_SIZES)
    beyond = guarded(tmp_path, ONE + check("H > 7"), ONE + check("P > 8"))
    assert beyond.guards is not None
    assert (beyond.guards.verdict, beyond.guards.method) == (Equality.NOT_DECIDED, None)
    alone = guarded(tmp_path, ONE + check("H < 1"), ONE)
    assert alone.guards is not None
    assert (alone.guards.verdict, alone.guards.detail) == (
        Equality.EQUAL,
        "Only the old target has a guard.",
    )


def test_refused_inputs_are_counted_by_kind(tmp_path: Path) -> None:
    report = guarded(tmp_path, NOTHING + check("H < 3"), ONE + check("H == 1"))
    assert report.sweep is not None
    new = next(one for one in report.sweep.counted if one.right is WhichIsRight.NEW)
    assert (new.sizes, new.old_refused, new.new_refused) == (4, 2, 1)
    # The smallest, and the smallest wrong one that its guard lets pass.
    assert [(one.sizes, one.old.refused) for one in report.differences] == [
        ((1, 1, 1), True),
        ((3, 3, 3), False),
    ]


# No two planners that differ are called equal

TRIED_TO = 6
MOST = 12


def chain(sizes: tuple[int, int, int]) -> str:
    """Return the order in which sizes stand, as a condition."""
    named = sorted(zip(sizes, "HPD", strict=True))
    tiers = [[name for _, name in tier] for _, tier in groupby(named, lambda one: one[0])]
    return " < ".join(" == ".join(tier) for tier in tiers) if len(tiers) > 1 else EQUAL


@cache
def each_mutant(name: str) -> tuple[str, ...]:
    source, _, _ = RIGHT_SOURCES[name]
    return tuple(sorted({mutant for _, mutant in mutants(source)} | {source}))


def refuted(name: str, old: str, new: str) -> bool:
    """Check that no proof calls two planners equal that trying them tells apart; whether it does.

    Where trying them does not, the proofs may do as they like: sizes beyond may differ.
    """
    _, contract, _ = RIGHT_SOURCES[name]
    one, other = (asking_of(source, contract) for source in (old, new))
    domain = CommonDomain.of_both(one, other, DIVISIBLE)
    seen = compare(Lifted(one, domain.has), Lifted(other, domain.has), TRIED_TO)
    if not seen.first:
        return False
    for sizes in seen.first.values():
        where = f"({DIVISIBLE}) and {chain(sizes)}"
        attempt = prove_same_for_all_sizes(one, other, CommonDomain.of_both(one, other, where))
        assert attempt.open, (old, new, sizes)
        where = "H == {} and P == {} and D == {}".format(*sizes)
        attempt = prove_same_in_range(one, other, CommonDomain.of_both(one, other, where), TRIED_TO)
        assert attempt.open, (old, new, sizes)
    return True


@pytest.mark.parametrize("name", ["lowest", "paired"])
def test_no_mutant_is_called_equal_to_what_it_was_made_of(name: str) -> None:
    source, _, _ = RIGHT_SOURCES[name]
    each = each_mutant(name)
    some = each[1 :: len(each) // MOST]
    assert sum(refuted(name, source, mutant) for mutant in some) >= MOST * 2 // 3


@given(st.data())
@settings(deadline=None, max_examples=8)
def test_no_two_mutants_that_differ_are_called_equal(data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(["lowest", "paired", "spread"]))
    old, new = data.draw(st.tuples(*[st.sampled_from(each_mutant(name))] * 2))
    assert refuted(name, old, old) is False
    refuted(name, old, new)


def test_a_planner_is_proved_equal_to_itself() -> None:
    one = asking_of(PAIRED, "byte-list")
    domain = CommonDomain.of_both(one, one, DIVISIBLE)
    attempt = prove_same_for_all_sizes(one, one, domain)
    assert not attempt.open
    assert attempt.goals > 13


@pytest.mark.parametrize(
    ("where", "what"),
    [("H < 0", "the domain has no sizes"), ("H % 2 == 0", "the domain is not shown")],
)
def test_a_domain_without_sizes_or_order_proves_nothing(where: str, what: str) -> None:
    one = asking_of(ONE)
    domain = CommonDomain.of_both(one, one, where)
    for prove in (prove_same_for_all_sizes, prove_guards_same_for_all_sizes):
        (opened,) = prove(one, one, domain).open.values()
        assert opened[0][1].startswith(what)
    if where == "H < 0":
        assert prove_same_in_range(one, one, domain, 3).open


def test_a_claim_that_is_not_proved_stops_the_proof(monkeypatch: pytest.MonkeyPatch) -> None:
    class Unproved:
        name, holds = "nothing", False

    monkeypatch.setattr(same_copies, "rules_of_quotients", lambda: (Unproved(),))
    one = asking_of(ONE)
    attempt = prove_same_for_all_sizes(one, one, CommonDomain.of_both(one, one, EQUAL))
    assert attempt.open == {same_copies.COPIES: [("everywhere", "not proved: nothing")]}


def test_the_domain_is_that_of_both_contracts(tmp_path: Path) -> None:
    narrow = tmp_path / "narrow.py"
    text = GUARDED.replace('GUARD = "check"\n', "").split("\n\ndef refused")[0]
    text += '\n\ndef in_domain(producer_tp_size):\n    """One producer."""\n'
    text += "    return producer_tp_size == 1\n"
    narrow.write_text(text.replace("legal groups", "one producer"), encoding="utf-8")
    for contracts in (("head-list", str(narrow)), (str(narrow), "head-list")):
        old, new = (asking_of(ONE, contract) for contract in contracts)
        domain = CommonDomain.of_both(old, new, "D < 3")
        assert [sizes for sizes in ((2, 1, 2), (2, 2, 2), (3, 1, 3)) if domain.has(sizes)] == [
            (2, 1, 2)
        ]
        assert "one producer" in domain.in_words
        assert "where D < 3" in domain.in_words


def test_pairs_that_meet_under_one_contract_alone_count(tmp_path: Path) -> None:
    paired = tmp_path / "paired.py"
    text = GUARDED.replace('GUARD = "check"\n', "").split("\n\ndef refused")[0]
    text += '\n\ndef pairs(producer_tp_rank, consumer_tp_rank):\n    """Equal ranks."""\n'
    paired.write_text(f"{text}    return producer_tp_rank == consumer_tp_rank\n", encoding="utf-8")
    always = heads("    return [(0, 0, 1)]\n")
    met = asking_of(always, paired)
    for source, same in ((ONE, True), (always, False)):
        other = asking_of(source)
        for old, new in ((met, other), (other, met)):
            domain = CommonDomain.of_both(old, new, EQUAL)
            assert (not prove_same_for_all_sizes(old, new, domain).open) is same
            assert (not prove_same_in_range(old, new, domain, 3).open) is same


@pytest.mark.parametrize(
    ("old", "new", "same"),
    [
        ("(0, 0, 1), (p, d, P)", "(0, 0, 1), (p, d, P + 1)", False),
        ("(0, 0, 1), (p, d, P)", "(0, 0, 1), (0, 0, 1)", False),
        # Each is in the other list, but not as often.
        ("(0, 0, 1), (0, 0, 1), (p, p, P)", "(0, 0, 1), (p, p, P), (p, p, P)", False),
        ("(0, 0, 1), (0, 0, 1), (p, p, P)", "(d, d, D), (0, 0, 1), (0, 0, 1)", True),
        # Only the condition of the way tells which is which.
        ("(p, p, 1), (p, p, 2)", "(d, d, 2), (d, d, 1)", True),
        ("(p, p, 1), (p, p, 2)", "(d, d, 2), (d, d, 3)", False),
        # More than are tried in every order, turned round.
        (
            "(p, p, 1), (p, p, 2), (p, p, 3), (p, p, 4), (p, p, 5)",
            "(p, p, 5), (p, p, 4), (p, p, 3), (p, p, 2), (p, p, 1)",
            True,
        ),
        (
            "(p, p, 1), (p, p, 2), (p, p, 3), (p, p, 4), (p, p, 5)",
            "(p, p, 5), (p, p, 4), (p, p, 3), (p, p, 2), (p, p, 2)",
            False,
        ),
    ],
)
def test_lists_are_the_same_if_each_copy_has_one_of_its_own(old: str, new: str, same: bool) -> None:
    one, other = (
        asking_of(heads(f"    return [{copies}] if p == d else []\n")) for copies in (old, new)
    )
    domain = CommonDomain.of_both(one, other, EQUAL)
    assert (not prove_same_for_all_sizes(one, other, domain).open) is same
