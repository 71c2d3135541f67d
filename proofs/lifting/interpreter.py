# SPDX-License-Identifier: Apache-2.0
"""Work through a function: its calls, its objects, and what it goes over in loops."""

from __future__ import annotations

import ast
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING

from kvreshard.proofs.lifting import builtins_known
from kvreshard.proofs.lifting.classes import class_value, methods
from kvreshard.proofs.lifting.expressions import EXPRESSIONS, comprehended, said
from kvreshard.proofs.lifting.program import imported
from kvreshard.proofs.lifting.scope import Scope, far_reaching, is_hidden, local_names
from kvreshard.proofs.lifting.statements import (
    BreakError,
    ContinueError,
    ReturnsError,
    bind,
    run_block,
)
from kvreshard.proofs.lifting.unsupported import PythonRaises, UnsupportedError
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
    is_frozen,
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

# A known number of more bits than this is no planner's; more digits Python would not print either.
MOST_BITS = 10_000

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
        # What is being worked out as if the module were loaded: the names bound by statements.
        self._loading: list[tuple[Program, str]] = []

    def evaluate(self, scope: Scope, node: ast.expr) -> Value:
        """Return the value of an expression.

        Raises:
            UnsupportedError: its meaning is not known.
            PythonRaises: it raises an exception on this way.
        """
        self.path.step(node, scope.file)
        if isinstance(node, ast.Call):
            value = self._call_node(scope, node)
        else:
            known = EXPRESSIONS.get(type(node))
            if known is None:
                raise scope.unsupported(node, f"a {type(node).__name__}: {said(node)}")
            value = known(self, scope, node)
        if is_integer(value):
            if is_known(value) and value.bit_length() > MOST_BITS:
                raise scope.unsupported(node, f"a number of more than {MOST_BITS} bits")
            self.path.meaning.computed(value, node)
        return value

    def assign(self, scope: Scope, target: ast.expr, value: Value) -> None:
        """Give a value to a target."""
        bind(self, scope, target, value)

    def global_value(self, scope: Scope, node: ast.Name) -> Value:
        """Return what a name means to a module, or to Python."""
        program, name = scope.program, node.id
        self._check_order(scope, node)
        if name in program.values:
            return program.values[name]
        statement = program.statement(name, node, scope.file)
        if statement is None:
            if name in self.builtins:
                return self.builtins[name]
            raise scope.unsupported(node, f"the name {name}")
        program.values[name] = self._meaning(program, name, statement)
        return program.values[name]

    def _check_order(self, scope: Scope, node: ast.Name) -> None:
        """Refuse a name that is read as the module is loaded, before it is bound."""
        for program, loaded in self._loading:
            own = program is scope.program and node.id in program.bindings
            if own and program.position(node.id) >= program.position(loaded):
                raise scope.unsupported(node, f"{node.id}, before it is bound")

    def _meaning(self, program: Program, name: str, statement: ast.stmt) -> Value:
        named = getattr(statement, "name", name) == name
        if isinstance(statement, ast.FunctionDef) and named:
            return FunctionValue(program, statement)
        if isinstance(statement, ast.ClassDef) and named:
            return class_value(program, statement)
        if isinstance(statement, (ast.Import, ast.ImportFrom)):
            return imported(statement, name)
        targets: list[ast.expr] = []
        if isinstance(statement, ast.Assign):
            targets = statement.targets
        elif isinstance(statement, ast.AnnAssign):
            targets = [statement.target]
        value = getattr(statement, "value", None)
        if len(targets) != 1 or not isinstance(targets[0], ast.Name) or value is None:
            raise UnsupportedError(statement, f"what {name} means", program.shown)
        if targets[0].id != name:
            raise UnsupportedError(statement, f"what {name} means", program.shown)
        if self._is_logger(program, value):
            return Logger()
        return self._loaded(program, name, value)

    def _loaded(self, program: Program, name: str, node: ast.expr) -> Value:
        """Return what an expression gives as the module is loaded, in the statement of a name."""
        self._loading.append((program, name))
        try:
            value = self.evaluate(Scope(self.path, program), node)
        except PythonRaises as raised:
            what = f"a module that raises {raised.kind} as it is loaded"
            raise UnsupportedError(node, what, program.shown) from raised
        finally:
            self._loading.pop()
        if not is_frozen(value):
            what = f"a {kind_of(value)} that calls may change: {said(node)}"
            raise UnsupportedError(node, what, program.shown)
        return value

    def _is_logger(self, program: Program, node: ast.expr) -> bool:
        """Whether a call makes a logger, by the name of an imported function."""
        called = node.func if isinstance(node, ast.Call) else None
        origin = program.origin(called) if called else ""
        return "." in origin and origin.rpartition(".")[2] in _LOGGERS

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
            if is_hidden(keyword.arg):
                raise scope.unsupported(node, f"the keyword {keyword.arg}")
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
        check_definition(definition, program, function.is_bound)
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
                # A default is computed once, as the function is defined.
                owner = function.bound.kind if isinstance(function.bound, Record) else function
                bound[one.arg] = self._loaded(function.program, owner.node.name, defaults[one.arg])
        return bound

    def _made(
        self,
        scope: Scope,
        node: ast.Call,
        kind: ClassValue,
        arguments: Sequence[Value],
        keywords: Mapping[str, Value],
    ) -> Record:
        names = [name for name, _ in kind.fields]
        if len(arguments) > (0 if kind.keyword_only else len(names)):
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
                given[name] = self._loaded(kind.program, kind.name, default)
                if isinstance(given[name], Record) and not kind.is_tuple:
                    # Python refuses some of these as defaults of a dataclass.
                    raise unsupported_at(kind, f"the default {said(default)} of {name}")
        made = Record(kind, {name: given[name] for name in names})
        after = methods(kind).get("__post_init__")
        if after is not None and not kind.is_tuple:
            method = FunctionValue(kind.program, after, made, is_bound=True)
            if after.decorator_list:
                raise unsupported_at(method, "a decorator of __post_init__")
            self.run_function(scope, node, method, [made], {})
        return made

    def member(self, scope: Scope, record: Record, node: ast.Attribute) -> Value:
        """Return a field, a property's value or a bound method of an object."""
        if node.attr in record.fields:
            return record.fields[node.attr]
        one = methods(record.kind).get(node.attr)
        if one is not None:
            method = FunctionValue(record.kind.program, one, record, is_bound=True)
            check_definition(one, record.kind.program, True)
            decorators = decorators_of(one, record.kind.program)
            if decorators == ["property"]:
                return self.run_function(scope, node, method, [record], {})
            return replace(method, is_bound=decorators != ["staticmethod"])
        raise scope.unsupported(node, f"the attribute {node.attr} of a {kind_of(record)}")

    def iterate(self, scope: Scope, value: Value, node: ast.AST) -> Iterator[Value]:
        """Return the items of a value, to be taken one by one as a loop does."""
        if isinstance(value, Range):
            return self._turns(scope, value, node)
        if isinstance(value, Lazily):
            return value.items
        if isinstance(value, Record) and value.kind.is_tuple:
            return iter(tuple(value.fields.values()))
        if isinstance(value, (tuple, list)):
            return self._items(scope, value, node)
        raise scope.unsupported(node, f"a loop over a {kind_of(value)}")

    def _items(self, scope: Scope, value: Sequence[Value], node: ast.AST) -> Iterator[Value]:
        """Yield items; a list may grow or shrink meanwhile."""
        at = 0
        while at < len(value):
            yield value[at]
            at += 1
            if at > MOST_KNOWN_TURNS:
                raise scope.unsupported(node, f"more than {MOST_KNOWN_TURNS} turns of a loop")

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


@lru_cache(maxsize=1024)
def check_definition(definition: ast.FunctionDef, program: Program, is_bound: bool) -> None:
    """Refuse what changes the meaning of a whole function."""
    decorators = decorators_of(definition, program)
    if decorators not in ([], ["staticmethod"], ["property"] if is_bound else []):
        what = f"the decorator {', '.join(decorators)}"
        raise UnsupportedError(definition, what, program.shown)
    if getattr(definition, "type_params", None):
        raise UnsupportedError(definition, "a type parameter", program.shown)
    changing = far_reaching(definition)
    if changing is not None:
        raise UnsupportedError(changing, f"in {definition.name}: {said(changing)}", program.shown)


def decorators_of(definition: ast.FunctionDef, program: Program) -> list[str]:
    """Return the decorators of a function: Python's and imported ones by name, others as text."""
    return [program.origin(node) or f"@{said(node)}" for node in definition.decorator_list]


def unsupported_at(defined: FunctionValue | ClassValue, what: str) -> UnsupportedError:
    """Return the error for a function or class whose definition is not known."""
    return UnsupportedError(defined.node, what, defined.program.shown)
