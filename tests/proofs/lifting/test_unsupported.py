# SPDX-License-Identifier: Apache-2.0
"""What the lifter does not know is refused, with its line; nothing of the source is run."""

from __future__ import annotations

import pytest
import z3
from against_cpython import by_cpython

from kvreshard.proofs.lifting import interpreter, path
from kvreshard.proofs.lifting.path import Meaning, all_ways
from kvreshard.proofs.lifting.program import Program
from kvreshard.proofs.lifting.run import RaisedAt, Returned, run_along, run_on_numbers
from kvreshard.proofs.lifting.unsupported import UnsupportedError

# In each the line with the mark is the one that is named. The function is f(a), asked for 2.
STATEMENTS = {
    "while a: a -= 1  # HERE": "a while statement",
    "with a: pass  # HERE": "a with statement",
    "try:  # HERE\n        return a\n    except ValueError:\n        return 0": "a try statement",
    "def g(): return a  # HERE": "a functiondef statement",
    "class G: pass  # HERE": "a classdef statement",
    "import math  # HERE": "a import statement",
    "from math import gcd  # HERE": "a importfrom statement",
    "del a  # HERE": "a delete statement",
    "match a:  # HERE\n        case 2:\n            return 1": "a match statement",
    "global N  # HERE": "in f: global N",
    "if a < 0:\n        global N  # HERE": "in f: global N",
    "yield a  # HERE": "in f: (yield a)",
    "return a\n    yield  # HERE": "in f: (yield)",
    "yield from a  # HERE": "in f: (yield from a)",
    "x = (y := a)  # HERE": "in f: (y := a)",
    "if a < 0:\n        x = [y := i for i in (1,)]  # HERE": "in f: (y := i)",
    "a.real = 1  # HERE": "an assignment to a.real",
    "a.real += 1  # HERE": "a change of a.real",
    "x, *y = [a, 1, 2]  # HERE": "a starred target: (x, *y)",
    "x = [1, 2]\n    x[0:1] = [a]  # HERE": "an assignment to x[0:1]",
    "x = [1, 2]\n    x[0] += a  # HERE": "a change of x[0]",
    "x = (1, 2)\n    x[0] = a  # HERE": "a change of a tuple: x[0]",
    "x = [1]\n    x *= 2  # HERE": "a change of a list: x *= 2",
    "x = [1]\n    x += range(a)  # HERE": "a change of a list: x += range(a)",
    "x = [1]\n    x[0]: int  # HERE": "an annotation of x[0]",
    "x = [1]\n    x.sort()  # HERE": "an attribute of a list: x.sort",
    "x = [1]\n    x.extend(range(a))  # HERE": "a list extended by a range",
    "for i in 'ab': pass  # HERE": "a loop over a str",
    "for i in a: pass  # HERE": "a loop over a int",
    "x = enumerate(a)  # HERE": "a loop over a int",
    "x = zip([1], a)  # HERE": "a loop over a int",
    "raise a  # HERE": "an exception that is not known: a",
    "raise SystemExit  # HERE": "an exception that is not known: SystemExit",
    "raise StopIteration  # HERE": "an exception that is not known: StopIteration",
    "raise ValueError(x=1)  # HERE": "an exception made with keywords: ValueError(x=1)",
    "raise ValueError from KeyError()  # HERE": "a cause that is not None: KeyError()",
    "ValueError = a\n    raise ValueError  # HERE": "an exception that is not known: ValueError",
    "print(a)  # HERE": "the name print",
    "a.bit_length()  # HERE": "an attribute of a int: a.bit_length",
}
EXPRESSIONS = {
    "1.5": "the constant 1.5",
    "1j": "the constant 1j",
    "b'a'": "the constant b'a'",
    "...": "the constant Ellipsis",
    "a / 2": "the operator Div, which gives a float: a / 2",
    "int(a / 2)": "the operator Div, which gives a float: a / 2",
    "a & 1": "the operator BitAnd: a & 1",
    "a | 1": "the operator BitOr: a | 1",
    "a ^ 1": "the operator BitXor: a ^ 1",
    "a @ 1": "the operator MatMult: a @ 1",
    "~a": "the operator Invert",
    "a ** -1": "an exponent other than 0 to 64",
    "a << -1": "a shift by other than 0 to 64 places",
    "a << 65": "a shift by other than 0 to 64 places",
    "lambda x: a": "a Lambda: lambda x: a",
    "{a: 1}": "a Dict: {a: 1}",
    "{a}": "a Set: {a}",
    "{i for i in (a,)}": "a SetComp: {i for i in (a,)}",
    "{i: i for i in (a,)}": "a DictComp: {i: i for i in (a,)}",
    "(i for i in (a,))": "a GeneratorExp: (i for i in (a,))",
    "'a' + 'b'": "a str where an integer is known: 'a' + 'b'",
    "'a' * a": "a str where an integer is known: 'a' * a",
    "'%d' % a": "a str where an integer is known: '%d' % a",
    "'ab'[0]": "an item of a str: 'ab'[0]",
    "'a' in 'ab'": "membership in a str: 'a' in 'ab'",
    "'a' < 'b'": "a str where an integer is known: 'a' < 'b'",
    "f'{a}' == '2'": "equality of str",
    "f'{a:>3}'": "a format in a text",
    "f'{[a]}'": "a list in a text",
    "(1, a) < (1, 3)": "a tuple where an integer is known: (1, a) < (1, 3)",
    "None < a": "a NoneType where an integer is known: None < a",
    "None + a": "a NoneType where an integer is known: None + a",
    "a is 2": "identity with other than None: a is 2",
    "True is True": "identity with other than None: True is True",
    "a.real": "an attribute of a int: a.real",
    "[a].pop()": "an attribute of a list: [a].pop",
    "(a,).index": "an attribute of a tuple: (a,).index",
    "(a, 1)[True]": "a place that is a bool: True",
    "(a, 1)[1, 0]": "a place that is a tuple: (1, 0)",
    "range(3)[a]": "an item of a range: range(3)[a]",
    "len(range(a))": "the length of a range: len(range(a))",
    "range(3) == range(3)": "equality of range",
    "range(0) and a": "whether a range is true: a",
    "min(a, True)": "a bool where an integer is: min(a, True)",
    "max((1, 2), (2, 1))": "a tuple where an integer is: max((1, 2), (2, 1))",
    "min(a, 1, key=abs)": "a keyword for min: min(a, 1, key=abs)",
    "max([], default=a)": "a keyword for max: max([], default=a)",
    "sum([a], True)": "a bool where an integer is: sum([a], True)",
    "sum([[a]], [])": "a list where an integer is: sum([[a]], [])",
    "sum(*[[a]])": "a starred argument: sum(*[[a]])",
    "max(**{})": "keywords from a mapping: max(**{})",
    "int('2')": "a str made an integer: int('2')",
    "int()": "0 arguments: int()",
    "divmod(a)": "1 arguments: divmod(a)",
    "a()": "a call of a int: a()",
    "f.x": "an attribute of a function: f.x",
    "__name__": "the name __name__",
    "__x": "the name __x",
    "isinstance(a, int)": "the name isinstance",
    "sorted([a])": "the name sorted",
    "round(a)": "the name round",
    "nowhere": "the name nowhere",
    "a and nowhere": "the name nowhere",
    "list(reversed(enumerate([a])))": "a iterator turned round: reversed(enumerate([a]))",
    "list(reversed(range(0, a, 2)))": "a range turned round: reversed(range(0, a, 2))",
    "[0][a:a, 1]": "a Slice: a:a",
    "zip([a], [1], strict=True)": "a keyword for zip: zip([a], [1], strict=True)",
    "f(a)": "calls within calls, deeper than 60",
}


