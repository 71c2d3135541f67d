# SPDX-License-Identifier: Apache-2.0
"""Where a reader of Python is easily wrong: each case is compared with CPython."""

from __future__ import annotations

from itertools import product

import pytest
from against_cpython import MEANINGS, Compared, Raised, by_cpython

from kvreshard.proofs.lifting.path import Meaning, all_ways
from kvreshard.proofs.lifting.program import Program
from kvreshard.proofs.lifting.run import run_along
from kvreshard.proofs.lifting.values import Record

NAMED = "from typing import NamedTuple\nfrom dataclasses import dataclass\n"

CASES = {
    "the operands are computed from left to right": """
def log(items, x):
    items.append(x)
    return x
def f(a, b):
    s = []
    x = log(s, a) - log(s, b) * log(s, 3)
    y = (log(s, 4), [log(s, 5), log(s, 6)][log(s, 0)])
    return s, x, y
""",
    "a call computes what is called, then arguments, then keywords in their order": """
def log(items, x):
    items.append(x)
    return x
def g(x, y, z):
    return x - y * z
def f(a, b):
    s = []
    return g(log(s, 1), z=log(s, a), y=log(s, b)), s
""",
    "an assignment computes its value first, then its targets from left to right": """
def log(items, x):
    items.append(x)
    return x
def f(a, b):
    s, t = [], [7, 8]
    t[log(s, 0)] = t[log(s, 1)] = log(s, a)
    i, t[i] = 1, b
    return s, t, i
""",
    "two names of one list see the same change": """
def f(a, b):
    s = [a]
    t = s
    t.append(b)
    u = [s, s]
    u[0].append(1)
    u[1].extend([2])
    s = s + [3]
    return s, t, u
""",
    "a repeated list repeats the same items": """
def f(a, b):
    s = [[a]] * 3
    s[0].append(b)
    return s
""",
    "a helper changes the list that it is given": """
def g(items, x):
    items.append(x)
    items = [x]
    items.append(x)
    return items
def f(a, b):
    s = [a]
    return g(s, b), s
""",
    "a list that grows while it is gone over": """
def f(a, b):
    s = [a, b]
    t = []
    for x in s:
        t.append(x)
        if len(s) < 5:
            s.append(x + 1)
    return s, t
""",
    "a list that grows while it is numbered or joined": """
def f(a, b):
    s = [a]
    t = []
    for i, x in enumerate(s):
        if i < 3:
            s.append(x - b)
        t.append((i, x))
    for x, y in zip(s, t):
        if len(t) < 6:
            t.append(y)
    return s, t
""",
    "a list that grows while it is gone over from its end": """
def f(a, b):
    s = [a, b]
    r = reversed(s)
    s.append(1)
    t = [x for x in r]
    return t, [x for x in r]
""",
    "an iterator is used up": """
def f(a, b):
    e = enumerate([a, b, 3])
    x = [i for i in e if i[0] < 1]
    z = zip([a, b], [1, 2])
    for y in z:
        break
    return x, list(e), list(z), y
""",
    "any and all leave what they do not need": """
def f(a, b):
    e = enumerate([a, b, 3])
    x = any(i == b for _, i in e)
    return x, list(e)
""",
    "a generator computes what it goes over before the other arguments": """
def f(a, b):
    s = [1]
    x = sum((i * a for i in [s[0], b // b]), s.append(5) or 0)
    return x, s
""",
    "the other arguments of a sum are computed before its items": """
def f(a, b):
    return sum((1 // i for i in [a]), [][0])
""",
    "a comprehension's names are its own": """
def f(a, b):
    i = a
    s = [i for i in (b, i)]
    t = [[i for i in (j, i)] for j in (i, 5)]
    return i, s, t
""",
    "a comprehension looks up the other names when it runs": """
def f(a, b):
    k = a
    s = [k + i for i in range(2)]
    k = b
    return s + [k + i for i in range(2)]
""",
    "the target of a loop stays bound after it": """
def f(a, b):
    i = a
    for i in (a, b) if b > 0 else ():
        i = i * 10
    return i
""",
    "the target of a loop that has no turns is not bound": """
def f(a, b):
    for i in (a,) if b > 0 else ():
        pass
    return i
""",
    "the else of a loop runs unless it was left": """
def f(a, b):
    s = []
    for i in range(3):
        for j in range(2):
            if i * j == a:
                continue
            if i + j == b:
                break
            s.append(i - j)
        else:
            s.append(9)
            if i == a:
                break
    else:
        s.append(7)
    return s
""",
    "a name is local in all of a function": """
N = 5
def g(x):
    if x > 0:
        N = x
    return N
def f(a, b):
    return g(a)
""",
    "a builtin may be a local name": """
def f(a, b):
    if a > 0:
        max = b
    return max + 1
""",
    "a builtin may be a function of the module": """
def max(x, y):
    return x - y
def f(a, b):
    return max(a, b), (max(a, 1) if b else 0), a < b < max(a, b)
""",
    "a function of the module with a builtin's name may have effects": """
def abs(x):
    x.append(1)
    return len(x)
def f(a, b):
    s = []
    x = abs(s) if a > 0 else 5
    y = a < b < abs(s)
    z = b > 0 and abs(s) > 1
    return x, y, z, s
""",
    "a constant may have another name": """
A = 3
B = A * 2
C = (A, B, (A,))
def f(a, b):
    return C[a % 3] if a % 3 < 2 else C[2][0] + B
""",
    "a default is the value of its time": """
N = 2
def g(x, y=N + 1, *, z=(N, 3)):
    return x, y, z
def f(a, b):
    N = a
    return g(b), g(N, z=a), g(1, 2)
""",
    "a call that does not fit": """
def g(x, y=1, /, z=2, *, w):
    return x
def f(a, b):
    if a == 0:
        return g(b)
    if a == 1:
        return g(b, 1, 1, 1, w=1)
    if a == 2:
        return g(b, y=1, w=1)
    if a == 3:
        return g(b, z=1, w=1, v=1)
    if a == 4:
        return g(b, 2, 3, z=3, w=1)
    return g(w=b)
""",
    "a division is computed only where it is needed": """
def f(a, b):
    x = a // b if b != 0 else 0
    y = 7 % a if a > 0 and b > a else -1
    z = a == 0 or 5 // a > b
    return x, y, z, (b > 0) and (a // b) > 0
""",
    "a conditional in a conditional, and a division in both": """
def f(a, b):
    return (1 // a if b > 0 else 2 // b) if a > b else (3 // a if a else 4 // (b + 1))
""",
    "a constant division by zero that is not reached": """
def f(a, b):
    return (1 // 0 if a > b else a) + (5 if a < b or b == b else 1 % 0)
""",
    "a chain computes its middle once, and its end only if needed": """
def log(items, x):
    items.append(x)
    return x
def f(a, b):
    s = []
    x = log(s, a) < log(s, b) <= log(s, 2) < log(s, 3 // a)
    return x, s
""",
    "and and or compute the later operands only if needed": """
def log(items, x):
    items.append(x)
    return x
def f(a, b):
    s = []
    x = log(s, a) and log(s, b) or log(s, 3)
    y = not (log(s, a > b) or log(s, b > 1)) and log(s, 4)
    return x, y, s
""",
    "a comparison of mixed truth values and integers": """
def f(a, b):
    t = (a < b, 1, True)
    return t == (1, 1, 1), True in (a, b), t[1] == t[2], (a == b) in t, [True] == [1]
""",
    "a range is not a list": """
def f(a, b):
    r = range(a, 5, 2)
    return b in r, (a + 2) in r, 5 in r, r is None
""",
    "an unpacking of a wrong length": """
def f(a, b):
    n = 3
    if b > 0:
        n = 2
    s = [a] * n
    x, (y, z) = (a, s)
    return x, y, z
""",
    "an item that is not there": """
def f(a, b):
    s = (1, 2, 3)
    return s[a] + [b][0]
""",
    "an augmented assignment of a tuple makes a new one": """
def f(a, b):
    t = (a,)
    u = t
    t += (b,)
    s = [a]
    v = s
    s += t
    return t, u, s, v
""",
    "an exception's message may raise another": """
def g(x, y):
    return x // y
def f(a, b):
    assert a != b, g(a, b)
    if a > b:
        raise ValueError(f"{a} above {g(a, b)}")
    raise KeyError(a, g(b, a))
""",
    "an exception of the module": """
class PlanError(ValueError):
    '''A plan that is wrong.'''
class NoPlanError(PlanError):
    pass
def f(a, b):
    if a > b:
        raise PlanError
    if a < b:
        raise NoPlanError("no plan") from None
    raise
""",
    "a function that returns nothing": """
def g(x):
    if x > 0:
        return
    x = 1
def f(a, b):
    return g(a), g(b) is None
""",
    "recursion": """
def g(x, n):
    return x if n == 0 else g(x * 2, n - 1) + n
def f(a, b):
    return g(a, 5)
""",
    "a named tuple is a tuple": NAMED
    + """
class Pair(NamedTuple):
    left: int
    right: "int" = 7
    def __post_init__(self):
        raise ValueError
    @property
    def low(self):
        return min(+self.left, +self.right)
    @staticmethod
    def made(x):
        return Pair(x, right=x)
def f(a, b):
    p = Pair(a)
    x, y = p.made(b)
    return p, p[1], p[-2:], len(p), [*p], p.low, x, y, [i for i in p], p.made(3).low
""",
    "a dataclass checks its fields when it is made": NAMED
    + """
N = 4
@dataclass(frozen=True, slots=True)
class Box:
    low: int
    high: int | None = N
    def __post_init__(self):
        if self.high is not None and self.low > self.high:
            raise ValueError(f"{self.low} is above {self.high}")
        assert self.width() < 9
    def width(self, more: int = 1):
        return (self.high or self.low) - self.low + more
    @property
    def ratio(self):
        return self.width(0) // self.low
def f(a, b):
    box = Box(a, high=b if b else None)
    return box, box.ratio, bool(box), box.width(more=2), box is None, Box(1) if box else 0
""",
    "a dataclass by keyword only": NAMED
    + """
@dataclass(kw_only=True)
class Box:
    low: int = 1
    high: int
def f(a, b):
    if a > 0:
        return Box(a, b)
    return Box(high=b, low=a) if a < 0 else Box(low=b)
""",
    "a record that does not fit": NAMED
    + """
class Pair(NamedTuple):
    left: int
    right: int = 7
def f(a, b):
    if a > 1:
        return Pair(a, b, 1)
    if a == 1:
        return Pair(a, left=b)
    return Pair(right=b) if a else Pair(a, up=b)
""",
    "a field may be a list that two records share": NAMED
    + """
class Held(NamedTuple):
    items: list
    count: int = 0
def f(a, b):
    s = [a]
    one, two = Held(s), Held(s, 1)
    one.items.append(b)
    two[0].append(3)
    grow = two.items.append
    grow(4)
    more = s.extend
    more([5, 6])
    return one, two, s
""",
    "names of another meaning elsewhere": """
def g(self, left):
    return [left for left in (self, left)]
def h(f):
    return f + 1
def f(a, b):
    g_ = g
    return g_(a, b), h(a), h(f=b)
""",
    "an annotation is not computed": """
def g(x: 1 // 1 = 3) -> "what":
    y: nowhere = x
    z: int
    return y
def f(a, b):
    return g(), g(a)
""",
    "a text is not followed, and has no value to compare": """
def f(a, b):
    s = f"{a} of {b!r}"
    t = "text"
    return s is None, t == "text", t != "", bool(t), bool(""), None == s, t == a
""",
}


