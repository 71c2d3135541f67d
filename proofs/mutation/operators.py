# SPDX-License-Identifier: Apache-2.0
"""The mutation operators: what a mistake may put in the place of one node.

Each operator yields a kind, the name of the mistake, and the term that it puts there. The terms
have the sort of the node, so no mutant is ill-sorted.
"""

from __future__ import annotations

import operator
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Any

import z3

from kvreshard.proofs.mutation.sites import extremum_name, extremum_of, operands
from kvreshard.spec.formula import FORMULAS, Formula

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from kvreshard.proofs.mutation.sites import Site

# What is confused with what: the two sides, and the two sizes of a block and of a group.
COUNTERPARTS: tuple[tuple[str, str], ...] = (
    ("producer_tp_size", "consumer_tp_size"),
    ("producer_tp_rank", "consumer_tp_rank"),
    ("producer_region_bytes", "consumer_region_bytes"),
    ("total_num_kv_heads", "tp_size"),
    ("block_size", "token_bytes"),
)
SIDES = COUNTERPARTS[:3]
_OTHER = {**dict(COUNTERPARTS), **{right: left for left, right in COUNTERPARTS}}

Change = tuple[str, z3.ExprRef]
_Binary = tuple[str, "Callable[[Any, Any], Any]"]

_ARITHMETIC: dict[int, tuple[_Binary, ...]] = {
    z3.Z3_OP_IDIV: (("floordiv_to_mod", operator.mod),),
    z3.Z3_OP_MOD: (("mod_to_floordiv", operator.floordiv),),
    z3.Z3_OP_ADD: (("add_to_sub", operator.sub),),
    z3.Z3_OP_SUB: (("sub_to_add", operator.add),),
    z3.Z3_OP_MUL: (("mul_to_add", operator.add), ("mul_to_floordiv", operator.floordiv)),
}
_SWAPPED: dict[int, tuple[_Binary, ...]] = {
    z3.Z3_OP_IDIV: (("floordiv_operands_swapped", operator.floordiv),),
    z3.Z3_OP_MOD: (("mod_operands_swapped", operator.mod),),
    z3.Z3_OP_SUB: (("sub_operands_swapped", operator.sub),),
}
# Methods and not operators: see `extremum_of`.
_COMPARISONS: dict[int, tuple[_Binary, ...]] = {
    z3.Z3_OP_LT: (("lt_to_le", z3.ArithRef.__le__),),
    z3.Z3_OP_LE: (("le_to_lt", z3.ArithRef.__lt__),),
    z3.Z3_OP_GT: (("gt_to_ge", z3.ArithRef.__ge__),),
    z3.Z3_OP_GE: (("ge_to_gt", z3.ArithRef.__gt__),),
    z3.Z3_OP_EQ: (("eq_to_ne", z3.ArithRef.__ne__),),
}


@dataclass(frozen=True)
class Place:
    """Where an operator works: a site, the formula it is in, and the argument that it is.

    Attributes:
        site: the site.
        inside: the formula whose body is mutated.
        argument: the name of the parameter that the site is the argument of, or None.
    """

    site: Site
    inside: Formula
    argument: str | None


def changes(place: Place) -> Iterator[Change]:
    """Yield every change of one site.

    Raises:
        ValueError: no operator knows what stands there.
    """
    found = [change for change_of in _OPERATORS for change in change_of(place)]
    if not found:
        raise ValueError(
            f"no mutation operator for {place.site.node.sexpr()} at site {place.site.number} of "
            f"{place.inside.name}"
        )
    yield from found


def exchanges(made: Formula) -> Iterator[Change]:
    """Yield the bodies with two counterparts exchanged throughout, pair by pair, then all sides."""
    names = set(made.parameter_names)
    present = [pair for pair in COUNTERPARTS if names.issuperset(pair)]
    for pair in present:
        yield f"{pair[0]}_and_{pair[1]}_exchanged", _exchanged(made.body, [pair])
    sides = [pair for pair in present if pair in SIDES]
    if len(sides) > 1:
        yield "sides_exchanged", _exchanged(made.body, sides)