def run(source: str, *numbers: int) -> Returned | RaisedAt:
    function = Program.parse(source, "planner.py").function("f")
    assert function is not None
    return run_on_numbers(function, *numbers)


def refused(source: str, *numbers: int) -> UnsupportedError:
    with pytest.raises(UnsupportedError) as caught:
        run(source, *numbers)
    assert caught.value.file == "planner.py"
    return caught.value


@pytest.mark.parametrize("statement", STATEMENTS)
def test_a_statement_that_is_not_known(statement: str) -> None:
    source = f"\n\ndef f(a):\n    {statement}\n    return a\n"
    error = refused(source, 2)
    assert error.what == STATEMENTS[statement]
    (line,) = [at for at, text in enumerate(source.split("\n"), 1) if "# HERE" in text]
    assert error.line == line


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_an_expression_that_is_not_known(expression: str) -> None:
    error = refused(f"\ndef f(a):\n    x = 1\n    return (x,\n        {expression})\n", 2)
    assert error.line == 5
    assert error.what.startswith(EXPRESSIONS[expression])


MODULES = {
    "a name bound twice": "N = 1\nN = 2  # HERE\ndef f(): return N\n",
    "a helper bound twice": "def g(): return 1\ndef g(): return 2  # HERE\ndef f(): return g()\n",
    "the function bound twice": "def f(): return 1\ndef f(): return 2  # HERE\n",
    "a name bound under an if": "if True:  # HERE\n    N = 1\ndef f(): return N\n",
    "a name bound in a loop": "for N in (1, 2): pass  # HERE\ndef f(): return N\n",
    "a name bound by an exception": (
        "try: pass\nexcept ValueError as max: pass\ndef f(): return max(1, 2)\n"
    ),
    "a name bound by with": "with open('x') as max: pass  # HERE\ndef f(): return max(1, 2)\n",
    "a name bound by match": (
        "match 1:  # HERE\n    case [*max]: pass\ndef f(): return max(1, 2)\n"
    ),
    "a name bound by a mapping pattern": (
        "match 1:  # HERE\n    case {**max}: pass\ndef f(): return max(1, 2)\n"
    ),
    "a name bound by := in another name's value": "N = (M := 2) + 1  # HERE\ndef f(): return M\n",
    "a name bound by := in a default": (
        "def g(x=(max := min)): return x  # HERE\ndef f(): return max(1, 2)\n"
    ),
    "a name bound by := in a decorator": (
        "@(max := staticmethod)\ndef g(): return 1\ndef f(): return max(1, 2)\n"
    ),
    "a name bound by := in a comprehension": (
        "_ = [max := min for i in (1,)]  # HERE\ndef f(): return max(1, 2)\n"
    ),
    "a name bound in two targets": "N, M = 1, 2  # HERE\ndef f(): return N\n",
    "a name bound and deleted": "N = 1\ndel N  # HERE\ndef f(): return N\n",
    "a name that a function binds anew": (
        "N = 1  # HERE\ndef g():\n    global N\n    N = 2\ndef f(): return N\n"
    ),
    "a function that a function binds anew": (
        "def f(): return 1  # HERE\ndef g():\n    global f\n    f = None\n"
    ),
    "a name that is changed": "N = 1\nN += 1  # HERE\ndef f(): return N\n",
    "an import of *": "from math import *  # HERE\ndef f(): return gcd(2, 4)\n",
    "an import of * beside a name": "N = 1\nfrom math import *  # HERE\ndef f(): return N\n",
    "a builtin beside an import of *": "from m import *  # HERE\ndef f(): return max(1, 2)\n",
    "a call of something imported": "from math import gcd\ndef f(): return gcd(2, 4)  # HERE\n",
    "a call of an imported module's": "import math\ndef f(): return math.gcd(2, 4)  # HERE\n",
    "an imported value": "from math import pi\ndef f(): return pi + 1  # HERE\n",
    "whether something imported is None": "from m import x\ndef f(): return x is None  # HERE\n",
    "whether something imported equals None": (
        "from m import x\ndef f(): return x == None  # HERE\n"
    ),
    "whether something imported is true": (
        "from m import x\ndef f(): return 1 if x else 2  # HERE\n"
    ),
    "a list of the module": "N = [1]  # HERE\ndef f(): return N[0]\n",
    "a list within a tuple of the module": "N = (1, [2])  # HERE\ndef f(): return N[0]\n",
    "a method of a list as a name of the module": "N = [1].append  # HERE\ndef f(): return N(2)\n",
    "an iterator of the module": "N = enumerate((1, 2))  # HERE\ndef f(): return list(N)\n",
    "a dict of the module": "N = {1: 2}  # HERE\ndef f(): return N[1]\n",
    "a constant that raises": "N = 1 // 0  # HERE\ndef f(): return N\n",
    "a constant before what it needs": "N = M + 1  # HERE\nM = 1\ndef f(): return N\n",
    "a constant that needs itself": "N = N + 1  # HERE\ndef f(): return N\n",
    "a constant of a function that reads one bound later": (
        "def g(): return M  # HERE\nN = g()\nM = 1\ndef f(): return N\n"
    ),
    "a default before what it needs": "def f(x=N): return x  # HERE\nN = 1\n",
    "a default that raises": "def f(x=(1 // 0)): return x  # HERE\n",
    "a default that calls may change": "def f(x=[]): return x  # HERE\n",
    "a default of a list within a tuple": "def f(x=(1, [])): return x  # HERE\n",
    "parameters of any number": "def f(*x): return x  # HERE\n",
    "keywords of any number": "def f(**x): return x  # HERE\n",
    "a decorator": "import functools\n@functools.cache\ndef f(): return 1  # HERE\n",
    "a decorator that is not Python's own": (
        "def staticmethod(f): return max\n@staticmethod\ndef f(): return 1  # HERE\n"
    ),
    "a property outside a class": "@property\ndef f(): return 1  # HERE\n",
    "an asynchronous function": "async def g(): return 1  # HERE\ndef f(): return g()\n",
    "a generator": "def g():  # \n    return 1\n    yield  # HERE\ndef f(): return g()\n",
    "a class of another kind": "class G: pass  # HERE\ndef f(): return G()\n",
    "a class made from another": "class G(int): pass  # HERE\ndef f(): return G()\n",
    "an enumeration": (
        "from enum import Enum\nclass G(Enum):  # HERE\n    A = 1\ndef f(): return G.A\n"
    ),
    "globals": "globals()['max'] = min  # HERE\ndef f(): return max(1, 2)\n",
    "exec": "exec('max = min')  # HERE\ndef f(): return max(1, 2)\n",
    "vars at the top level": "vars()['max'] = min  # HERE\ndef f(): return max(1, 2)\n",
    "the builtins": "import builtins  # HERE\nbuiltins.max = min\ndef f(): return max(1, 2)\n",
    "the builtins by name": "__builtins__.max = min  # HERE\ndef f(): return max(1, 2)\n",
    "a function's code": (
        "def g(): return 1\nh = g\nh.__code__ = f.__code__  # HERE\ndef f(): return g()\n"
    ),
    "a function's defaults": "def f(x=1): return x\nf.__defaults__ = (2,)  # HERE\n",
    "a function's attribute": "def g(): return 1\ng.x = 2  # HERE\ndef f(): return g()\n",
    "a setter of attributes at the top level": (
        "def g(): return 1\nsetattr(g, 'x', 1)  # HERE\ndef f(): return g()\n"
    ),
    "a constant written into": "N = (1, 2)\nN[0] = 2  # HERE\ndef f(): return N\n",
    "a logger that is none": (
        "def getLogger(): return 1\nlogger = getLogger()\n"
        "def f():\n    logger.info('x')  # HERE\n    return 1\n"
    ),
    "a logger's method that does not write": (
        "import logging\nlogger = logging.getLogger()\n"
        "def f():\n    logger.addHandler(None)  # HERE\n    return 1\n"
    ),
    "an exception with a method": (
        "class E(ValueError):\n    def __init__(self): pass\ndef f(): raise E  # HERE\n"
    ),
    "an imported exception": "from m import E\ndef f(): raise E  # HERE\n",
    "what a comprehension reads before it is bound": (
        "def f():\n    x = [y for i in (1,)]  # HERE\n    y = 1\n    return x\n"
    ),
    "a type of a hidden name": "def __g(): return 1\ndef f(): return __g()  # HERE\n",
}


