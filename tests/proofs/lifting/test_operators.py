# SPDX-License-Identifier: Apache-2.0
"""Every operator and builtin that is known computes what CPython does, for every small operand."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING

import pytest
from against_cpython import MEANINGS, Compared, Raised

if TYPE_CHECKING:
    from kvreshard.proofs.lifting.path import Meaning

SMALL = range(-4, 5)
LARGE = [(7**40, -(3**30)), (-(7**40), 3**30), (10**25, 10**25), (-(10**25), 10**25 + 1)]

OF_TWO = [
    *(f"a {operator} b" for operator in ("+", "-", "*", "//", "%")),
    *(f"a {operator} b" for operator in ("<", "<=", ">", ">=", "==", "!=")),
    *(f"a {operator} {places}" for operator in ("<<", ">>") for places in (0, 1, 3)),
    *(f"a ** {exponent}" for exponent in (0, 1, 2, 3)),
    *(f"a {operator} {divisor}" for operator in ("//", "%") for divisor in (-3, -1, 2)),
    *(f"{dividend} {operator} b" for operator in ("//", "%") for dividend in (-5, 0, 7)),
    *("-a", "+a", "--a", "not a", "not (a < b)", "- (a < b)", "+ (a == b)"),
    *("abs(a)", "abs(a - b)", "abs(a < b)", "divmod(a, b)", "divmod(7, b)", "divmod(a, -2)"),
    *("min(a, b)", "max(a, b)", "min(a, b, 0)", "max(1, a, b)", "min([a, b])", "max((a, b, -1))"),
    *("min(())", "max([])", "min(a for _ in range(0))", "min()", "max(i * a for i in (1, b))"),
    # Chains, of which the later ones are not computed.
    *("a < b < 2", "a <= b == b", "0 <= a < b <= 3", "a != b != a", "a < b < 1 // b", "1 < a > b"),
    *("a < 0 < b // a", "a is not None == b", "a in (b, 1) != a"),
    # The operand that decides is what is given.
    *("a and b", "a or b", "a and b or 3", "a or b and 3", "not a or b", "a and a < b"),
    *("(a < b) and (a > -2)", "(a < b) or (a > 2)", "(a < b) and a", "(a < b) or b"),
    *("a and 1 // b", "a or 1 // b", "b and 1 // b", "b != 0 and 6 // b > a", "b == 0 or a // b"),
    *("a and None", "None or a", "a and () or b", "[] or a", "(a,) and b"),
    *("a if b else 0", "a if a < b else b", "a // b if b else -1", "1 // 0 if a > b else a"),
    *("a if b > 0 else a > 1", "None if a else b", "a % b if b != 0 and a > 0 else b"),
    *("a is None", "None is None", "a is not None", "(a, b) is None", "None == a", "None != a"),
    *("a in (b, 1, -2)", "a not in [b]", "a in ()", "(a < b) in (1, 5)", "None in (a, None)"),
    *("a in range(b)", "a in range(-2, b)", "a in range(b, 3)", "(a > b) in range(2)"),
    *(
        "a in range(-3, b, 2)",
        "a in range(b, -3, -2)",
        "a in range(b, 4, 3)",
        "b in range(a, a, 5)",
    ),
    # A truth value counts as 0 or 1, and stays a truth value only where Python keeps it one.
    *(
        "True + a",
        "a + (a < b)",
        "(a < b) + (b < a)",
        "(a < b) * b",
        "(a == b) // b",
        "a // (a < b)",
    ),
    *("(a < b) == (b < a)", "(a < b) == 1", "a == True", "(a < b) != b", "True == 1", "False < a"),
    *("(a < b) < (b < a)", "(a < 0) << 2", "(a < 0) ** 2", "a << True", "True << 1", "True - True"),
    *("int(a)", "int(a < b)", "bool(a)", "bool(a < b)", "bool(None)", "bool()", "bool((a,))"),
    *(
        "sum([a, b])",
        "sum((a, b), 3)",
        "sum([])",
        "sum([a < b, b])",
        "sum(i * a for i in range(3))",
    ),
    *("any([a, b])", "all((a, b))", "any([])", "all([])", "any(i == a for i in range(3))"),
    *("any(6 // i == a for i in (1, b))", "all(6 // i > a for i in (2, b, 1))"),
    *("len((a, b))", "len([])", "len('ab')", "(a, b)[0]", "(a, b, 5)[a % 3]", "[a, b][a]"),
    *("(a, b)[b]", "()[a]", "[a, b, 3][1:]", "(a, b)[::-1]", "[a, b, 3][-2:]", "[a][5:]"),
    *("[*range(3), a]", "(*[a, b], 1)", "list(range(-1, 2))", "list(range(3, -3, -2))", "list(())"),
    *("tuple(range(0))", "tuple([a, b])", "list(range(1, 1, 0))", "[a] + [b]", "(a,) + (b, 1)"),
    *("[a] * 2", "2 * (a, b)", "[a] * -1", "[a, b] * 0", "(a, b) == (b, a)", "[a, b] == [a, a]"),
    *("(a, (b, 1)) == (1, (1, 1))", "(a,) == (a, b)", "[a] != [b]", "(a < b, 1) == (1, True)"),
    *(
        "list(enumerate([a, b]))",
        "[i * x for i, x in enumerate((a, b))]",
        "list(zip([a, b], (1,)))",
    ),
    *("list(zip())", "list(zip([a], [b], [1]))", "list(reversed([a, b]))", "list(reversed(()))"),
    *("list(reversed(range(-1, 3)))", "list(reversed(range(2, 1)))"),
    *("[i + j for i in range(2) for j in (a, b)]", "[i for i in (a, b, 1) if i > 0 if i < 3]"),
    *("[[j * a for j in range(i)] for i in range(3)]", "[a for a in (b, a)]", "f'{a}' is None"),
    "range(a, b, 0)",
]


@pytest.mark.parametrize("meaning", MEANINGS, ids=lambda meaning: meaning.__name__)
@pytest.mark.parametrize("expression", OF_TWO)
def test_an_expression_means_what_cpython_computes(expression: str, meaning: type[Meaning]) -> None:
    source = f"def f(a, b):\n    return {expression}\n"
    compared = Compared(source, ["a", "b"], meaning=meaning)
    for a, b in [*product(SMALL, SMALL), *LARGE]:
        compared.check(a, b)


@pytest.mark.parametrize("meaning", MEANINGS[1:], ids=lambda meaning: meaning.__name__)
def test_a_loop_may_have_a_bound_that_is_not_known(meaning: type[Meaning]) -> None:
    source = "def f(a, b):\n    return [i * b for i in range(min(max(a, -1), 3))]\n"
    compared = Compared(source, ["a", "b"], meaning=meaning)
    for a, b in [*product(SMALL, SMALL), *LARGE]:
        compared.check(a, b)
    assert len(compared.ways) <= 6


@pytest.mark.parametrize("operator", ["+", "-", "*", "//", "%"])
def test_augmented_assignment_is_the_operator(operator: str) -> None:
    source = f"def f(a, b):\n    x = a\n    x {operator}= b\n    return x, a\n"
    compared = Compared(source, ["a", "b"])
    for a, b in product(SMALL, SMALL):
        compared.check(a, b)


@pytest.mark.parametrize("operator", ["//", "%"])
def test_division_by_zero_is_raised_where_it_is(operator: str) -> None:
    source = f"def f(a, b):\n    if a > 0:\n        return b\n    return 1 {operator} (a - b)\n"
    assert Compared(source, ["a", "b"]).check(-1, -1) == Raised("ZeroDivisionError", 4)


@pytest.mark.parametrize("a", [True, False, 2, -1])
@pytest.mark.parametrize("expression", ["a + 1", "-a", "a == 1", "a and 3", "min(+a, 2)", "a // 1"])
def test_a_truth_value_as_an_argument(expression: str, a: bool | int) -> None:
    compared = Compared(f"def f(a):\n    return {expression}\n", ["a"])
    compared.check(a, symbols=False)
