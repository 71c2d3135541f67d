# SPDX-License-Identifier: Apache-2.0
"""Work through a function: its calls, its objects, and what it goes over in loops."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from kvreshard.proofs.lifting import builtins_known
from kvreshard.proofs.lifting.expressions import EXPRESSIONS, comprehended, said
from kvreshard.proofs.lifting.program import class_value, imported
from kvreshard.proofs.lifting.scope import Scope, local_names
from kvreshard.proofs.lifting.statements import (
    BreakError,
    ContinueError,
    ReturnsError,
    bind,
    run_block,
)
from kvreshard.proofs.lifting.unsupported import UnsupportedError
from kvreshard.proofs.lifting.values import (
    Builtin,
    ClassValue,
    FunctionValue,
    Imported,
    Lazily,
    Logger,
    Range,
    Record,
    Value,
    is_integer,
    is_known,
    kind_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from kvreshard.proofs.lifting.path import Path
    from kvreshard.proofs.lifting.program import Program

# Calls within calls; a planner recurses little, and Python itself stops at 1,000.
DEEPEST = 60
# Turns of a loop whose end is not a known number, and of one whose end is.
MOST_TURNS, MOST_KNOWN_TURNS = 64, 100_000

_LOGGERS = {"getLogger", "init_logger"}


class Interpreter:
    """Works through functions along a path.

    Attributes:
        path: the way through the code.
        builtins: what names mean that a module does not bind.
    """

    def __init__(self, path: Path, builtins: Mapping[str, Value] | None = None) -> None:
        """Start on a path; `builtins` stand in place of Python's own."""
        self.path = path
        self.builtins = builtins_known.BUILTINS if builtins is None else builtins

    def evaluate(self, scope: Scope, node: ast.expr) -> Value:
        """Return the value of an expression.

        Raises:
            UnsupportedError: its meaning is not known.
            PythonRaises: it raises an exception on this way.
        """
        if isinstance(node, ast.Call):
            value = self._call_node(scope, node)
        else:
            known = EXPRESSIONS.get(type(node))
            if known is None:
                raise scope.unsupported(node, f"a {type(node).__name__}: {said(node)}")
            value = known(self, scope, node)
        if is_integer(value):
            self.path.meaning.computed(value, node)
        return value

    def assign(self, scope: Scope, target: ast.expr, value: Value) -> None:
        """Give a value to a target."""
        bind(self, scope, target, value)

    def global_value(self, scope: Scope, node: ast.Name) -> Value:
        """Return what a name means to a module, or to Python."""
        program, name = scope.program, node.id
        if name in program.values:
            return program.values[name]
        statement = program.statement(name, node, scope.file)
        if statement is None:
            if name in self.builtins:
                return self.builtins[name]
            raise scope.unsupported(node, f"the name {name}")
        value = self._meaning(program, name, statement)
        # A list could be changed on one way and seen on another.
        if not isinstance(value, list):
            program.values[name] = value
        return value

    def _meaning(self, program: Program, name: str, statement: ast.stmt) -> Value:
        scope = Scope(self.path, program)
        if isinstance(statement, ast.FunctionDef):
            return FunctionValue(program, statement)
        if isinstance(statement, ast.ClassDef):
            return class_value(program, statement)
        if isinstance(statement, (ast.Import, ast.ImportFrom)):
            return imported(statement, name)
        targets = (
            statement.targets
            if isinstance(statement, ast.Assign)
            else [statement.target]
            if isinstance(statement, ast.AnnAssign)
            else []
        )
        value = getattr(statement, "value", None)
        if len(targets) != 1 or not isinstance(targets[0], ast.Name) or value is None:
            raise scope.unsupported(statement, f"what {name} means")
        if _is_logger(value):
            return Logger()
        found = self.evaluate(scope, value)
        if isinstance(found, list):
            raise scope.unsupported(statement, f"{name}, a list that any function may change")
        return found

    def _call_node(self, scope: Scope, node: ast.Call) -> Value:
        called = self.evaluate(scope, node.func)
        takes_all = isinstance(called, Builtin) and called.name in builtins_known.TAKES_ALL
        arguments: list[Value] = []
        for argument in node.args:
            if isinstance(argument, ast.Starred):
                raise scope.unsupported(node, f"a starred argument: {said(node)}")
            if isinstance(argument, ast.GeneratorExp) and takes_all:
                arguments.append(Lazily(comprehended(self, scope, argument)))
            else:
                arguments.append(self.evaluate(scope, argument))
        keywords = {}
        for keyword in node.keywords:
            if keyword.arg is None:
                raise scope.unsupported(node, f"keywords from a mapping: {said(node)}")
            keywords[keyword.arg] = self.evaluate(scope, keyword.value)
        return self.call(scope, node, called, arguments, keywords)

    def call(
        self,
        scope: Scope,
        node: ast.Call,
        called: Value,
        arguments: Sequence[Value],
        keywords: Mapping[str, Value],
    ) -> Value:
        """Call a value with evaluated arguments."""
        if isinstance(called, Builtin):
            if keywords:
                raise scope.unsupported(node, f"a keyword for {called.name}: {said(node)}")
            return called.call(self, scope, node, *arguments)
        if isinstance(called, ClassValue):
            return self._made(scope, node, called, arguments, keywords)
        if isinstance(called, FunctionValue):
            own = [called.bound, *arguments] if called.is_bound else list(arguments)
            return self.run_function(scope, node, called, own, keywords)
        if isinstance(called, Imported):
            what = f"{called.name or called.module}, imported from {called.module}"
            raise scope.unsupported(node, f"a call of {what}")
        raise scope.unsupported(node, f"a call of a {kind_of(called)}: {said(node)}")

    def run_function(
        self,
        scope: Scope,
        node: ast.AST,
        function: FunctionValue,
        arguments: Sequence[Value],
        keywords: Mapping[str, Value],
    ) -> Value:
        """Run a function of a program and return what it returns."""
        definition, program = function.node, function.program
        inner = Scope(self.path, program, {}, local_names(definition), scope.depth + 1)
        if inner.depth > DEEPEST:
            raise scope.unsupported(node, f"calls within calls, deeper than {DEEPEST}")
        legal = {"property", "staticmethod"} if function.is_bound else {"staticmethod"}
        for decorator in definition.decorator_list:
            if ast.unparse(decorator) not in legal:
                raise inner.unsupported(definition, f"the decorator {ast.unparse(decorator)}")
        inner.local.update(self._bound(scope, node, function, arguments, keywords))
        try:
            run_block(self, inner, definition.body)
        except ReturnsError as returns:
            return returns.value
        except (BreakError, ContinueError) as stray:
            raise inner.unsupported(definition, "a loop's statement outside a loop") from stray
        return None

    def _bound(
        self,
        scope: Scope,
        node: ast.AST,
        function: FunctionValue,
        arguments: Sequence[Value],
        keywords: Mapping[str, Value],
    ) -> dict[str, Value]:
        """Bind arguments to parameters as Python does."""
        declared = function.node.args
        if declared.vararg or declared.kwarg:
            raise unsupported_at(function, "parameters that take any number of arguments")
        positional = [*declared.posonlyargs, *declared.args]
        names = [one.arg for one in positional]
        if len(arguments) > len(names):
            raise scope.raises("TypeError", node)
        bound = dict(zip(names, arguments, strict=False))
        by_keyword = {one.arg for one in (*declared.args, *declared.kwonlyargs)}
        for keyword, value in keywords.items():
            if keyword not in by_keyword or keyword in bound:
                raise scope.raises("TypeError", node)
            bound[keyword] = value
        defaults = dict(zip(names[::-1], declared.defaults[::-1], strict=False))
        defaults |= {
            one.arg: default
            for one, default in zip(declared.kwonlyargs, declared.kw_defaults, strict=True)
            if default is not None
        }
        for one in (*positional, *declared.kwonlyargs):
            if one.arg not in bound:
                if one.arg not in defaults:
                    raise scope.raises("TypeError", node)
                bound[one.arg] = self._default(function.program, defaults[one.arg])
        return bound

    def _default(self, program: Program, node: ast.expr) -> Value:
        scope = Scope(self.path, program)
        value = self.evaluate(scope, node)
        if isinstance(value, list):
            raise scope.unsupported(node, "a default that calls may change")
        return value

    def _made(
        self,
        scope: Scope,
        node: ast.Call,
        kind: ClassValue,
        arguments: Sequence[Value],
        keywords: Mapping[str, Value],
    ) -> Record:
        names = [name for name, _ in kind.fields]
        if len(arguments) > len(names):
            raise scope.raises("TypeError", node)
        given = dict(zip(names, arguments, strict=False))
        for keyword, value in keywords.items():
            if keyword not in names or keyword in given:
                raise scope.raises("TypeError", node)
            given[keyword] = value
        for name, default in kind.fields:
            if name not in given:
                if default is None:
                    raise scope.raises("TypeError", node)
                given[name] = self._default(kind.program, default)
        made = Record(kind, {name: given[name] for name in names})
        methods = {one.name: one for one in kind.node.body if isinstance(one, ast.FunctionDef)}
        for own in methods:
            if own.startswith("__") and own != "__post_init__":
                raise unsupported_at(FunctionValue(kind.program, methods[own]), f"the method {own}")
        if "__post_init__" in methods and not kind.is_tuple:
            method = FunctionValue(kind.program, methods["__post_init__"], made, is_bound=True)
            self.run_function(scope, node, method, [made], {})
        return made

    def member(self, scope: Scope, record: Record, node: ast.Attribute) -> Value:
        """Return a field, a property's value or a bound method of an object."""
        if node.attr in record.fields:
            return record.fields[node.attr]
        for one in record.kind.node.body:
            if isinstance(one, ast.FunctionDef) and one.name == node.attr:
                decorators = [ast.unparse(decorator) for decorator in one.decorator_list]
                static = decorators == ["staticmethod"]
                method = FunctionValue(record.kind.program, one, record, is_bound=not static)
                if decorators == ["property"]:
                    return self.run_function(scope, node, method, [record], {})
                return method
        raise scope.unsupported(node, f"the attribute {node.attr} of a {kind_of(record)}")

    def iterate(self, scope: Scope, value: Value, node: ast.AST) -> Iterator[Value]:
        """Yield the items of a value, one by one, as a loop over it takes them."""
        if isinstance(value, Range):
            yield from self._turns(scope, value, node)
        elif isinstance(value, Lazily):
            yield from value.items
        elif isinstance(value, Record) and value.kind.is_tuple:
            yield from value.fields.values()
        elif isinstance(value, (tuple, list)):
            at = 0
            while at < len(value):
                yield value[at]
                at += 1
                if at > MOST_KNOWN_TURNS:
                    raise scope.unsupported(node, f"more than {MOST_KNOWN_TURNS} turns of a loop")
        else:
            raise scope.unsupported(node, f"a loop over a {kind_of(value)}")

    def _turns(self, scope: Scope, over: Range, node: ast.AST) -> Iterator[Value]:
        at, turns = over.start, 0
        known = is_known(over.start) and is_known(over.stop)
        most = MOST_KNOWN_TURNS if known else MOST_TURNS
        while self.path.decide(at < over.stop if over.step > 0 else at > over.stop, node):
            turns += 1
            if turns > most:
                raise scope.unsupported(node, f"more than {most} turns of a loop")
            yield at
            at = at + over.step


def unsupported_at(function: FunctionValue, what: str) -> UnsupportedError:
    """Return the error for a function whose definition is not known."""
    return UnsupportedError(function.node, what, function.program.shown)


def _is_logger(node: ast.expr) -> bool:
    if not isinstance(node, ast.Call):
        return False
    called = node.func
    name = called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")
    return name in _LOGGERS