@pytest.mark.parametrize("case", MODULES)
def test_a_module_that_is_not_known(case: str) -> None:
    source = MODULES[case]
    error = refused(source)
    lines = [at for at, text in enumerate(source.split("\n"), 1) if "# HERE" in text]
    assert error.line in (lines or range(1, 9)), error.what


CLASSES = {
    "a class variable": "@dataclass\nclass G:\n    x: ClassVar[int] = 1\n",
    "a class variable in a text": "@dataclass\nclass G:\n    x: 'ClassVar[int]' = 1\n",
    "a class variable by its module": "@dataclass\nclass G:\n    x: typing.ClassVar[int] = 1\n",
    "a class variable by another name": "@dataclass\nclass G:\n    x: CV[int] = 1\n",
    "a class variable by an assigned name": "@dataclass\nclass G:\n    x: AV[int] = 1\n",
    "an initial value": "@dataclass\nclass G:\n    x: InitVar[int] = 1\n",
    "a mark of keywords": "@dataclass\nclass G:\n    _: KW_ONLY\n    x: int = 1\n",
    "a factory": "@dataclass\nclass G:\n    x: list = field(default_factory=list)\n",
    "a plain value": "@dataclass\nclass G:\n    x = 1\n",
    "a dataclass that is not made by Python's": "@other\nclass G:\n    x: int = 1\n",
    "no generated init": "@dataclass(init=False)\nclass G:\n    x: int = 1\n",
    "an order": "@dataclass(order=True)\nclass G:\n    x: int = 1\n",
    "an option that is computed": "@dataclass(kw_only=not 1)\nclass G:\n    x: int = 1\n",
    "a dataclass made from another": (
        "@dataclass\nclass H:\n    y: int\n@dataclass\nclass G(H):\n    x: int = 1\n"
    ),
    "a base that is not the named tuple": "class G(Named):\n    x: int = 1\n",
    "two bases": "class G(NamedTuple, tuple):\n    x: int = 1\n",
    "a metaclass": "class G(NamedTuple, metaclass=type):\n    x: int = 1\n",
    "a decorated named tuple": "@dataclass\nclass G(NamedTuple):\n    x: int = 1\n",
    "a hidden method": "class G(NamedTuple):\n    x: int = 1\n    def __len__(self): return 5\n",
    "a truth of its own": (
        "@dataclass\nclass G:\n    x: int = 1\n    def __bool__(self): return 0\n"
    ),
    "a field twice": "class G(NamedTuple):\n    x: int = 1\n    x: int = 2\n",
    "a field and a method": "@dataclass\nclass G:\n    x: int = 1\n    def x(self): return 5\n",
    "a hidden field": "@dataclass\nclass G:\n    __x: int = 1\n",
    "a field with a line before it": "class G(NamedTuple):\n    _x: int = 1\n",
    "a method that named tuples have": (
        "class G(NamedTuple):\n    x: int = 1\n    def _replace(self): return 1\n"
    ),
    "a default of the class": "class G(NamedTuple):\n    y: int = 1\n    x: int = y + 1\n",
    "a default that a method reads in the class": (
        "class G(NamedTuple):\n    x: int = 1\n    def y(self, z=x): return z\n"
    ),
    "an annotation of the class": (
        "@dataclass\nclass G:\n    int: object = ClassVar\n    x: int = 1\n"
    ),
    "a decorator of the class": (
        "class G(NamedTuple):\n    property: object = made\n"
        "    @property\n    def x(self): return 1\n"
    ),
    "a field without default after one with": "class G(NamedTuple):\n    x: int = 1\n    y: int\n",
    "a default that changes": "class G(NamedTuple):\n    x: list = []\n",
    "a nested class": "class G(NamedTuple):\n    x: int = 1\n    class H: pass\n",
    "a change of a field": (
        "@dataclass\nclass G:\n    x: int = 1\n    def __post_init__(self): self.x = 2\n"
    ),
    "super": "@dataclass\nclass G:\n    x: int = 1\n    def __post_init__(self): super()\n",
    "a class written into": "class G(NamedTuple):\n    x: int = 1\nG.x = property(len)\n",
}
MEMBERS = {
    "a class method": (
        "    @classmethod\n    def y(cls): return 1\n",
        "G().y()",
    ),
    "a cached property": ("    @cached_property\n    def z(self): return 1\n", "G().z is None"),
    "another property": ("    @made\n    def z(self): return 1\n", "G().z is None"),
    "two decorators": (
        "    @property\n    @staticmethod\n    def z(self): return 1\n",
        "G().z is None",
    ),
    "an attribute of the class": ("", "G.x"),
    "a hidden attribute": ("    def z(self): return self.__class__\n", "G().z()"),
    "a hidden name": ("    def z(self, __x): return 1\n", "G().z(__x=1)"),
}
HEAD = """
import typing
from dataclasses import KW_ONLY, InitVar, dataclass, field
from functools import cached_property
from typing import ClassVar, ClassVar as CV, NamedTuple
AV = ClassVar
def other(made): return dataclass(made)
def made(method): return property(method)
class Named(NamedTuple): pass
"""


