# SPDX-License-Identifier: Apache-2.0
"""The module over arrays: how it is printed, read back, judged, and when it is refused."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

import pytest
import z3
from fixture_ledger import fixture_ledger, row

from kvreshard.codegen import emit
from kvreshard.codegen.emit import EmissionRefused, render_planner, render_planner_numpy
from kvreshard.codegen.files import render_generated
from kvreshard.codegen.freshness import verify_vendored
from kvreshard.codegen.lift import lift_function
from kvreshard.codegen.lift_arrays import ARRAYS
from kvreshard.codegen.module_shape import NUMPY_SHAPE, check_module
from kvreshard.codegen.modules import PLANNER, PLANNER_NUMPY, EmittedModule
from kvreshard.codegen.printer import NUMPY, PYTHON, UnprintableError, print_body
from kvreshard.codegen.selection import NUMPY_SHELL, subexpressions
from kvreshard.codegen.validate import FunctionVerdict, validate_translation
from kvreshard.proofs.lifting.unsupported import UnsupportedError
from kvreshard.spec.election import is_paired
from kvreshard.spec.formula import FORMULAS, extremum, maximum, minimum
from kvreshard.spec.ownership import head_count

if TYPE_CHECKING:
    from pathlib import Path

TEXT = render_planner_numpy(fixture_ledger())
EMITTED = emit.planner_path().with_name("planner_numpy.py")
FORMULA_NAMES = [made.name for made in PLANNER_NUMPY.formulas()]
a, b, c = z3.Ints("a b c")


def failures(text: str) -> list[FunctionVerdict]:
    return [verdict for verdict in validate_translation(text, PLANNER_NUMPY) if not verdict.ok]


def changed(old: str, new: str) -> str:
    """Return the text with the one place where `old` is replaced."""
    assert TEXT.count(old) == 1, f"{TEXT.count(old)} places"
    return TEXT.replace(old, new)


# Printing


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        (a * b // c + a % b - 1, "a * b // c + a % b - 1"),
        (maximum(a, 1), "np.maximum(a, 1)"),
        (minimum(a, maximum(b, c)), "np.minimum(a, np.maximum(b, c))"),
        (z3.And(a < b, b < c), "np.logical_and(a < b, b < c)"),
        (z3.Or(a < b, b < c, c < a), "np.logical_or(np.logical_or(a < b, b < c), c < a)"),
        (z3.Not(a == b), "a != b"),
        (z3.Not(z3.And(a < b, b < c)), "np.logical_not(np.logical_and(a < b, b < c))"),
        (head_count(a, b), "head_count(a, b)"),
        (z3.IntVal(0), "np.array(0, np.int64)"),
        (z3.IntVal(-3), "np.array(-3, np.int64)"),
    ],
)
def test_what_is_printed(expression: z3.ExprRef, text: str) -> None:
    assert print_body(expression, dialect=NUMPY) == [f"    return {text}"]


def test_a_conditional_is_refused_since_arrays_compute_both_branches() -> None:
    with pytest.raises(UnprintableError, match="would compute both branches"):
        print_body(is_paired.body, dialect=NUMPY)
    assert "if producer_tp_size" in "".join(print_body(is_paired.body, dialect=PYTHON))


@pytest.mark.parametrize("expression", [z3.BoolVal(True), z3.BoolVal(False)])
def test_a_truth_value_that_depends_on_nothing_is_refused(expression: z3.BoolRef) -> None:
    with pytest.raises(UnprintableError):
        print_body(expression, dialect=NUMPY)


def test_no_emitted_formula_has_a_conditional_but_maxima_and_minima() -> None:
    found = [
        node
        for made in PLANNER.formulas()
        for node in subexpressions(made.body)
        if z3.is_app_of(node, z3.Z3_OP_ITE)
    ]
    assert found
    assert all(extremum(*node.children()) for node in found)


# Reading back


def lifted(body: str, *, truth: bool = False, parameters: str = "a b c") -> z3.ExprRef:
    names = ", ".join(f"{name}: NDArray[np.int64]" for name in parameters.split())
    result = "NDArray[np.bool_]" if truth else "NDArray[np.int64]"
    (node,) = ast.parse(f"def f({names}) -> {result}:\n    {body}\n").body
    assert isinstance(node, ast.FunctionDef)
    return lift_function(node, {"head_count": head_count}, ARRAYS).body


def equal(left: z3.ExprRef, right: z3.ExprRef) -> bool:
    solver = z3.Solver()
    solver.add(b >= 1, c >= 1, left != right)
    return bool(solver.check() == z3.unsat)


@pytest.mark.parametrize(
    ("body", "truth", "meaning"),
    [
        ("return a * b // c + a % b - 1", False, a * b // c + a % b - 1),
        ("return -a", False, -a),
        ("x = a + b\n    return x * x", False, (a + b) * (a + b)),
        ("return np.maximum(a, 1)", False, z3.If(a >= 1, a, 1)),
        ("return np.minimum(a, b)", False, z3.If(a >= b, b, a)),
        ("return np.logical_and(a < b, b <= c)", True, z3.And(a < b, b <= c)),
        ("return np.logical_or(a > b, b >= c)", True, z3.Or(a > b, b >= c)),
        ("return np.logical_not(a == b)", True, a != b),
        ("return a != b", True, a != b),
        ("return np.array(3, np.int64)", False, z3.IntVal(3)),
        ("return head_count(a, b)", False, head_count(a, b)),
    ],
)
def test_what_is_known_has_numpys_meaning(body: str, truth: bool, meaning: z3.ExprRef) -> None:
    assert equal(lifted(body, truth=truth), meaning)
    assert not equal(lifted(body, truth=truth), z3.Not(meaning) if truth else meaning + 1)


@pytest.mark.parametrize(
    ("body", "what"),
    [
        ("return max(a, b)", "the name max"),
        ("return np.max(a, b)", "the name np.max"),
        ("return a if a > b else b", "a IfExp"),
        ("return np.where(a > b, a, b)", "the name np.where"),
        ("return a > b and b > c", "a BoolOp"),
        ("return not a > b", "the operator Not"),
        ("return ~a", "the operator Invert"),
        ("return (a > b) & (b > c)", "the operator BitAnd"),
        ("return (a > b) + (b > c)", "a bool where an integer is known"),
        ("return -(a > b)", "a bool where an integer is known"),
        ("return (a > b) < (b > c)", "a bool where an integer is known"),
        ("return a & b", "the operator BitAnd"),
        ("return a > b > c", "a chain of comparisons"),
        ("return True", "the constant True"),
        ("return a / b", "the operator Div"),
        ("return a << 1", "the operator LShift"),
        ("return a ** 2", "the operator Pow"),
        ("return a[0]", "a Subscript"),
        ("return a.T", "an attribute of a int: a.T"),
        ("return np.array(a, np.int64)", "an array that is not one integer"),
        ("return np.array(1, np.int32)", "the name np.int32"),
        ("return np.array(1, np.array)", "an array that is not one integer"),
        ("return np.int64(a)", "the call np.int64(a)"),
        ("return np(a)", "the call np(a)"),
        ("return np", "returns a function"),
        ("return np.array(1)", "1 arguments"),
        ("return np.maximum(a, b, a)", "3 arguments"),
        ("return np.maximum(a, b, out=a)", "a keyword for maximum"),
        ("return np.logical_and(a, b)", "a int as an argument"),
        ("return np.logical_not(a > b, a > b)", "2 arguments"),
        ("return np.maximum(a > b, b)", "a bool as an argument"),
        ("return np.linalg.maximum(a, b)", "the name np.linalg"),
        ("np = a\n    return np", "a second meaning for np"),
        ("a += 1\n    return a", "a AugAssign"),
        ("return other(a)", "the name other"),
        ("return head_count(a)", "1 arguments for head_count"),
    ],
)
def test_what_is_not_known_is_refused(body: str, what: str) -> None:
    with pytest.raises(UnsupportedError) as caught:
        lifted(body)
    assert what in caught.value.what


def test_a_parameter_may_not_stand_for_numpy() -> None:
    with pytest.raises(UnsupportedError, match=r"an attribute of a int: np\.maximum"):
        lifted("return np.maximum(a, 1)", parameters="a np")


@pytest.mark.parametrize("annotation", ["int", "NDArray[np.int32]", "NDArray[np.bool_]"])
def test_what_is_not_of_64_bits_is_refused(annotation: str) -> None:
    (node,) = ast.parse(f"def f(a: {annotation}) -> NDArray[np.int64]:\n    return a\n").body
    assert isinstance(node, ast.FunctionDef)
    with pytest.raises(UnsupportedError, match="the annotation should be"):
        lift_function(node, {}, ARRAYS)


# Translation validation


def test_the_checked_in_module_is_proved_equal_to_the_spec() -> None:
    verdicts = validate_translation(EMITTED.read_text(encoding="utf-8"), PLANNER_NUMPY)
    assert [one.name for one in verdicts if one.verdict == "proved"] == FORMULA_NAMES
    assert tuple(one.name for one in verdicts if one.verdict == "shell") == NUMPY_SHELL
    assert len(verdicts) == len(FORMULA_NAMES) + len(NUMPY_SHELL)


def test_the_shell_and_the_formulas_share_no_name() -> None:
    assert not set(NUMPY_SHELL) & set(FORMULAS)


def test_one_module_is_not_taken_for_the_other() -> None:
    assert {one.verdict for one in validate_translation(TEXT)} > {"unsupported"}
    assert failures(render_planner(fixture_ledger()))


@pytest.mark.parametrize(
    ("old", "new", "name"),
    [
        ("np.maximum(tp_size // total_num", "np.minimum(tp_size // total_num", "replica_count"),
        ("np.maximum(total_num_kv_heads // tp_size, 1)", "total_num_kv_heads", "head_count"),
        ("return tp_rank * total_num_kv_heads // tp_size", "return tp_rank", "first_head"),
        ("overlap_start_value < overlap_end_value", "overlap_start_value <= 0", "sends"),
        ("return np.array(0, np.int64)", "return np.array(1, np.int64)", "elect_lowest"),
        ("return np.array(0, np.int64)", "return consumer_tp_rank % 2", "elect_lowest"),
    ],
)
def test_a_changed_formula_fails(old: str, new: str, name: str) -> None:
    (failure,) = failures(changed(old, new))
    assert (failure.name, failure.verdict) == (name, "different")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (
            "return tp_rank * total_num_kv_heads // tp_size",
            "return total_num_kv_heads * tp_rank // tp_size",
        ),
        (
            "return overlap_end_value - overlap_start_value",
            "return -(overlap_start_value - overlap_end_value)",
        ),
        ("return np.array(0, np.int64)", "return consumer_tp_rank - consumer_tp_rank"),
    ],
)
def test_an_equal_formula_that_fits_passes(old: str, new: str) -> None:
    assert failures(changed(old, new)) == []


@pytest.mark.parametrize(
    ("before", "after", "named"),
    [
        (
            "tp_size * tp_size * tp_rank - tp_size * tp_size * tp_rank + ",
            "",
            "tp_size*tp_size*tp_rank",
        ),
        ("", " * 1180591620717411303424 // 1180591620717411303424", "1180591620717411303424"),
    ],
    ids=["cancelled", "constant"],
)
def test_an_equal_formula_that_overflows_on_the_way_fails(
    before: str, after: str, named: str
) -> None:
    right = "tp_rank * total_num_kv_heads // tp_size"
    (failure,) = failures(changed(f"return {right}", f"return {before}{right}{after}"))
    assert (failure.name, failure.verdict) == ("first_head", "different")
    assert failure.detail == f"not proved to fit 64 bits: {named}"
    assert failure.line == TEXT[: TEXT.index(f"return {right}")].count("\n") + 1


def test_what_is_computed_and_not_returned_has_to_fit_too() -> None:
    right = "    return tp_rank * total_num_kv_heads // tp_size"
    (failure,) = failures(changed(right, f"    unused = tp_size * tp_size * tp_rank\n{right}"))
    assert failure.detail == "not proved to fit 64 bits: tp_size*tp_size*tp_rank"


@pytest.mark.parametrize("module", [PLANNER, PLANNER_NUMPY], ids=lambda module: module.file)
def test_a_call_that_the_formula_does_not_make_fails(module: EmittedModule) -> None:
    text = render_generated(fixture_ledger())[module.file]
    old = "return tp_rank % replica_count(total_num_kv_heads, tp_size)"
    assert text.count(old) == 1
    verdicts = validate_translation(
        text.replace(old, f"{old} + 0 * replica_count(0, tp_size)"), module
    )
    (failure,) = (one for one in verdicts if not one.ok)
    assert (failure.name, failure.verdict) == ("replica_ordinal", "unsupported")
    assert failure.detail == "a call that the formula does not make: replica_count(0, tp_size)"


# The module around the formulas


@pytest.mark.parametrize(
    ("addition", "detail"),
    [
        ("import numpy\n", "the statement import numpy"),
        ("import os as np\n", "the statement import os as np"),
        ("from numpy import maximum as np\n", "the statement from numpy import maximum as np"),
        ("np = 1\n", "another meaning for np"),
        ("def np(a: int) -> int:\n    return a\n", "another meaning for np"),
        ("np.maximum = np.minimum\n", "assignment to np.maximum"),
        ("def f() -> None:\n    np.maximum = np.minimum\n", "assignment to np.maximum"),
        ("def f() -> None:\n    return np.f2py\n", "a use of f2py"),
        ("def f() -> None:\n    return np.frompyfunc(f, 1, 1)\n", "a use of frompyfunc"),
        ("def f() -> None:\n    return np.copyto(1, 1)\n", "a use of copyto"),
        ("def f() -> None:\n    return np.__dict__\n", "a use of __dict__"),
        ("def f(a: np.maximum) -> None:\n    return None\n", "the annotation np.maximum"),
        ("def f(a: NDArray[np.int64()]) -> None:\n    return None\n", "the annotation NDArray"),
        ("_X = np.int64\n", "a Attribute in a value at the top level"),
        ("_X = np.array(1)\n", "a call at the top level: np.array(1)"),
        ("class TransferPlan(NamedTuple):\n    x: int\n", "the class TransferPlan"),
        ("def f() -> None:\n    return max(1, 2)\n", "a use of max"),
    ],
)
def test_what_the_module_may_do_is_listed(addition: str, detail: str) -> None:
    check_module(ast.parse(TEXT), NUMPY_SHAPE)
    with pytest.raises(UnsupportedError) as caught:
        check_module(ast.parse(TEXT + addition), NUMPY_SHAPE)
    assert caught.value.what.startswith(detail)
    assert caught.value.line > len(TEXT.splitlines())


@pytest.mark.parametrize("name", ["helper", "plan_transfers"])
def test_a_function_without_proof_that_is_not_the_shells_fails(name: str) -> None:
    (failure,) = failures(TEXT + f"def {name}(a: int) -> int:\n    return a\n")
    assert (failure.name, failure.verdict) == (name, "unsupported")


# Emission


def test_the_module_is_one_of_the_generated_files() -> None:
    assert render_generated(fixture_ledger())["planner_numpy.py"] == TEXT


@pytest.mark.parametrize("result", ["refuted", "unknown", "vacuous"])
def test_an_overflow_that_is_not_excluded_is_refused(result: str) -> None:
    ledger = fixture_ledger()
    for obligation in ledger["obligations"]:
        if obligation["name"] == "first_head/does_not_overflow":
            obligation["result"] = result
    with pytest.raises(EmissionRefused) as caught:
        render_planner_numpy(ledger)
    assert caught.value.reasons == [f"first_head: first_head/does_not_overflow is {result}"]


def test_an_overflow_that_nothing_speaks_of_is_refused_for_arrays_only() -> None:
    ledger = fixture_ledger()
    ledger["obligations"] = [
        obligation
        for obligation in ledger["obligations"]
        if obligation["name"] != "first_head/does_not_overflow"
    ]
    # That what calls it does not overflow is another statement.
    ledger["obligations"].append(row("of_a_caller", "overflow", ["first_head", "overlap_start"]))
    with pytest.raises(EmissionRefused) as caught:
        render_planner_numpy(ledger)
    assert caught.value.reasons == ["first_head: that it does not overflow is not stated"]
    assert "def first_head(" in render_planner(ledger)


def test_the_docstrings_say_which_bounds_are_assumed() -> None:
    tree = ast.parse(TEXT)
    module = ast.get_docstring(tree) or ""
    assert "total_num_kv_heads_is_at_most_2_to_the_20: total_num_kv_heads <= 1048576\n" in module
    functions = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
    for name in FORMULA_NAMES:
        text = " ".join((ast.get_docstring(functions[name]) or "").split())
        assert "tp_size_is_at_most_2_to_the_31" in text
    assert "2_to_the" not in render_planner(fixture_ledger())


def test_a_copy_is_compared_with_the_module_that_it_is_a_copy_of(tmp_path: Path) -> None:
    copy = tmp_path / "kv_plan.py"
    copy.write_bytes(EMITTED.read_bytes().replace(b"\n", b"\r\n"))
    assert verify_vendored(copy).matches
    copy.write_bytes(EMITTED.read_bytes() + b"# mine\n")
    assert not verify_vendored(copy).matches
