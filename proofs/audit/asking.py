# SPDX-License-Identifier: Apache-2.0
"""Ask a lifted planner through its contract, with numbers or with z3 expressions."""

from __future__ import annotations

import ast
import copy
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING

from kvreshard.proofs.lifting.expressions import truth
from kvreshard.proofs.lifting.path import Meaning, Path
from kvreshard.proofs.lifting.run import RaisedAt, Returned, run_along
from kvreshard.proofs.lifting.scope import Scope, local_names
from kvreshard.proofs.lifting.values import (
    FunctionValue,
    Integer,
    Record,
    Truth,
    is_integer,
    kind_of,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kvreshard.proofs.audit.contract import Contract
    from kvreshard.proofs.lifting.values import Value

# A copy: source offset, target offset and count, in the contract's unit.
Triple = tuple[Integer, Integer, Integer]


class ContractMismatchError(ValueError):
    """The contract does not fit the target: the call fails, or the answer is not what it says."""


@dataclass(frozen=True)
class Copies:
    """What a producer rank copies into a consumer rank's block."""

    copies: tuple[Triple, ...]


@dataclass(frozen=True)
class Asking:
    """A lifted planner and its contract.

    Attributes:
        contract: how it is asked.
        planner: the audited function.
        guard: the function that is asked before anything is sent; None if there is none.
    """

    contract: Contract
    planner: FunctionValue
    guard: FunctionValue | None

    def plan(self, path: Path, given: Mapping[str, Value]) -> Copies | RaisedAt:
        """Return what is copied for a pair of ranks, or where the planner raises.

        Raises:
            UnsupportedError: the planner or the contract cannot be lifted.
            ContractMismatchError: the contract does not fit the planner.
        """
        planner = _with_optional(self.planner, self.contract.optional_arguments)
        outcome = self._asked(path, "plan", {**given, "planner": planner})
        if isinstance(outcome, RaisedAt):
            return outcome
        return Copies(tuple(self._triple(one) for one in self._listed(outcome.value)))

    def pairs(self, path: Path, given: Mapping[str, Value]) -> bool:
        """Return whether two ranks meet; the way parts where that is not known."""
        return self._decided(path, "pairs", given)

    def in_domain(self, path: Path, given: Mapping[str, Value]) -> bool:
        """Return whether the planner is meant for the sizes."""
        return self._decided(path, "in_domain", given)

    def refused(self, path: Path, given: Mapping[str, Value]) -> bool | None:
        """Return whether the guard refuses, or None if there is none. A guard that raises does."""
        if self.guard is None:
            return None
        guard = _with_optional(self.guard, self.contract.optional_arguments)
        outcome = self._asked(path, "refused", {**given, "guard": guard})
        return isinstance(outcome, RaisedAt) or self._truth(path, outcome.value, "refused")

    def expected_producer(self, path: Path, given: Mapping[str, Value]) -> Integer | None:
        """Return the rank that is expected to send a head, or None where the contract is silent."""
        if self.contract.function("expected_producer") is None:
            return None
        outcome = self._asked(path, "expected_producer", given)
        if isinstance(outcome, RaisedAt) or not is_integer(outcome.value):
            raise self._mismatch("expected_producer does not return a rank")
        return outcome.value

    def _decided(self, path: Path, name: str, given: Mapping[str, Value]) -> bool:
        if self.contract.function(name) is None:
            return True
        outcome = self._asked(path, name, given)
        if isinstance(outcome, RaisedAt):
            raise self._mismatch(f"{name} raises {outcome.kind} at line {outcome.line}")
        return self._truth(path, outcome.value, name)

    def _truth(self, path: Path, value: Value, name: str) -> bool:
        function = self.contract.function(name)
        node = function.node if function else ast.Pass(lineno=1, col_offset=0)
        held: Truth = truth(value, Scope(path, self.contract.program), node)
        return path.decide(held, node)

    def _asked(self, path: Path, name: str, given: Mapping[str, Value]) -> Returned | RaisedAt:
        function = self.contract.function(name)
        if function is None:
            raise ValueError(f"name={name}; legal: a function of {self.contract.name}")
        wanted = [one.arg for one in function.node.args.args]
        outcome = run_along(path, function, [given[one] for one in wanted])
        if isinstance(outcome, RaisedAt) and outcome.file == self.contract.program.shown:
            hint = f"; the target is {_signature(self.planner)}" if name == "plan" else ""
            raise self._mismatch(f"line {outcome.line} of it raises {outcome.kind}{hint}")
        return outcome

    def _listed(self, value: Value) -> list[Value]:
        if not isinstance(value, (list, tuple)):
            raise self._mismatch(f"plan gives a {kind_of(value)}, not a list of copies")
        return list(value)

    def _triple(self, value: Value) -> Triple:
        is_named = isinstance(value, Record) and value.kind.is_tuple
        items = tuple(value.fields.values()) if is_named else value
        whole = isinstance(items, (tuple, list)) and len(items) == 3
        if not whole or not all(is_integer(one) for one in items):
            said = f"a {value.kind.name}" if isinstance(value, Record) else repr(value)
            raise self._mismatch(f"a copy is {said}, not three integers")
        return tuple(items)

    def _mismatch(self, what: str) -> ContractMismatchError:
        return ContractMismatchError(
            f"the contract {self.contract.name} does not fit {self.planner.node.name}: {what}"
        )


def _signature(function: FunctionValue) -> str:
    return f"{function.node.name}({ast.unparse(function.node.args)})"


@lru_cache(maxsize=64)
def _with_optional(function: FunctionValue, names: tuple[str, ...]) -> FunctionValue:
    """Return the function with the parameters that it lacks, which it does not use.

    One that it reads, from its module, is not added: the call then does not fit.
    """
    declared = function.node.args
    own = {one.arg for one in (*declared.posonlyargs, *declared.args, *declared.kwonlyargs)}
    body = [node for line in function.node.body for node in ast.walk(line)]
    read = {node.id for node in body if isinstance(node, ast.Name)} - local_names(function.node)
    lacking = [name for name in names if name not in own | read]
    if not lacking:
        return function
    node = copy.copy(function.node)
    node.args = copy.copy(declared)
    node.args.kwonlyargs = [*declared.kwonlyargs, *(ast.arg(name) for name in lacking)]
    node.args.kw_defaults = [*declared.kw_defaults, *(ast.Constant(None) for _ in lacking)]
    return replace(function, node=node)


def plain_path() -> Path:
    """Return a path for known numbers."""
    return Path(Meaning())
