# SPDX-License-Identifier: Apache-2.0
"""Rewrites that keep the meaning, for bounded statements that say "some producer rank".

Three steps make such a statement easy for the solver: write the ranks out, take conditionals out
of comparisons, and give names to the terms that depend on the parameter which is split into its
values. None of them uses anything about the planner.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import z3

if TYPE_CHECKING:
    from collections.abc import Callable

    from kvreshard.spec.formula import Truth

_COMPARISONS = (z3.Z3_OP_LE, z3.Z3_OP_GE, z3.Z3_OP_LT, z3.Z3_OP_GT, z3.Z3_OP_EQ)


def write_out(body: Truth, count: int) -> list[Truth]:
    """Return `not exists k. body(k)` as `not body(0)`, ..., `not body(count - 1)`.

    Args:
        body: with its variable free (a de Bruijn variable); false outside of 0 to count - 1.
        count: how many values there are to write out.
    """
    body = z3.simplify(body)

    def fails_at(value: int) -> Truth:
        return z3.simplify(z3.Not(z3.substitute_vars(body, z3.IntVal(value, body.ctx))))

    if not (z3.is_true(fails_at(-1)) and z3.is_true(fails_at(count))):
        raise ValueError("the alternative is not limited to the values written out")
    return [fails_at(value) for value in range(count)]


def split_comparisons(expression: z3.ExprRef) -> z3.ExprRef:
    """Return the expression with each `If(c, a, b) < t` as `(c -> a < t) and (not c -> b < t)`."""
    memo: dict[int, tuple[z3.ExprRef, z3.ExprRef]] = {}

    def visit(node: z3.ExprRef) -> z3.ExprRef:
        if not z3.is_bool(node) or not z3.is_app(node) or node.num_args() == 0:
            return node
        if node.get_id() not in memo:
            # The node is kept with its result: z3 gives the number of a dead node to a new one.
            memo[node.get_id()] = (node, _split(node, visit))
        return memo[node.get_id()][1]

    return visit(expression)


def _split(node: z3.ExprRef, visit: Callable[[z3.ExprRef], z3.ExprRef]) -> z3.ExprRef:
    over_integers = node.decl().kind() in _COMPARISONS and z3.is_int(node.arg(0))
    conditional = _first_conditional(node) if over_integers else None
    if conditional is None:
        return node.decl()(*map(visit, node.children()))
    test, then, otherwise = conditional.children()
    return z3.And(
        z3.Or(z3.Not(visit(test)), visit(z3.substitute(node, (conditional, then)))),
        z3.Or(visit(test), visit(z3.substitute(node, (conditional, otherwise)))),
    )


def _first_conditional(node: z3.ExprRef) -> z3.ExprRef | None:
    if z3.is_app_of(node, z3.Z3_OP_ITE):
        return node
    found = map(_first_conditional, node.children())
    return next((conditional for conditional in found if conditional is not None), None)


def name_terms(
    expression: z3.ExprRef, parameter: z3.ArithRef, first: int = 0
) -> tuple[z3.ExprRef, list[tuple[z3.ArithRef, z3.ArithRef]]]:
    """Return the expression with names for its largest integer terms that hold the parameter.

    A term with a bound variable gets no name. The names are numbered from `first`; the second
    result lists (name, term).
    """
    named: list[tuple[z3.ArithRef, z3.ArithRef]] = []

    def visit(node: z3.ExprRef) -> z3.ExprRef:
        if z3.is_int(node) and _mentions(node, parameter.eq) and not _mentions(node, z3.is_var):
            for name, term in named:
                if term.eq(node):
                    return name
            name = z3.Int(f"term!{first + len(named)}", node.ctx)
            named.append((name, node))
            return name
        if not node.children():
            return node
        return node.decl()(*map(visit, node.children()))

    return visit(expression), named


def _mentions(node: z3.ExprRef, wanted: Callable[[z3.ExprRef], bool]) -> bool:
    return wanted(node) or any(_mentions(child, wanted) for child in node.children())


def constants_of(expression: z3.ExprRef) -> set[z3.ExprRef]:
    """Return the constants that the expression mentions."""
    if expression.num_args():
        return set().union(*map(constants_of, expression.children()))
    return {expression} if expression.decl().kind() == z3.Z3_OP_UNINTERPRETED else set()
