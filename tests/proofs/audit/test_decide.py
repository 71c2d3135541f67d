# SPDX-License-Identifier: Apache-2.0
"""What is decided, by which method, and what is said where nothing is."""

from __future__ import annotations

import ast
from itertools import product
from typing import TYPE_CHECKING, Any

import pytest
from asked import heads, in_bytes
from source_mutants import LOWEST

from kvreshard.proofs.audit import decide
from kvreshard.proofs.audit.all_sizes import Attempt
from kvreshard.proofs.audit.contract import ContractError
from kvreshard.proofs.audit.decide import Request, audit
from kvreshard.proofs.audit.judging import IN_SCOPE
from kvreshard.proofs.audit.model import InvariantResult, Method, Verdict
from kvreshard.proofs.broken.names import CONTENT, COVERED, READ
from kvreshard.proofs.lifting import expressions

if TYPE_CHECKING:
    from pathlib import Path

    from kvreshard.proofs.audit.model import AuditReport

EQUAL = "H == P == D"
ONE = heads("    return [(0, 0, 1)] if p == d else []\n")
HEADWISE = heads("    return [(h, h, 1) for h in range(H // P)] if p == d else []\n")


def audited(folder: Path, source: str, where: str = EQUAL, **options: Any) -> AuditReport:
    (folder / "planner.py").write_text(source, encoding="utf-8")
    asked: dict[str, Any] = {
        "target": f"{folder}/planner.py::plan",
        "contract": "head-list",
        "command": "kvreshard audit ...",
        "where": where,
        "swept_to": 4,
        "range_to": 3,
        **options,
    }
    return audit(Request(**asked))


def methods(report: AuditReport) -> set[Method | None]:
    return {one.method for one in report.invariants}


# Which method decides


def test_a_proof_for_all_sizes_comes_first(tmp_path: Path) -> None:
    report = audited(tmp_path, ONE)
    assert (report.verdict, report.method) == (Verdict.HOLDS, Method.ALL_SIZES)
    assert methods(report) == {Method.ALL_SIZES}
    assert not report.findings
    assert report.stopped_by == ()


def test_a_planner_that_is_not_lifted_for_all_sizes_is_proved_in_a_range(tmp_path: Path) -> None:
    report = audited(tmp_path, HEADWISE, "P == D and D < H")
    assert (report.verdict, report.method) == (Verdict.HOLDS, Method.RANGE)
    assert "turns of a loop" in report.stopped_by[0].what


def test_a_range_that_has_no_sizes_decides_nothing(tmp_path: Path) -> None:
    report = audited(tmp_path, HEADWISE, "P == D and D < H and H > 3")
    assert report.verdict is Verdict.NOT_DECIDED
    assert methods(report) == {None}


def test_what_cannot_be_lifted_is_run_if_that_is_allowed(tmp_path: Path) -> None:
    shared = heads("""\
    shared = sorted(set(range(H)) & {p} & {d})
    return [(0, 0, 1)] if shared else []
""")
    alone = audited(tmp_path, shared)
    assert alone.verdict is Verdict.NOT_DECIDED
    assert [place.line for place in alone.stopped_by] == [4]
    run = audited(tmp_path, shared, execute=True)
    assert (run.verdict, run.method) == (Verdict.HOLDS, Method.FINITE)
    assert "4 sizes up to 4, with 6 bytes per head" in run.invariants[0].detail
    assert any("hostile" in one for one in run.assumptions)


def test_a_contract_for_running_is_not_decided_without_it(tmp_path: Path) -> None:
    how = tmp_path / "how.py"
    how.write_text(
        'UNIT = "heads"\nDOMAIN = "all"\nEXECUTED_ONLY = True\n\n\n'
        "def plan(planner, producer_tp_rank, consumer_tp_rank):\n"
        "    return planner(producer_tp_rank, consumer_tp_rank)\n"
    )
    source = "def plan(p, d):\n    return [(0, 0, 1)] if p == d else []\n"
    report = audited(tmp_path, source, contract=str(how))
    assert report.verdict is Verdict.NOT_DECIDED
    assert report.stopped_by[0].what == "the contract asks for execution"
    assert audited(tmp_path, source, contract=str(how), execute=True).verdict is Verdict.HOLDS


# What is demanded

RESULTS = {
    Method.ALL_SIZES: InvariantResult("a", "A.", Verdict.HOLDS, Method.ALL_SIZES),
    Method.RANGE: InvariantResult("a", "A.", Verdict.HOLDS, Method.RANGE),
    Method.FINITE: InvariantResult("a", "A.", Verdict.HOLDS, Method.FINITE),
    Verdict.FAILS: InvariantResult("a", "A.", Verdict.FAILS, None, "", 1),
    Verdict.NOT_DECIDED: InvariantResult("a", "A.", Verdict.NOT_DECIDED),
}
STRENGTH = list(RESULTS)[:3]