@pytest.mark.parametrize("case", CLASSES)
def test_a_class_that_is_not_known(case: str) -> None:
    refused(f"{HEAD}{CLASSES[case]}def f(): return G()\n")


@pytest.mark.parametrize("case", MEMBERS)
def test_a_member_of_a_class_that_is_not_known(case: str) -> None:
    body, use = MEMBERS[case]
    made = f"{HEAD}class G(NamedTuple):\n    x: int = 1\n{body}"
    assert run(f"{made}def f(): return G().x\n") == Returned(1)
    refused(f"{made}def f(): return {use}\n")


def test_equality_and_order_of_objects_are_not_known() -> None:
    made = f"{HEAD}class G(NamedTuple):\n    x: int = 1\n"
    for expression in ("G() == G()", "G() == (1,)", "G() < (2,)", "G() + (1,)", "G() == None"):
        refused(f"{made}def f(): return {expression}\n")
    refused(f"{made}def f(): return 1 if G() else 2\n")
    refused(f"{made}def f(): return G().count(1)\n")


@pytest.mark.parametrize(
    "source",
    [
        "def f(:\n",
        "return 1\n",
        "def f():\n    break\n",
        "def f(a, a):\n    return 1\n",
        "def f():\n    x = 1\n    global x\n",
        "def f():\n    nonlocal x\n",
        "# coding: utf-7\ndef f():\n    return 1\n",
        "# coding: none-such\ndef f():\n    return 1\n",
        "x = 1\0\n",
        "x = '\ud800'\n",
        "x = " + "(" * 500 + "1" + ")" * 500 + "\n",
    ],
)
def test_what_is_no_python_is_a_syntax_error(source: str) -> None:
    with pytest.raises(SyntaxError):
        Program.parse(source, "planner.py")


