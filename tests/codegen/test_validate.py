# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import ast
import re

import pytest
from fixture_ledger import fixture_ledger

from kvreshard.codegen.emit import planner_path, render_planner
from kvreshard.codegen.module_shape import check_module
from kvreshard.codegen.selection import SHELL, emitted_formulas
from kvreshard.codegen.validate import FunctionVerdict, validate_translation
from kvreshard.proofs.lifting.unsupported import UnsupportedError
from kvreshard.spec.formula import FORMULAS

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
    assert shell == functions - set(FORMULA_NAMES) == set(SHELL)
    assert {"plan_transfer", "compute_sender_transfer_plan"} <= shell


@pytest.mark.parametrize("name", ["helper", "_helper", "plan_transfers"])
def test_a_function_without_proof_that_is_not_the_shells_fails(name: str) -> None:
    (failure,) = failures(TEXT + f"def {name}(tp_size: int) -> int:\n    return tp_size\n")
    assert (failure.name, failure.verdict) == (name, "unsupported")
    assert failure.detail == "it is neither a formula's function nor the shell's"
    assert failure.line == len(TEXT.splitlines()) + 1


@pytest.mark.parametrize("name", SHELL)
def test_a_missing_shell_function_fails(name: str) -> None:
    found = failures(changed(f"def {name}(", "def helper("))
    verdicts = {failure.name: failure.verdict for failure in found}
    assert verdicts.pop("<module>", "unsupported") == "unsupported"  # where it is still called
    assert verdicts == {name: "missing", "helper": "unsupported"}


def test_the_shell_and_the_formulas_share_no_name() -> None:
    assert not set(SHELL) & set(FORMULAS)


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
        ("return 0\n", "return int(0)\n", "the name int"),
        ("return 0\n", "return first_head(1, 1, 0)\n", "the name first_head"),
        ("return 0\n", "return elect_lowest(1, 1, 1, 1)\n", "the name elect_lowest"),
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
    text = changed("def overlap_start(", "def overlap_begin(")
    found = {failure.name: failure.verdict for failure in failures(text)}
    assert found == {
        "<module>": "unsupported",
        "overlap_start": "missing",
        "overlap_begin": "unsupported",
    }


@pytest.mark.parametrize("text", ["", "x = 1\n", "_rank = 1\n"])
def test_a_text_without_functions_fails(text: str) -> None:
    found = failures(text)
    assert {verdict.name for verdict in found} == {*FORMULA_NAMES, *SHELL}
    assert {verdict.verdict for verdict in found} == {"missing"}


def test_a_text_that_is_not_python_fails() -> None:
    (failure,) = failures(TEXT + "def (\n")
    assert (failure.name, failure.verdict) == ("<module>", "unsupported")
    assert failure.line == len(TEXT.splitlines()) + 1


# Expressions that give `max` another meaning in the module's namespace.
REBINDINGS = [
    "getattr(sends, '__globals__').update({'max': min})",
    "operator.setitem(attrgetter('__globals__')(sends), 'max', min)",
    "sends.__globals__.update({'max': min})",
    "sends.__globals__.__setitem__('max', min)",
    "globals().update({'max': min})",
    "vars().update(max=min)",
    "exec('max = min')",
    "(x for x in ()).gi_frame.f_globals.update({'max': min})",
    "(lambda: 0).__globals__.update({'max': min})",
    "[sends.__globals__.update({'max': min}) for _ in 'x']",
]
PLACES = [
    "_X = {}\n",
    "{}\n",
    "class C:\n    X = {}\n",
    "class C({}):\n    pass\n",
    "def f(x: int = {}) -> None:\n    return None\n",
    "def f(*, x: int = {}) -> None:\n    return None\n",
    "@{}\ndef f() -> None:\n    return None\n",
    "def f(x: {}) -> None:\n    return None\n",
    "def f() -> None:\n    {}\n",
    "_X: int = {}\n",
    "_X = (1, {})\n",
    "_X = TransferPlan({}, 0, 0, 0)\n",
    '_X = f"""{{{}}}"""\n',
]


def module_failures(text: str) -> list[FunctionVerdict]:
    return [failure for failure in failures(text) if failure.name == "<module>"]


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("rebinding", REBINDINGS)
def test_the_namespace_cannot_be_reached(rebinding: str, place: str) -> None:
    with pytest.raises(UnsupportedError) as caught:
        check_module(ast.parse(TEXT + place.format(rebinding)))
    assert caught.value.line > len(TEXT.splitlines())


@pytest.mark.parametrize("rebinding", REBINDINGS)
def test_a_rebinding_fails_the_validation(rebinding: str) -> None:
    (failure,) = failures(f"{TEXT}_X = {rebinding}\n")
    assert (failure.name, failure.verdict) == ("<module>", "unsupported")


@pytest.mark.parametrize(
    "body",
    [
        "    match sends:\n        case object(__globals__=g):\n            g |= {'max': min}\n",
        "    g = _ELECTIONS\n    g |= {'lowest': elect_spread}\n",
        "    _ELECTIONS['lowest'] = elect_spread\n",
        "    with sends:\n        return None\n",
        "    def g() -> None:\n        return None\n",
        "    class C:\n        pass\n",
        "    del owner\n",
        "    return lambda: 0\n",
        "    yield\n",
        "    try:\n        return None\n    except TypeError as max:\n        return None\n",
        "    max = min\n",
        "    __builtins__ = 1\n",
    ],
)
def test_what_a_function_may_do_is_listed(body: str) -> None:
    assert len(module_failures(TEXT + "def f() -> None:\n" + body)) == 1


