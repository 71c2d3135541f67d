# SPDX-License-Identifier: Apache-2.0
"""Where an expression divides: z3's division is total, Python's is not."""

from __future__ import annotations

from typing import TYPE_CHECKING

import z3

from kvreshard.spec.formula import Truth, extremum

if TYPE_CHECKING:
    from collections.abc import Iterable


def divisors_are_positive(expressions: Iterable[z3.ExprRef]) -> list[Truth]:
    """Return that each divisor which is computed is at least 1.

    Only a conditional keeps a branch from being computed. Both operands of a maximum or a minimum
    are computed in its condition.
    """
    found: dict[tuple[int, ...], Truth] = {}
    # Nodes are kept with their numbers: z3 gives the number of a dead node to a new one.
    seen: dict[tuple[int, int], tuple[z3.ExprRef, Truth]] = {}
    pending = [(expression, z3.BoolVal(True)) for expression in expressions]
    while pending:
        node, path = pending.pop()
        if (node.get_id(), path.get_id()) in seen:
            continue
        seen[node.get_id(), path.get_id()] = (node, path)
        if z3.is_app_of(node, z3.Z3_OP_IDIV) or z3.is_app_of(node, z3.Z3_OP_MOD):
            divisor = node.arg(1)
            positive = divisor >= 1 if z3.is_true(path) else z3.Implies(path, divisor >= 1)
            found[divisor.get_id(), path.get_id()] = positive
        parts = [(child, path) for child in node.children()]
        if z3.is_app_of(node, z3.Z3_OP_ITE):
            test, then, otherwise = node.children()
            parts = [(test, path)]
            if not extremum(test, then, otherwise):
                parts += [(then, z3.And(path, test)), (otherwise, z3.And(path, z3.Not(test)))]
        pending += parts
    return list(found.values())