def test_what_python_warns_of_is_read() -> None:
    program = Program.parse("def f():\n    return 1 if 2 is 2 else '\\d'\n", "planner.py")
    assert program.function("f") is not None


def test_a_name_that_is_no_function_is_none() -> None:
    assert Program.parse("f = 1\n", "planner.py").function("f") is None
    assert Program.parse("def g(): pass\n", "planner.py").function("f") is None


# Limits. What is beyond them could take all time or memory.

HUGE = {
    "a number": "x = 3\n    for i in range(60):\n        x = x * x\n    return x",
    "a power": "x = 3 ** 64\n    x = x ** 64\n    x = x ** 64\n    return x ** 64",
    "a list": "return [0] * 10 ** 12",
    "a tuple": "return 10 ** 12 * (0, 1)",
    "a list that doubles": "x = [0]\n    for i in range(60):\n        x = x + x\n    return x",
    "a list that doubles in its place": (
        "x = [0]\n    for i in range(60):\n        x += x\n    return x"
    ),
    "a list that extends itself": (
        "x = [0]\n    for i in range(60):\n        x.extend(x)\n    return x"
    ),
    "a list that grows while it is gone over": (
        "x = [0]\n    for i in x:\n        x.append(1)\n    return x"
    ),
    "a loop": "for i in range(10 ** 12):\n        pass\n    return 1",
    "loops within loops": (
        "x = 0\n    for i in range(10 ** 4):\n"
        "        for j in range(10 ** 4):\n            x = x + 1\n    return x"
    ),
    "a sum": "return sum(1 for i in range(10 ** 12))",
    "an unpacking": "a, b = range(10 ** 12)\n    return a",
    "an equality of lists of lists": (
        "x = [1]\n    y = [1]\n    for i in range(40):\n"
        "        x = [x, x]\n        y = [y, y]\n    return x == y"
    ),
    "a list that holds itself": "x = [1]\n    x.append(x)\n    y = [1, x]\n    return x == y",
    "a recursion": "return f()",
    "a mutual recursion": "return g()",
}


