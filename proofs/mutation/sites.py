# SPDX-License-Identifier: Apache-2.0
"""The sites of a formula: the nodes of its body, numbered from 0 in reading order.

A conditional that is a maximum or a minimum is one node with two operands, as in the
specification. What z3 shares in memory is not shared here: a term that stands twice is two sites.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import z3

from kvreshard.spec.formula import extremum

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


@dataclass(frozen=True)
class Site:
    """A node of a body.

    Attributes:
        number: its place in reading order, from 0 for the whole body.
        path: which operand to take at each node on the way from the root.
        node: the term that stands there.
    """

    number: int
    path: tuple[int, ...]
    node: z3.ExprRef


def sites(body: z3.ExprRef) -> list[Site]:
    """Return every site of a body, an operator before its operands."""
    return [Site(number, path, node) for number, (path, node) in enumerate(_nodes(body, ()))]


def operands(node: z3.ExprRef) -> list[z3.ExprRef]:
    """Return the operands of a node; of a maximum or a minimum, its two."""
    parts: list[z3.ExprRef] = node.children()
    return parts[1:] if extremum_name(node) else parts


def extremum_name(node: z3.ExprRef) -> str | None:
    """Return `max` or `min` where the node is one, else None."""
    return extremum(*node.children()) if z3.is_app_of(node, z3.Z3_OP_ITE) else None


def extremum_of(name: str, left: z3.ArithRef, right: z3.ArithRef) -> z3.ArithRef:
    """Return the maximum or the minimum of two terms, in the form that the specification has.

    Written as `left >= right`, Python would ask a constant on the right first, as z3's constants
    are a subclass of its terms, and get `right <= left`.
    """
    compare = z3.ArithRef.__ge__ if name == "max" else z3.ArithRef.__le__
    return z3.If(compare(left, right), left, right)


def replaced(body: z3.ExprRef, path: Sequence[int], term: z3.ExprRef) -> z3.ExprRef:
    """Return the body with another term at the end of a path."""
    if not path:
        return term
    parts = operands(body)
    parts[path[0]] = replaced(parts[path[0]], path[1:], term)
    return _rebuilt(body, parts)


def _nodes(node: z3.ExprRef, path: tuple[int, ...]) -> Iterator[tuple[tuple[int, ...], z3.ExprRef]]:
    yield path, node
    for index, child in enumerate(operands(node)):
        yield from _nodes(child, (*path, index))


def _rebuilt(node: z3.ExprRef, parts: list[z3.ExprRef]) -> z3.ExprRef:
    name = extremum_name(node)
    if name:
        return extremum_of(name, *parts)
    return node.decl()(*parts)
