# SPDX-License-Identifier: Apache-2.0
"""Contracts: how a planner is called and what its answer means.

A contract is one Python file of plain functions and constants, shipped or the user's own. It is
parsed and given its meaning like the planner itself, so that one text serves for plain numbers,
for proofs, and beside a target that is executed.

Its constants:

UNIT
    What a copy counts in: "bytes" or "heads".
DOMAIN
    The sizes that the planner is meant for, in words.
OUTSIDE
    What the contract leaves out, a sentence each. May be absent.
GUARD
    The function of the target's file that is asked before anything is sent. May be absent.
OPTIONAL_ARGUMENTS
    Keywords that older releases of the planner or the guard lack. May be absent.
EXECUTED_ONLY, PACKAGE
    True where the planner cannot be lifted, or spans a package: an audit then needs --exec.

Its functions take the parameters that they name, of `PARAMETERS`:

plan(planner, ...)
    The copies that one producer rank makes into one consumer rank's block, as a list of
    (source offset, target offset, count).
pairs(...)
    Whether the two ranks meet at all; a pair that does not copies nothing. May be absent.
in_domain(...)
    Whether the planner is meant for the sizes, which are legal. May be absent.
refused(guard, ...)
    Whether the guard refuses before anything is sent. May be absent.
expected_producer(..., head)
    For a proof of coverage: the producer rank that is expected to send a head. May be absent.
"""

from __future__ import annotations

import ast
import difflib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kvreshard.proofs.lifting.program import Program

if TYPE_CHECKING:
    from kvreshard.proofs.lifting.values import FunctionValue

PARAMETERS = (
    "total_num_kv_heads",
    "producer_tp_size",
    "producer_tp_rank",
    "consumer_tp_size",
    "consumer_tp_rank",
    "bytes_per_head",
)
SIZES = ("total_num_kv_heads", "producer_tp_size", "consumer_tp_size")

_FUNCTIONS = {
    "plan": ("planner", *PARAMETERS),
    "pairs": (*SIZES, "producer_tp_rank", "consumer_tp_rank"),
    "in_domain": SIZES,
    "refused": ("guard", *SIZES, "bytes_per_head"),
    "expected_producer": (*SIZES, "consumer_tp_rank", "head"),
}
_CONSTANTS: dict[str, Any] = {
    "UNIT": None,
    "DOMAIN": None,
    "OUTSIDE": (),
    "GUARD": None,
    "OPTIONAL_ARGUMENTS": (),
    "EXECUTED_ONLY": False,
    "PACKAGE": False,
}

_SHIPPED = Path(__file__).parent / "contracts"


class ContractError(ValueError):
    """A contract is not what a contract has to be; the message says what and what is legal."""


@dataclass(frozen=True)
class Contract:
    """A contract that was read.

    Attributes:
        name: of a shipped one, or the path of the user's own.
        path: its file.
        program: what was parsed.
        sentence: the first sentence of its docstring.
        unit: "bytes" or "heads".
        domain, outside, guard: see the module.
        optional_arguments: keywords that a target may lack.
        executed_only, package: see the module.
    """

    name: str
    path: Path
    program: Program
    sentence: str
    unit: str
    domain: str
    outside: tuple[str, ...]
    guard: str | None
    optional_arguments: tuple[str, ...]
    executed_only: bool
    package: bool

    def function(self, name: str) -> FunctionValue | None:
        """Return one of the contract's functions, or None if it has none of that name."""
        return self.program.function(name)


def shipped() -> tuple[str, ...]:
    """Return the names of the contracts that ship."""
    files = _SHIPPED.glob("*.py")
    return tuple(sorted(f.stem.replace("_", "-") for f in files if f.stem != "__init__"))


def read_contract(name: str) -> Contract:
    """Read a contract by the name of a shipped one or by the path of a file.

    Raises:
        ContractError: there is no such contract, or it is not what a contract has to be.
    """
    if name in shipped():
        return _read(name, _SHIPPED / f"{name.replace('-', '_')}.py")
    path = Path(name)
    if path.suffix == ".py" and path.is_file():
        return _read(name, path)
    close = difflib.get_close_matches(name, shipped(), n=3) or list(shipped())
    raise ContractError(
        f"contract={name}; legal: the path of a Python file, or one of {', '.join(close)}"
    )