def siblings(callee: Formula, inside: Formula) -> list[Formula]:
    """Return the formulas with the parameters and the sort of the callee.

    Without those that apply the formula they would stand in: they would have no meaning there.
    """
    return [
        made
        for made in FORMULAS.values()
        if made is not callee
        and made.parameter_names == callee.parameter_names
        and made.body.sort() == callee.body.sort()
        and inside.name not in {made.name} | applied_in(made.body)
    ]


def applied_in(expression: z3.ExprRef) -> set[str]:
    """Return the names of the formulas that an expression applies, with all that these apply."""
    found: set[str] = set()
    pending = [expression]
    while pending:
        node = pending.pop()
        pending += node.children()
        callee = FORMULAS.get(node.decl().name())
        if callee is not None and callee.name not in found:
            found.add(callee.name)
            pending.append(callee.body)
    return found


def _exchanged(body: z3.ExprRef, pairs: list[tuple[str, str]]) -> z3.ExprRef:
    both = [(left, right) for pair in pairs for left, right in (pair, pair[::-1])]
    return z3.substitute(body, *[(z3.Int(left), z3.Int(right)) for left, right in both])


def _one_more_or_less(place: Place) -> Iterator[Change]:
    """Constants, variables, applications, ordinals, and the whole value of the formula."""
    node = place.site.node
    if not z3.is_int(node):
        return
    if z3.is_int_value(node):
        value = node.as_long()
        yield "constant_plus_1", z3.IntVal(value + 1)
        yield "constant_minus_1", z3.IntVal(value - 1)
        return
    what = _what_is_shifted(place)
    if what is not None:
        yield f"{what}_plus_1", node + 1
        yield f"{what}_minus_1", node - 1


def _what_is_shifted(place: Place) -> str | None:
    node = place.site.node
    if place.argument in {"ordinal", "elected_ordinal"}:
        return "ordinal"
    if not place.site.path:
        return "value"
    if node.decl().name() in FORMULAS:
        return "application"
    return "variable" if node.num_args() == 0 else None


def _another_operator(place: Place) -> Iterator[Change]:
    node = place.site.node
    for table in (_ARITHMETIC, _COMPARISONS):
        for kind, apply in table.get(node.decl().kind(), ()):
            yield kind, reduce(apply, node.children())
    for kind, apply in _SWAPPED.get(node.decl().kind(), ()):
        left, right = node.children()
        yield kind, apply(right, left)


def _extremum(place: Place) -> Iterator[Change]:
    name = extremum_name(place.site.node)
    if name is None:
        return
    left, right = operands(place.site.node)
    other = "min" if name == "max" else "max"
    yield f"{name}_to_{other}", extremum_of(other, left, right)
    yield f"{name}_dropped_for_its_first", left
    yield f"{name}_dropped_for_its_second", right


def _connective(place: Place) -> Iterator[Change]:
    node = place.site.node
    if not (z3.is_and(node) or z3.is_or(node)):
        return
    parts = node.children()
    name, join, other = ("and", z3.And, z3.Or) if z3.is_and(node) else ("or", z3.Or, z3.And)
    yield f"{name}_to_{'or' if name == 'and' else 'and'}", other(*parts)
    for index in range(len(parts)):
        rest = parts[:index] + parts[index + 1 :]
        yield f"{name}_without_{index}", rest[0] if len(rest) == 1 else join(*rest)


def _conditional(place: Place) -> Iterator[Change]:
    node = place.site.node
    if not z3.is_app_of(node, z3.Z3_OP_ITE) or extremum_name(node):
        return
    test, then, otherwise = node.children()
    yield "condition_negated", z3.If(z3.Not(test), then, otherwise)
    yield "always_then", then
    yield "always_otherwise", otherwise


def _counterpart(place: Place) -> Iterator[Change]:
    node = place.site.node
    name = node.decl().name()
    other = _OTHER.get(name) if node.num_args() == 0 else None
    if other in place.inside.parameter_names:
        yield f"{name}_to_{other}", z3.Int(other)


def _sibling(place: Place) -> Iterator[Change]:
    node = place.site.node
    callee = FORMULAS.get(node.decl().name())
    for made in siblings(callee, place.inside) if callee else ():
        yield f"{node.decl().name()}_to_{made.name}", made(*node.children())


_OPERATORS: tuple[Callable[[Place], Iterator[Change]], ...] = (
    _one_more_or_less,
    _another_operator,
    _extremum,
    _connective,
    _conditional,
    _counterpart,
    _sibling,
)