@pytest.mark.parametrize("case", HUGE)
def test_what_has_no_end_in_sight_is_refused(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(path, "MOST_STEPS", 300_000)
    refused(f"def f():\n    {HUGE[case]}\ndef g(): return f()\n")


@pytest.mark.parametrize("text", ["-" * 3000 + "1", "1" + " + 1" * 900])
def test_an_expression_too_deep_is_refused(text: str) -> None:
    # How deep Python itself goes depends on its version.
    with pytest.raises((UnsupportedError, SyntaxError)):
        run(f"def f():\n    return {text} == 1\n")


def test_limits_hold_over_all_ways_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(path, "MOST_STEPS", 2_000)
    source = (
        "def f(a):\n    x = 0\n    for i in range(12):\n        if a == i:\n            x = i\n"
    )
    function = Program.parse(source, "planner.py").function("f")
    assert function is not None
    assert isinstance(run_on_numbers(function, 3), Returned)
    with pytest.raises(UnsupportedError, match="more than 2000 steps"):
        all_ways(lambda path: run_along(path, function, [z3.Int("a")]), Meaning)


@pytest.mark.parametrize(
    ("body", "what", "line"),
    [
        ("    for i in range(a):\n        pass\n", "more than 64 turns of a loop", 2),
        (
            "".join(f"    if a == {i}:\n        b = b + 1\n" for i in range(14)),
            "more than 4096 ways through the code",
            None,
        ),
        ("    return b ** a\n", "an exponent other than 0 to 64", 2),
        ("    return b << a\n", "a shift by other than 0 to 64 places", 2),
        ("    return range(0, 9, a)\n", "a range whose step is not known: range(0, 9, a)", 2),
        ("    return [b] * a\n", "an operator of a list or tuple: [b] * a", 2),
        ("    return [b, 1][a:]\n", "a slice whose bounds are not known: a:", 2),
    ],
)
def test_what_would_need_a_known_number(body: str, what: str, line: int | None) -> None:
    function = Program.parse(f"def f(a, b):\n{body}", "planner.py").function("f")
    assert function is not None
    with pytest.raises(UnsupportedError) as caught:
        all_ways(lambda path: run_along(path, function, [z3.Int("a"), z3.Int("b")]), Meaning)
    assert caught.value.what == what
    assert caught.value.file == "planner.py"
    assert line in (None, caught.value.line)


def test_nothing_of_the_source_is_run(capfd: pytest.CaptureFixture[str]) -> None:
    source = "print('loaded')\nraise SystemExit\ndef f():\n    return 1\n"
    function = Program.parse(source, "planner.py").function("f")
    assert function is not None
    assert run_on_numbers(function) == Returned(1)
    assert capfd.readouterr().out == ""


def test_calls_may_be_nested_as_deep_as_is_said() -> None:
    source = "def f(n):\n    return n if n == 0 else (f(n - 1))\n"
    function = Program.parse(source, "planner.py").function("f")
    assert function is not None
    deepest = interpreter.DEEPEST - 1
    assert run_on_numbers(function, deepest) == Returned(0)
    assert by_cpython(source, "f", [deepest]) == ("int", 0)
    with pytest.raises(UnsupportedError, match="deeper than 60"):
        run_on_numbers(function, deepest + 1)
