# SPDX-License-Identifier: Apache-2.0
"""Random modules of constructs that the lifter knows, some of which raise."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import random

HEAD = """\
from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

ONE = {one}
SEVERAL = ({one}, ONE + 1, -{two})


class Pair(NamedTuple):
    left: int
    right: int = ONE

    @property
    def total(self) -> int:
        return self.left {op} self.right

    def moved(self, by: int = {two}) -> Pair:
        return Pair(self.left + by, right=self.right)


@dataclass(frozen=True)
class Box:
    low: int
    high: int = ONE * 2
    mark: None = None

    def __post_init__(self) -> None:
        assert self.low != {one}, f"{{self.low}} is {{self.high}}"
        if self.high < self.low:
            raise ValueError(f"low={{self.low}}")

    @property
    def width(self) -> int:
        return self.high - self.low

    def holds(self, x: int) -> bool:
        return self.low <= x < self.high
"""


@dataclass
class Writer:
    """Writes one module.

    Attributes:
        random: what decides.
        numbers, lists: names that may be read as integers, and as lists of integers.
        helpers: functions that may be called.
        lines: what is written of the function so far.
        budget: how many statements may still be written.
        looping: how many loops the next statement is within.
    """

    random: random.Random
    numbers: list[str] = field(default_factory=list)
    lists: list[str] = field(default_factory=list)
    helpers: list[str] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    budget: int = 0
    looping: int = 0

    def pick(self, *options: str) -> str:
        return self.random.choice(options)

    def small(self) -> str:
        return str(self.random.choice([-3, -2, -1, 0, 1, 2, 3, 5]))

    def number(self, depth: int) -> str:
        """Write an expression that gives an integer, or raises."""
        if depth <= 0:
            return self.pick(*self.numbers, *self.numbers, self.small(), "ONE", "True")
        one, two = self.number(depth - 1), self.number(depth - 1)
        options = [
            f"({one} {self.pick('+', '-', '*')} {two})",
            f"({one} {self.pick('//', '%')} {two})",
            f"({one} {self.pick('//', '%')} {self.pick('2', '-3', '4')})",
            f"({one} {self.pick('<<', '>>', '**')} {self.pick('0', '1', '2')})",
            f"(-({one}))",
            f"abs({one})",
            f"{self.pick('min', 'max')}(+({one}), +({two}), 2)",
            f"({one} if {self.truth(depth - 1)} else {two})",
            f"({one} {self.pick('and', 'or')} {two})",
            f"int({self.truth(depth - 1)})",
            f"({self.truth(depth - 1)} + {one})",
            f"divmod({one}, {two})[{self.pick('0', '1', '-1')}]",
            f"SEVERAL[{self.pick('0', '1', '-1')}]",
            f"(SEVERAL + ({one},))[{self.number(depth - 2)} % 4]",
            f"Pair({one}, {two}).total",
            f"Pair(right={one}, left={two}).moved({self.pick('', one)})[{self.pick('0', '1')}]",
            f"Box({one}).width",
            f"len({self.items(depth - 1)})",
            f"sum({self.items(depth - 1)})",
            f"sum(i * {one} for i in {self.items(depth - 1)})",
        ]
        options += [f"{name}({one}, {self.pick('', two, f'z={two}')})" for name in self.helpers]
        return self.random.choice(options)

    def truth(self, depth: int) -> str:
        """Write an expression that gives a truth value, or raises."""
        if depth <= 0:
            compared = self.pick("<", "<=", ">", ">=", "==", "!=")
            return f"({self.number(0)} {compared} {self.number(0)})"
        one, two = self.number(depth - 1), self.number(depth - 1)
        first, second = self.truth(depth - 1), self.truth(depth - 1)
        return self.pick(
            f"({one} {self.pick('<', '==', '>=')} {two} {self.pick('<=', '!=')} {self.number(0)})",
            f"({first} {self.pick('and', 'or', '==', '!=')} {second})",
            f"(not {self.pick(first, one)})",
            f"bool({one})",
            f"({one} {self.pick('in', 'not in')} ({two}, 1, True))",
            f"(({one}) in range({two}))",
            f"({self.pick(one, 'None', f'Box({one}).mark')} {self.pick('is', 'is not')} None)",
            f"{self.pick('any', 'all')}({one} < i for i in {self.items(depth - 1)})",
            f"{self.pick('any', 'all')}(({first}, {one}, {second}))",
            f"(({one}, {two}) == (1, {self.number(0)}))",
            f"Box({one}, {two}).holds({self.number(0)})",
        )

    def items(self, depth: int) -> str:
        """Write an expression that gives a short list of integers, or raises."""
        if depth <= 0:
            return self.pick(*self.lists, f"[{self.number(0)}, {self.number(0)}]", "[*range(2)]")
        one = self.number(depth - 1)
        return self.pick(
            f"[{one} + i for i in range({self.pick('0', '2', '3')}) if {self.truth(depth - 1)}]",
            f"[i * j for i in {self.items(depth - 1)} for j in range(i % 2)]",
            f"({self.items(depth - 1)} + [{one}])",
            f"({self.items(depth - 1)} * {self.pick('0', '1', '2')})",
            f"list({self.items(depth - 1)})",
            f"list(reversed({self.pick('range(3)', self.items(depth - 1))}))",
            f"{self.items(depth - 1)}[{self.pick('1:', ':-1', '::-1', ':', '::2')}]",
            f"[i + j for i, j in enumerate({self.items(depth - 1)})]",
            f"[i - j for i, j in zip({self.items(depth - 1)}, SEVERAL)]",
        )

    def write(self, indent: int, text: str) -> None:
        self.lines.append("    " * indent + text)

    def block(self, indent: int) -> None:
        """Write a block of statements; names that it binds may stay unbound on other ways."""
        for _ in range(self.random.randint(1, 3)):
            if self.budget <= 0:
                break
            self.statement(indent)
        self.write(indent, "pass")

    def statement(self, indent: int) -> None:
        self.budget -= 1
        known = [
            *(self.assign, self.assign, self.augment, self.unpack, self.fill, self.branch),
            *(self.branch, self.loop, self.loop, self.leave, self.check, self.change),
        ]
        self.random.choice(known)(indent)

    def assign(self, indent: int) -> None:
        name = self.pick("x", "y", "i", "a")
        self.write(indent, f"{name} = {self.number(2)}")
        if name not in self.numbers:
            self.numbers.append(name)

    def augment(self, indent: int) -> None:
        name = self.pick(*self.numbers, "x")
        self.write(indent, f"{name} {self.pick('+=', '-=', '*=', '//=', '%=')} {self.number(1)}")

    def unpack(self, indent: int) -> None:
        value = self.pick(
            f"{self.number(1)}, {self.number(1)}",
            f"divmod({self.number(1)}, {self.number(0)})",
            f"Pair({self.number(1)})",
            f"{self.items(1)}",
            "y, x",
        )
        self.write(indent, f"x, y = {value}")
        self.numbers = sorted({*self.numbers, "x", "y"})

    def fill(self, indent: int) -> None:
        name = self.pick("s", "t")
        self.write(indent, f"{name} = {self.pick(*self.lists, self.items(2))}")
        if name not in self.lists:
            self.lists.append(name)

    def change(self, indent: int) -> None:
        if self.looping and self.pick("grows", "is set") == "is set":
            self.write(indent, f"{self.pick(*self.lists, 's')}[0] = {self.number(1)}")
            return
        name = "built" if self.looping else self.pick(*self.lists, "s", "built")
        self.write(
            indent,
            self.pick(
                f"{name}.append({self.number(1)})",
                f"{name}.extend({self.items(1)})",
                f"{name} += {self.items(1)}",
                f"{name}[{self.pick('0', '-1', self.number(0))}] = {self.number(1)}",
            ),
        )

    def branch(self, indent: int) -> None:
        self.write(indent, f"if {self.pick(self.truth(1), self.number(1))}:")
        self.block(indent + 1)
        if self.random.random() < 0.3:
            self.write(indent, f"elif {self.truth(1)}:")
            self.block(indent + 1)
        if self.random.random() < 0.5:
            self.write(indent, "else:")
            self.block(indent + 1)

    def loop(self, indent: int) -> None:
        name = self.pick("i", "j")
        header = self.pick(
            f"for {name} in range({self.pick('0', '2', '3')})",
            f"for {name} in range({self.pick('3, 0, -2', '0, 4, 2', '-1, 1')})",
            f"for {name} in range(min(+{self.number(0)}, 2))",
            f"for {name} in {self.items(1)}",
            f"for {name} in {self.pick(*self.lists, 'SEVERAL')}",
            f"for {name}, x in enumerate({self.items(1)})",
            f"for x, {name} in zip({self.items(0)}, {self.items(0)})",
        )
        self.write(indent, f"{header}:")
        self.numbers = sorted({*self.numbers, name})
        # A list that grew while it is gone over would have no end.
        self.looping += 1
        self.block(indent + 1)
        self.looping -= 1
        if self.random.random() < 0.4:
            self.write(indent, "else:")
            self.block(indent + 1)

    def leave(self, indent: int) -> None:
        if self.random.random() < 0.6:
            self.write(indent, f"if {self.truth(1)}:")
            indent += 1
        if self.looping and self.random.random() < 0.6:
            self.write(indent, self.pick("break", "continue"))
        else:
            self.returns(indent)

    def returns(self, indent: int) -> None:
        value = self.pick(
            self.number(2),
            self.truth(2),
            self.items(2),
            "None",
            f"({self.number(1)}, {self.truth(1)})",
            f"Pair({self.number(1)}, {self.number(0)})",
            f"Box({self.number(1)}, {self.number(0)})",
            "built",
            *self.lists,
        )
        self.write(indent, f"return {value}")

    def check(self, indent: int) -> None:
        if self.random.random() < 0.5:
            self.write(indent, f"assert {self.truth(1)}, f'{{{self.number(1)}}} is wrong'")
        else:
            kind = self.pick("ValueError", "KeyError", "Exception")
            self.write(indent, f"if {self.truth(1)}:")
            self.write(indent + 1, f"raise {kind}({self.pick('', self.number(1))})")

    def helper(self, name: str, statements: int) -> None:
        self.numbers, self.lists, self.budget = ["x", "y", "z"], [], statements
        self.write(0, f"def {name}(x, y=ONE, *, z={self.small()}):")
        self.write(1, "built = []")
        self.block(1)
        self.write(1, f"return {self.number(1)}")
        self.write(0, "")

    def function(self, statements: int) -> None:
        self.numbers, self.lists, self.budget = ["a", "b", "c"], ["s"], statements
        self.write(0, "def f(a, b, c):")
        self.write(1, f"s = [{self.pick('', 'a', 'a, 1')}]")
        self.write(1, "built = []")
        while self.budget > 0:
            self.block(1)
        self.returns(1)


def random_module(generator: random.Random, statements: int) -> str:
    """Return a module with a function f(a, b, c) of so many statements."""
    writer = Writer(generator)
    writer.helper("helped", 2)
    writer.helpers = ["helped"]
    writer.function(statements)
    op = writer.pick("+", "//", "-")
    head = HEAD.format(one=writer.pick("1", "2", "3"), two=writer.pick("1", "4"), op=op)
    return head + "\n\n" + "\n".join(writer.lines) + "\n"