@pytest.mark.parametrize(
    "name",
    [
        *("getattr", "setattr", "delattr", "hasattr", "vars", "dir", "globals", "locals"),
        *("eval", "exec", "compile", "open", "type", "object", "super", "breakpoint"),
        *("__import__", "__builtins__", "__name__", "attrgetter", "operator", "sys"),
    ],
)
@pytest.mark.parametrize("place", ["_X = {}\n", "def f() -> None:\n    return {}\n"])
def test_a_name_that_is_neither_the_modules_nor_listed_fails(name: str, place: str) -> None:
    (failure,) = module_failures(TEXT + place.format(name))
    assert failure.detail == f"a use of {name}"


@pytest.mark.parametrize("text", ["'__globals__'", "('a', '__dict__')", "{'__code__': 1}"])
def test_a_string_that_is_a_hidden_name_fails(text: str) -> None:
    (failure,) = module_failures(TEXT + f"_X = {text}\n")
    assert failure.detail.startswith("the string '__")


@pytest.mark.parametrize(
    ("addition", "detail"),
    [
        ("def head_count(a: int) -> int:\n    return a\n", "another meaning for head_count"),
        ("first_head = owner\n", "another meaning for first_head"),
        ("TransferPlan = tuple\n", "another meaning for TransferPlan"),
        ("_plan = 1\n", "another meaning for _plan"),
        ("max = min\n", "another meaning for max"),
        ("def min() -> None:\n    return None\n", "another meaning for min"),
        ("def f(getattr: int) -> None:\n    return None\n", "another meaning for getattr"),
        ("__builtins__ = {'max': min}\n", "a definition of __builtins__"),
        ("def __getattr__(name: str) -> None:\n    return None\n", "a definition of __getattr__"),
        ("from operator import index as min\n", "the statement from operator import index as min"),
        ("from operator import setitem\n", "the statement from operator import setitem"),
        ("from operator import *\n", "the statement from operator import *"),
        ("import sys\n", "the statement import sys"),
        ("def f() -> None:\n    import sys\n", "a Import in a function"),
        ("def f() -> None:\n    global owner\n", "a Global in a function"),
        ("if True:\n    owner = 1\n", "a If at the top level"),
        ("for owner in ():\n    pass\n", "a For at the top level"),
        ("async def f() -> None:\n    pass\n", "a AsyncFunctionDef at the top level"),
        ("'not a docstring'\n", "a Expr at the top level"),
        ("globals()['owner'] = 1\n", "assignment to globals()['owner']"),
        ("sends.x = 1\n", "assignment to sends.x"),
        ("X, Y = 1, 2\n", "assignment to (X, Y)"),
        ("X = Y = 1\n", "an assignment to more than one name"),
        ("X: int = 1\n", "a AnnAssign at the top level"),
        ("X = vars()\n", "a call at the top level: vars()"),
        ("X = sends(1, 1, 1, 1, 1, 1)\n", "a call at the top level: sends(1, 1, 1, 1, 1, 1)"),
        ("X = TransferPlan(max, 0, 0, 0)\n", "a call at the top level: TransferPlan(max, 0, 0, 0)"),
        ("X = (owner := 1)\n", "a NamedExpr in a value at the top level"),
        ("X = {**_ELECTIONS}\n", "a Dict in a value at the top level"),
        ("X = 1 + 1\n", "a BinOp in a value at the top level"),
        ("def f() -> None:\n    owner.__code__ = 1\n", "a use of __code__"),
        ("def f() -> None:\n    setattr(owner, 'a', 1)\n", "a use of setattr"),
        ("def f(x: int = owner) -> None:\n    return None\n", "the default value owner"),
        ("def f(x: 'int') -> None:\n    return None\n", "the annotation 'int'"),
        ("class owner:\n    pass\n", "the class owner"),
        ("class X(NamedTuple):\n    x: int\n", "the class X"),
    ],
)
def test_a_name_cannot_get_another_meaning(addition: str, detail: str) -> None:
    (failure,) = module_failures(TEXT + addition)
    assert failure.detail == detail
    assert failure.line is not None
    assert failure.line > len(TEXT.splitlines())


@pytest.mark.parametrize(
    ("old", "new", "detail"),
    [
        ("    sends: bool\n", "    sends: bool = max\n", "a AnnAssign in a class, or a value"),
        ("    sends: bool\n", "    sends = max\n", "a Assign in a class, or a value"),
        ("    sends: bool\n", "    sends: bool()\n", "the annotation bool()"),
        ("TransferPlan(NamedTuple)", "TransferPlan(NamedTuple, x=1)", "the class TransferPlan"),
        ("TransferPlan(NamedTuple)", "TransferPlan(tuple)", "the class TransferPlan"),
        ("class TransferPlan", "@max\nclass TransferPlan", "the class TransferPlan"),
        ('__all__ = [\n    "Tr', '__all__ = [\n    max, "Tr', "an __all__ that is not a list of"),
        ('__all__ = [\n    "Tr', '__all__ = [\n    "__doc__", "Tr', "the string '__doc__'"),
        ('"lowest": elect_lowest', '"lowest": elect_lowest(1, 1, 1, 1)', "a Call in a value"),
        ("def owner(", "@max\ndef owner(", "a decorator or type parameter"),
    ],
)
def test_what_is_allowed_is_allowed_in_its_own_form_only(old: str, new: str, detail: str) -> None:
    (failure,) = module_failures(changed(old, new))
    assert failure.detail.startswith(detail)


def test_a_text_that_python_reads_in_another_encoding_fails() -> None:
    for encoding in ("utf-7", "latin-1", "no-such-encoding"):
        (failure,) = failures(f"# coding: {encoding}\n{TEXT}")
        assert (failure.name, failure.verdict) == ("<module>", "unsupported")
        assert "encoding" in failure.detail
    (failure,) = failures(TEXT + "\0")
    assert (failure.name, failure.verdict) == ("<module>", "unsupported")
