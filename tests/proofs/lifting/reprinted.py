# SPDX-License-Identifier: Apache-2.0
"""Print what was lifted as Python again, way by way, so that another tool can read it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import z3

from kvreshard.proofs.lifting.run import RaisedAt

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kvreshard.proofs.lifting.path import Way

# z3's quotient is Python's where the divisor is at least 1, and the lifter uses it there only.
_INFIX = {
    z3.Z3_OP_ADD: "+",
    z3.Z3_OP_SUB: "-",
    z3.Z3_OP_MUL: "*",
    z3.Z3_OP_IDIV: "//",
    z3.Z3_OP_MOD: "%",
    z3.Z3_OP_LT: "<",
    z3.Z3_OP_LE: "<=",
    z3.Z3_OP_GT: ">",
    z3.Z3_OP_GE: ">=",
    z3.Z3_OP_EQ: "==",
    z3.Z3_OP_DISTINCT: "!=",
    z3.Z3_OP_AND: "and",
    z3.Z3_OP_OR: "or",
}


def as_text(value: object) -> str:
    """Return a lifted value of integers, truth values, tuples and lists as an expression."""
    if isinstance(value, tuple):
        return f"({''.join(f'{as_text(one)}, ' for one in value)})"
    if isinstance(value, list):
        return f"[{', '.join(map(as_text, value))}]"
    if not isinstance(value, z3.ExprRef):
        return repr(value)
    if z3.is_int_value(value):
        return f"({value.as_long()})"
    kind = value.decl().kind()
    if kind == z3.Z3_OP_UNINTERPRETED:
        return str(value.decl().name())
    if kind in (z3.Z3_OP_TRUE, z3.Z3_OP_FALSE):
        return str(kind == z3.Z3_OP_TRUE)
    parts = [as_text(one) for one in value.children()]
    if kind == z3.Z3_OP_ITE:
        return f"({parts[1]} if {parts[0]} else {parts[2]})"
    if kind == z3.Z3_OP_NOT:
        return f"(not {parts[0]})"
    if kind == z3.Z3_OP_UMINUS:
        return f"(-{parts[0]})"
    if kind == z3.Z3_OP_IMPLIES:
        return f"((not {parts[0]}) or {parts[1]})"
    return f"({f' {_INFIX[kind]} '.join(parts)})"


def reprinted(
    name: str, parameters: Sequence[str], ways: Sequence[Way], damaged: bool = False
) -> str:
    """Return a function that goes the ways one by one.

    Args:
        name: of the function.
        parameters: their names.
        ways: through the lifted function.
        damaged: whether each value that is returned is made another one.
    """
    lines = [f"def {name}({', '.join(parameters)}):"]
    for way in ways:
        condition = " and ".join(map(as_text, way.conditions)) or "True"
        lines.append(f"    if {condition}:")
        if isinstance(way.outcome, RaisedAt):
            lines.append(f"        raise {way.outcome.kind}")
            continue
        change = " * 2" if isinstance(way.outcome.value, (list, tuple)) else " + 1"
        lines.append(f"        return {as_text(way.outcome.value)}{change if damaged else ''}")
    # That one way is always gone is a claim too: if none is, this is an exception of its own.
    lines.append("    raise LookupError")
    return "\n".join(lines) + "\n"
