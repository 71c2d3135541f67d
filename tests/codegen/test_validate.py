# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import ast
import re

import pytest
from fixture_ledger import fixture_ledger

from kvreshard.codegen.emit import planner_path, render_planner
from kvreshard.codegen.selection import emitted_formulas
from kvreshard.codegen.validate import FunctionVerdict, validate_translation

TEXT = render_planner(fixture_ledger())
FORMULA_NAMES = [made.name for made in emitted_formulas()]


def changed(old: str, new: str) -> str:
    """Return the text with the one place where `old` is replaced."""
    assert TEXT.count(old) == 1, f"{TEXT.count(old)} places"
    return TEXT.replace(old, new)


def failures(text: str) -> list[FunctionVerdict]:
    return [verdict for verdict in validate_translation(text) if not verdict.ok]


def test_the_checked_in_module_is_proved_equal_to_the_spec() -> None:
    verdicts = validate_translation(planner_path().read_text(encoding="utf-8"))
    assert [verdict.name for verdict in verdicts if verdict.verdict == "proved"] == FORMULA_NAMES
    assert {verdict.verdict for verdict in verdicts} == {"proved", "shell"}


def test_what_is_shell_is_listed() -> None:
    shell = {verdict.name for verdict in validate_translation(TEXT) if verdict.verdict == "shell"}
    functions = {
        node.name for node in ast.walk(ast.parse(TEXT)) if isinstance(node, ast.FunctionDef)
    }
    assert shell == functions - set(FORMULA_NAMES)
    assert {"plan_transfer", "compute_sender_transfer_plan"} <= shell


@pytest.mark.parametrize(
    ("old", "new", "name", "detail"),
    [
        (
            "return max(total_num_kv_heads // tp_size, 1)",
            "return max(total_num_kv_heads // tp_size, 2)",
            "head_count",
            "for total_num_kv_heads=1, tp_size=1 the formula gives 1, the function 2",
        ),
        (
            "return max(tp_size // total_num_kv_heads, 1)",
            "return min(tp_size // total_num_kv_heads, 1)",
            "replica_count",
            "for total_num_kv_heads=1, tp_size=2 the formula gives 2, the function 1",
        ),
        (
            "return tp_rank * total_num_kv_heads // tp_size",
            "return tp_rank + total_num_kv_heads // tp_size",
            "first_head",
            "for total_num_kv_heads=1, tp_size=1, tp_rank=0 the formula gives 0, the function 1",
        ),
        (
            "return overlap_start_value - producer_first_head\n",
            "return overlap_start_value + producer_first_head\n",
            "src_head_offset",
            None,
        ),
        (
            "and overlap_start_value < overlap_end_value",
            "and overlap_start_value <= overlap_end_value",
            "sends",
            None,
        ),
        (
            "return tp_rank % replica_count(total_num_kv_heads, tp_size)",
            "return tp_rank // replica_count(total_num_kv_heads, tp_size)",
            "replica_ordinal",
            None,
        ),
        (
            "return owner(total_num_kv_heads, consumer_tp_size, producer_first_head, 0)",
            "return owner(total_num_kv_heads, consumer_tp_size, producer_first_head, 1)",
            "first_receiver_candidate",
            None,
        ),
    ],
)
def test_a_changed_formula_is_different(old: str, new: str, name: str, detail: str | None) -> None:
    (failure,) = failures(changed(old, new))
    assert (failure.name, failure.verdict) == (name, "different")
    assert failure.line is not None
    assert TEXT.splitlines()[failure.line - 1].startswith(f"def {name}(")
    if detail is not None:
        assert failure.detail == detail
    values = re.fullmatch(r"for .* the formula gives (\S+), the function (\S+)", failure.detail)
    assert values is not None
    assert values[1] != values[2]