@pytest.mark.parametrize("required", [None, *STRENGTH])
@pytest.mark.parametrize(("one", "other"), list(product(RESULTS, RESULTS)))
def test_the_weakest_result_decides(
    one: Method | Verdict, other: Method | Verdict, required: Method | None
) -> None:
    verdict, method = decide._verdict((RESULTS[one], RESULTS[other]), required)
    if Verdict.FAILS in (one, other):
        assert (verdict, method) == (Verdict.FAILS, None)
        return
    if Verdict.NOT_DECIDED in (one, other):
        assert (verdict, method) == (Verdict.NOT_DECIDED, None)
        return
    weakest = max(STRENGTH.index(one), STRENGTH.index(other))
    enough = required is None or weakest <= STRENGTH.index(required)
    assert (verdict, method) == (
        (Verdict.HOLDS, STRENGTH[weakest]) if enough else (Verdict.NOT_DECIDED, None)
    )


def test_a_weaker_proof_than_is_demanded_is_not_decided(tmp_path: Path) -> None:
    report = audited(tmp_path, HEADWISE, "P == D and D < H", required=Method.ALL_SIZES)
    assert report.verdict is Verdict.NOT_DECIDED
    assert report.required is Method.ALL_SIZES
    assert "proved in a range" in report.sentence
    assert "is not decided" in report.sentence
    enough = audited(tmp_path, HEADWISE, "P == D and D < H", required=Method.RANGE)
    assert enough.verdict is Verdict.HOLDS


# What fails


def test_a_failure_is_told_whatever_is_proved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A proof that is wrong, as none may be, does not hide what was seen.
    monkeypatch.setattr(decide, "prove_for_all_sizes", lambda *_: Attempt())
    report = audited(tmp_path, heads("    return [(1, 0, 1)] if p == d else []\n"))
    assert report.verdict is Verdict.FAILS
    failing = {one.name for one in report.invariants if one.verdict is Verdict.FAILS}
    assert failing == {READ, CONTENT}
    assert report.findings[0].story.total_num_kv_heads == 1


def test_a_planner_that_raises_for_some_sizes_fails_there(tmp_path: Path) -> None:
    source = ONE.replace("    return", "    assert H < 3\n    return")
    report = audited(tmp_path, source)
    assert report.verdict is Verdict.FAILS
    assert report.sweep is not None
    assert (report.sweep.tried, report.sweep.failing) == (4, 2)
    story = report.findings[0].story
    assert (story.total_num_kv_heads, story.invariant) == (3, COVERED)
    assert "AssertionError at line 4" in story.seen
    # Run, it raises in other words, and is the same planner.
    assert audited(tmp_path, source, execute=True).verdict is Verdict.FAILS


@pytest.mark.parametrize(
    ("length", "told_with"),
    [("bytes_per_head - 1", 6), ("bytes_per_head // 4 * 4", 6), ("bytes_per_head // 2", 65_536)],
)
def test_a_failure_of_some_numbers_of_bytes_is_told_with_such_a_number(
    tmp_path: Path, length: str, told_with: int
) -> None:
    source = in_bytes(f"    return [(0, 0, {length})] if p == d else []\n")
    report = audited(tmp_path, source, contract="byte-list")
    assert report.verdict is Verdict.FAILS
    story = report.findings[0].story
    assert story.bytes_per_head == told_with
    assert ("It is told with 6 bytes per head." in story.why_this_input) is (told_with == 6)


def test_a_copy_beyond_all_measure_is_told(tmp_path: Path) -> None:
    source = in_bytes("    return [(0, 0, 10**15 + 1)] if p == d else []\n")
    report = audited(tmp_path, source, contract="byte-list")
    assert report.verdict is Verdict.FAILS
    story = report.findings[0].story
    assert len(story.blocks[0].slots) < 1000
    assert "bytes outside a block is neither shown nor counted" in story.why_this_input


# The sizes that are asked for


def test_sizes_that_do_not_fail_are_not_told(tmp_path: Path) -> None:
    report = audited(tmp_path, ONE, at=(7, 7, 7))
    assert report.verdict is Verdict.HOLDS
    assert report.findings == ()


