# SPDX-License-Identifier: Apache-2.0
"""Planners that are right, as source, and every small change of one of them."""

from __future__ import annotations

import ast
import copy
from typing import TYPE_CHECKING, Any

from asked import heads, in_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator

# Any two ranks: what both hold, from the lowest replica, or from one that the consumer picks.
LOWEST = heads("""\
    mine = p * H // P
    theirs = d * H // D
    start = max(mine, theirs)
    end = min(mine + max(H // P, 1), theirs + max(H // D, 1))
    if start >= end or p % max(P // H, 1) != 0:
        return []
    return [(start - mine, start - theirs, end - start)]
""")
SPREAD = LOWEST.replace("!= 0", "!= d % max(P // H, 1)")
# Pairs by the ratio of the sizes, as in vLLM's connector; bytes.
PAIRED = in_bytes("""\
    mine = max(H // P, 1)
    theirs = max(H // D, 1)
    if P >= D:
        ratio = P // D
        copies = max(P // H, 1)
        if p // ratio != d or p % ratio % min(copies, ratio) != 0:
            return []
        start = p // copies * mine - d // max(D // H, 1) * theirs
        return [(0, start * bytes_per_head, mine * bytes_per_head)]
    if d // (D // P) != p:
        return []
    start = d // max(D // H, 1) * theirs - p // max(P // H, 1) * mine
    return [(start * bytes_per_head, 0, theirs * bytes_per_head)]
""")
DIVISIBLE = "P % D == 0 or D % P == 0"
# By name: the source, its contract, and where it is right.
RIGHT_SOURCES = {
    "lowest": (LOWEST, "head-list", ""),
    "spread": (SPREAD, "head-list", ""),
    "paired": (PAIRED, "byte-list", DIVISIBLE),
}

_SWAPPED = {
    "P": "D",
    "D": "P",
    "p": "d",
    "d": "p",
    "mine": "theirs",
    "theirs": "mine",
    "start": "end",
    "end": "start",
}
# Of arithmetic, comparisons and connectives; each is replaced by others of its kind.
_OTHER_OPERATORS: dict[type[ast.AST], tuple[Any, ...]] = {
    ast.FloorDiv: (ast.Mod, ast.Mult),
    ast.Mod: (ast.FloorDiv,),
    ast.Mult: (ast.Add,),
    ast.Add: (ast.Sub,),
    ast.Sub: (ast.Add,),
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt,),
    ast.Gt: (ast.GtE,),
    ast.GtE: (ast.Gt, ast.LtE),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq, ast.Lt, ast.Gt),
    ast.Or: (ast.And,),
    ast.And: (ast.Or,),
}


def mutants(source: str) -> Iterator[tuple[str, str]]:
    """Yield each change of a planner's lines: what was changed, in words, and the new source."""
    tree = ast.parse(source)
    function = tree.body[0]
    assert isinstance(function, ast.FunctionDef)
    # The first two lines give the sizes short names.
    places = [node for line in function.body[2:] for node in ast.walk(line)]
    for place in places:
        for changed in _changes(place):
            mutant = copy.deepcopy(tree, {id(place): changed})
            ast.fix_missing_locations(mutant)
            yield f"{ast.unparse(place)} to {ast.unparse(changed)}", ast.unparse(mutant)


def _changes(node: ast.AST) -> Iterator[ast.AST]:
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id in _SWAPPED:
        yield ast.Name(_SWAPPED[node.id], node.ctx)
    if isinstance(node, ast.Constant) and isinstance(node.value, int):
        yield ast.Constant(node.value + 1)
        yield ast.Constant(node.value - 1)
    if isinstance(node, ast.BinOp):
        for operator in _OTHER_OPERATORS[type(node.op)]:
            yield ast.BinOp(node.left, operator(), node.right)
    if isinstance(node, ast.BoolOp):
        for connective in _OTHER_OPERATORS[type(node.op)]:
            yield ast.BoolOp(connective(), node.values)
    if isinstance(node, ast.Compare):
        for comparison in _OTHER_OPERATORS[type(node.ops[0])]:
            yield ast.Compare(node.left, [comparison()], node.comparators)
    if isinstance(node, ast.Call):
        yield from node.args
    if isinstance(node, ast.If):
        yield ast.If(ast.Constant(False), node.body, node.orelse)
        yield ast.If(ast.Constant(True), node.body, node.orelse)
    if isinstance(node, ast.Tuple):
        yield from _off_by_one(node)


def _off_by_one(node: ast.Tuple) -> Iterator[ast.Tuple]:
    """Yield a copy whose offset or count is one more or one less."""
    for at, one in enumerate(node.elts):
        for by in (1, -1):
            moved = ast.BinOp(one, ast.Add(), ast.Constant(by))
            yield ast.Tuple([*node.elts[:at], moved, *node.elts[at + 1 :]], node.ctx)
