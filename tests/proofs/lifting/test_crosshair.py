# SPDX-License-Identifier: Apache-2.0
"""CrossHair, which executes Python symbolically by its own means, agrees with the lifter.

It is given a function, and what the lifter made of it printed as Python. It has to confirm over
all paths that both return the same or raise the same, and to refute that where one is damaged.

Left out is the remainder by a divisor that is not known, of which CrossHair does not see the end:
it finds no difference and confirms nothing.
"""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from against_cpython import Compared
from reprinted import reprinted

if TYPE_CHECKING:
    from pathlib import Path

pytest.importorskip("crosshair", reason="crosshair-tool is not installed; the dev extra has it")

# Paths without a new result after which CrossHair stops looking; a count, so no clock decides.
MOST_ITERATIONS = 60

FUNCTIONS = {
    "floor division": "return a // b",
    "the remainder": "return a % 7 - a % -7",
    "division by a number": "return a // -3 + a % 4",
    "both at once": "return divmod(a, -3)",
    "a division where it is defined": "return a // b if b != 0 else a",
    "a division in a later operand": "return b != 0 and a // b > 1",
    "a division at the end of a chain": "return a < b < a // b",
    "minimum and maximum": "return min(a, b, 3) - max(a, 0) + abs(b)",
    "a chain of comparisons": "return 0 <= a < b != 5",
    "the operand that decides": "return (a and b) or 7",
    "truth values as numbers": "return (a < b) + (b > 0) * 2 - True",
    "equality of truth values": "return (a < b) == (b < 3)",
    "powers and shifts": "return (a << 2) - (b >> 1) + a ** 2",
    "early returns": (
        "if a > b:\n        return a - b\n    elif a == b:\n        return 0\n    return b"
    ),
    "assignments": "x = a\n    x += b\n    x, y = b, x\n    x *= 2\n    return x - y",
    "an assertion and an exception": (
        "assert a >= 0\n    if b < a:\n        raise ValueError\n    return b - a"
    ),
    "a place that is not known": "return (1, a, b)[b]",
    "a name that may not be bound": "if a > 0:\n        x = b\n    return x",
    "a loop": "x = 0\n    for i in range(3):\n        if i == a:\n            continue\n"
    "        if x > b:\n            break\n        x += a\n    else:\n        x -= 1\n    return x",
    "a list that is built": "s = []\n    for i in range(2):\n        if a > i:\n"
    "            s.append(a - i)\n    return s",
    "a comprehension": "return [i * a for i in range(3) if i != b]",
    "any of several": "return any(i == a for i in (1, b))",
    "a sum": "return sum(i * a for i in range(3))",
    "membership": "return a in (b, 2) and b not in range(0, 9, 2)",
    "a helper": "return helper(a) - helper(1, y=b)",
    "a named tuple": "p = Pair(a, b)\n    x, y = p\n    return p.low + y if len(p) == 2 else x",
    "the heads of a rank": "return max(a // b, 1) if a > 0 and b > 0 else 0",
    "a planner's offsets": (
        "if a < 1 or b < 1:\n        return False, 0, 0\n    if a % b == 0:\n"
        "        return True, 0, a // b\n    return b % a == 0, (b // a) - 1, 1"
    ),
}

SOURCE = """\
from typing import NamedTuple
class Pair(NamedTuple):
    left: int
    right: int
    @property
    def low(self):
        return self.left if self.left < self.right else self.right
def helper(x, y=2):
    if x < y:
        return y - x
    return x
def f(a, b):
    {body}
"""
QUESTION = """
def outcome(function, a, b):
    try:
        value = function(a, b)
    except Exception as error:
        return type(error).__name__
    return isinstance(value, bool), value
def is_the_same(a: int, b: int) -> bool:
    '''
    post: _
    '''
    return outcome(f, a, b) == outcome(lifted, a, b)
def is_the_same_damaged(a: int, b: int) -> bool:
    '''
    post: _
    '''
    return outcome(f, a, b) == outcome(damaged, a, b)
"""


@pytest.mark.parametrize("case", FUNCTIONS)
def test_crosshair_confirms_what_was_lifted(case: str, tmp_path: Path) -> None:
    source = SOURCE.format(body=FUNCTIONS[case])
    ways = Compared(source, ["a", "b"]).ways
    lifted = reprinted("lifted", ["a", "b"], ways)
    damaged = reprinted("damaged", ["a", "b"], ways, damaged=True)
    text = source + lifted + damaged + QUESTION
    (tmp_path / "asked.py").write_text(text, encoding="utf-8")
    options = ["--report_all", "--max_uninteresting_iterations", str(MOST_ITERATIONS)]
    done = subprocess.run(
        [sys.executable, "-m", "crosshair", "check", *options, "asked.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    right, wrong = done.stdout.splitlines()
    assert right.endswith("info: Confirmed over all paths."), done.stdout + done.stderr + lifted
    assert "error: false when calling is_the_same_damaged(" in wrong
    assert done.returncode == 1