def test_formulas_are_compared_by_proof_not_by_text() -> None:
    for old, new in [
        ("producer_region_bytes >= 1", "1 <= producer_region_bytes"),
        (
            "return overlap_end_value - overlap_start_value",
            "return -(overlap_start_value - overlap_end_value)",
        ),
        (
            "return max(total_num_kv_heads // tp_size, 1)",
            "return total_num_kv_heads // tp_size if total_num_kv_heads // tp_size > 1 else 1",
        ),
        (
            "return tp_rank * total_num_kv_heads // tp_size",
            "product = total_num_kv_heads * tp_rank\n    return product // tp_size",
        ),
    ]:
        assert failures(changed(old, new)) == []


@pytest.mark.parametrize(
    ("old", "new", "detail"),
    [
        ("return 0\n", "return 0 * (1 // consumer_tp_rank)\n", "a division that the formula"),
        ("return 0\n", "return int(0)\n", "a call of int"),
        ("return 0\n", "return first_head(1, 1, 0)\n", "a call of first_head"),
        ("return 0\n", "return elect_lowest(1, 1, 1, 1)\n", "a call of elect_lowest"),
        ("return 0\n", "return False\n", "the annotation should be bool, found int"),
    ],
)
def test_what_is_not_defined_or_not_known_fails(old: str, new: str, detail: str) -> None:
    (failure,) = failures(changed(old, new))
    assert failure.name == "elect_lowest"
    assert failure.verdict in ("different", "unsupported")
    assert failure.detail.startswith(detail)
    assert failure.line is not None
    assert "elect_lowest" in "".join(TEXT.splitlines()[failure.line - 40 : failure.line])


def test_another_order_of_parameters_is_different() -> None:
    text = changed(
        "def head_count(total_num_kv_heads: int, tp_size: int)",
        "def head_count(tp_size: int, total_num_kv_heads: int)",
    )
    (failure,) = failures(text)
    assert failure.detail == "the parameters should be total_num_kv_heads, tp_size"


def test_a_missing_function_fails() -> None:
    (failure,) = failures(changed("def overlap_start(", "def overlap_begin("))
    assert (failure.name, failure.verdict) == ("overlap_start", "missing")


@pytest.mark.parametrize("text", ["", "x = 1\n", "def plan_transfer():\n    pass\n"])
def test_a_text_without_formulas_fails(text: str) -> None:
    found = failures(text)
    assert {verdict.name for verdict in found} == set(FORMULA_NAMES)
    assert {verdict.verdict for verdict in found} == {"missing"}


def test_a_text_that_is_not_python_fails() -> None:
    (failure,) = failures(TEXT + "def (\n")
    assert (failure.name, failure.verdict) == ("<module>", "unsupported")
    assert failure.line == len(TEXT.splitlines()) + 1


@pytest.mark.parametrize(
    ("addition", "detail"),
    [
        ("def head_count(a: int) -> int:\n    return a\n", "another meaning for head_count"),
        ("first_head = owner\n", "another meaning for first_head"),
        ("max = min\n", "another meaning for max"),
        ("from operator import index as min\n", "another meaning for min"),
        ("from operator import *\n", "the import from operator import *"),
        ("import sys\n", "the import import sys"),
        ("def f() -> None:\n    import sys\n", "an import that is not at the top level"),
        ("def f() -> None:\n    global owner\n", "a Global"),
        ("if True:\n    owner = 1\n", "a If at the top level"),
        ("globals()['owner'] = 1\n", "assignment to globals()['owner']"),
        ("X = vars()\n", "a use of vars"),
        ("def f() -> None:\n    owner.__code__ = 1\n", "a use of __code__"),
        ("def f() -> None:\n    setattr(owner, 'a', 1)\n", "a use of setattr"),
        ("X = (owner := 1)\n", "a NamedExpr"),
        ("X, Y = 1, 2\n", "assignment to (X, Y)"),
        ("class owner:\n    pass\n", "another meaning for owner"),
    ],
)
def test_a_name_cannot_get_another_meaning(addition: str, detail: str) -> None:
    found = [failure for failure in failures(TEXT + addition) if failure.name == "<module>"]
    assert [failure.detail for failure in found] == [detail]
    assert found[0].line is not None
    assert found[0].line > len(TEXT.splitlines())