@pytest.mark.parametrize("meaning", MEANINGS, ids=lambda meaning: meaning.__name__)
@pytest.mark.parametrize("case", CASES)
def test_what_is_easily_wrong(case: str, meaning: type[Meaning]) -> None:
    compared = Compared(CASES[case], ["a", "b"], meaning=meaning)
    for a, b in product((-2, -1, 0, 1, 2, 3, 5), (-1, 0, 1, 2, 4)):
        compared.check(a, b)


def test_a_raise_in_a_property_is_at_its_line() -> None:
    source = (
        NAMED
        + """
class Pair(NamedTuple):
    left: int
    @property
    def half(self):
        if self.left % 2:
            raise ValueError("odd")
        return self.left // 2
def f(a):
    return Pair(a).half
"""
    )
    compared = Compared(source, ["a"])
    assert compared.check(3) == Raised("ValueError", 9)
    assert compared.check(-4) == by_cpython(source, "f", [-4])


def test_ways_share_nothing() -> None:
    """What one way puts into a list is not seen on another."""
    source = "def f(a):\n    s = []\n    if a > 0:\n        s.append(1)\n    return s\n"
    assert sorted(way.outcome.value for way in Compared(source, ["a"]).ways) == [[], [1]]


def test_a_record_of_numbers_that_are_not_known() -> None:
    program = Program.parse(
        NAMED + "class P(NamedTuple):\n    x: int\ndef f():\n    return P(1)\n", "p"
    )
    function = program.function("f")
    assert function is not None
    (way,) = all_ways(lambda path: run_along(path, function), Meaning)
    assert isinstance(way.outcome.value, Record)
    assert way.outcome.value.fields == {"x": 1}
    assert way.conditions == ()


def test_a_logger_is_taken_to_do_nothing_but_its_arguments_are_computed() -> None:
    source = """
import logging
logger = logging.getLogger(__name__)
def f(a, b):
    logger.info("%d", a // b)
    return a
"""
    compared = Compared(source, ["a", "b"])
    assert compared.check(1, 0) == Raised("ZeroDivisionError", 5)
    assert compared.check(1, 2) == ("int", 1)
    assert all(
        way.assumed == (("lifted.py", 5, "a call of a logger"),)
        for way in compared.ways
        if not hasattr(way.outcome, "kind")
    )


def test_what_an_exception_is_made_of_may_be_unknown_and_is_listed() -> None:
    source = "def f(a):\n    raise ValueError('%d' % a)\n"
    compared = Compared(source, ["a"])
    assert compared.check(1) == Raised("ValueError", 2)
    assert compared.ways[0].assumed == (("lifted.py", 2, "what an exception is made of"),)