def _read(name: str, path: Path) -> Contract:
    try:
        program = Program.parse(path.read_text(encoding="utf-8"), name)
    except (SyntaxError, UnicodeDecodeError, ValueError) as error:
        raise ContractError(f"contract={name}: not a Python file: {error}") from error
    constants = {key: _constant(name, program, key) for key in _CONSTANTS}
    _check_functions(name, program)
    _check_constants(name, program, constants)
    doc = ast.get_docstring(program.tree) or ""
    return Contract(
        name=name,
        path=path,
        program=program,
        sentence=" ".join(doc.split("\n\n", maxsplit=1)[0].split()),
        unit=constants["UNIT"],
        domain=constants["DOMAIN"],
        outside=tuple(constants["OUTSIDE"]),
        guard=constants["GUARD"],
        optional_arguments=tuple(constants["OPTIONAL_ARGUMENTS"]),
        executed_only=constants["EXECUTED_ONLY"],
        package=constants["PACKAGE"],
    )


def _constant(name: str, program: Program, key: str) -> Any:
    statements = program.bindings.get(key, [])
    if not statements:
        return _CONSTANTS[key]
    statement = statements[-1]
    value = getattr(statement, "value", None)
    if len(statements) > 1 or not isinstance(statement, (ast.Assign, ast.AnnAssign)) or not value:
        raise ContractError(
            f"contract={name}: {key} at line {statement.lineno}; legal: one plain assignment"
        )
    try:
        return ast.literal_eval(value)
    except (ValueError, TypeError) as error:
        raise ContractError(
            f"contract={name}: {key} at line {statement.lineno}; legal: a literal"
        ) from error


def _check_constants(name: str, program: Program, constants: dict[str, Any]) -> None:
    if constants["UNIT"] not in ("bytes", "heads"):
        raise ContractError(f'contract={name}: UNIT={constants["UNIT"]!r}; legal: "bytes", "heads"')
    if not isinstance(constants["DOMAIN"], str) or not constants["DOMAIN"]:
        raise ContractError(f"contract={name}: DOMAIN is missing; legal: the domain in words")
    for key in ("OUTSIDE", "OPTIONAL_ARGUMENTS"):
        value = constants[key]
        if not isinstance(value, (tuple, list)) or not all(isinstance(v, str) for v in value):
            raise ContractError(f"contract={name}: {key}={value!r}; legal: a tuple of texts")
    for key in ("EXECUTED_ONLY", "PACKAGE"):
        if not isinstance(constants[key], bool):
            raise ContractError(f"contract={name}: {key}={constants[key]!r}; legal: True or False")
    if constants["GUARD"] is not None and not isinstance(constants["GUARD"], str):
        raise ContractError(f"contract={name}: GUARD={constants['GUARD']!r}; legal: a name")
    if (constants["GUARD"] is None) != ("refused" not in program.bindings):
        raise ContractError(f"contract={name}: GUARD and refused(guard, ...) come together or not")


def _check_functions(name: str, program: Program) -> None:
    if "plan" not in program.bindings:
        raise ContractError(f"contract={name}: plan(planner, ...) is missing")
    for key, legal in _FUNCTIONS.items():
        statements = program.bindings.get(key, [])
        if not statements:
            continue
        function = statements[-1]
        if len(statements) > 1 or not isinstance(function, ast.FunctionDef):
            # Were it taken for absent, the audit would speak of something else.
            raise ContractError(
                f"contract={name}: {key} at line {function.lineno}; legal: one plain function"
            )
        arguments = function.args
        plain = not (arguments.vararg or arguments.kwarg or arguments.defaults)
        plain = plain and not (arguments.posonlyargs or arguments.kwonlyargs)
        names = [one.arg for one in (*arguments.posonlyargs, *arguments.args)]
        unknown = [one for one in names if one not in legal]
        asked = {"plan": "planner", "refused": "guard"}.get(key)
        if asked is not None and asked not in names:
            raise ContractError(
                f"contract={name}: {key} at line {function.lineno} has no parameter {asked}; "
                f"legal: {', '.join(legal)}"
            )
        if unknown or not plain:
            what = f"the parameter {unknown[0]}" if unknown else "parameters that are not plain"
            raise ContractError(
                f"contract={name}: {key} at line {function.lineno} has {what}; "
                f"legal: {', '.join(legal)}"
            )