def test_sizes_beyond_those_that_are_tried_may_fail(tmp_path: Path) -> None:
    source = ONE.replace("1)]", "1 if H < 9 else 2)]")
    # Nothing is said of sizes beyond the range.
    assert audited(tmp_path, source).method is Method.RANGE
    report = audited(tmp_path, source, at=(9, 9, 9))
    assert report.verdict is Verdict.FAILS
    assert report.findings[0].story.total_num_kv_heads == 9
    assert report.findings[0].smallest == "The input that was asked for."


@pytest.mark.parametrize(
    ("sizes", "said"),
    [
        ((4, 3, 4), "P=3 is not legal for H=4; legal: a divisor or a multiple of H"),
        ((4, 4, 6), "D=6 is not legal for H=4"),
        ((4, 4, 2), "outside the domain; legal: legal groups, where H == P == D"),
    ],
)
def test_sizes_outside_the_domain_are_wrong_usage(
    tmp_path: Path, sizes: tuple[int, int, int], said: str
) -> None:
    with pytest.raises(ValueError, match=said):
        audited(tmp_path, ONE, at=sizes)


def test_a_domain_without_sizes_is_wrong_usage(tmp_path: Path) -> None:
    with pytest.raises(ContractError, match="no sizes up to 4 are in the domain"):
        audited(tmp_path, ONE, "P < D and D < P")


# A target that is not what was lifted


@pytest.fixture
def misread(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the lifter take a quotient in a target for its dividend."""
    real = expressions.apply

    def apply(run: Any, scope: Any, op: ast.operator, left: Any, right: Any, node: Any) -> Any:
        if isinstance(op, ast.FloorDiv) and scope.file.endswith("planner.py"):
            return left
        return real(run, scope, op, left, right, node)

    monkeypatch.setattr(expressions, "apply", apply)


@pytest.mark.usefixtures("misread")
@pytest.mark.parametrize(
    ("sender", "where"),
    [
        # As it is read it is right, run it is wrong.
        ("d // 2", EQUAL),
        # Run it is right in another way: another replica sends.
        ("P - P // P", "H == 1 and D == 1"),
    ],
)
def test_a_target_that_does_otherwise_is_not_decided(
    tmp_path: Path, sender: str, where: str
) -> None:
    source = ONE.replace("p == d", f"p == {sender}")
    assert audited(tmp_path, source, where).verdict is Verdict.HOLDS
    report = audited(tmp_path, source, where, execute=True)
    assert report.verdict is Verdict.NOT_DECIDED
    assert methods(report) == {None}
    assert "does not do what was lifted" in report.sentence
    assert not report.findings


@pytest.mark.usefixtures("misread")
def test_a_counterexample_that_the_target_does_not_show_is_not_decided(tmp_path: Path) -> None:
    # The two differ beyond what is tried.
    source = ONE.replace("p == d", "p == d + max(H - 8, 0) // 99")
    assert audited(tmp_path, source, at=(9, 9, 9)).verdict is Verdict.FAILS
    report = audited(tmp_path, source, at=(9, 9, 9), execute=True)
    assert report.verdict is Verdict.NOT_DECIDED
    assert "does not do what was lifted" in report.sentence


def test_a_target_that_does_the_same_is_said_to(tmp_path: Path) -> None:
    wrong = heads("    return [(1, 0, 1)] if p == d else []\n")
    report = audited(tmp_path, wrong, execute=True)
    assert report.verdict is Verdict.FAILS
    assert report.findings[0].replayed.endswith("made the same copies.")
    assert "NOT" not in report.findings[0].replayed


def test_a_name_with_two_meanings_is_no_target(tmp_path: Path) -> None:
    with pytest.raises(ContractError, match=r"planner\.py:7 has a second meaning for plan"):
        audited(tmp_path, ONE + "\n\n" + ONE)


# What it rests on


def test_a_call_of_a_logger_is_an_assumption_wherever_it_is_met(tmp_path: Path) -> None:
    logging = "import logging\n\nlog = logging.getLogger(__name__)\n\n\n"
    # Met at sizes that are not tried, in the proof alone.
    source = logging + ONE.replace(
        "    return", "    if H > 99:\n        log.info('x')\n    return"
    )
    report = audited(tmp_path, source)
    assert report.verdict is Verdict.HOLDS
    assert [one for one in report.assumptions if "has no effect" in one] == [
        f"{tmp_path}/planner.py:10: a call of a logger has no effect."
    ]


def test_every_invariant_in_scope_is_reported_once(tmp_path: Path) -> None:
    report = audited(tmp_path, LOWEST, "H == P and P < D")
    assert tuple(one.name for one in report.invariants) == IN_SCOPE
    assert not {name for name, _ in report.out_of_scope} & set(IN_SCOPE)
