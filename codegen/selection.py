# SPDX-License-Identifier: Apache-2.0
"""Which formulas the planner module needs, in an order in which each follows what it calls."""

from __future__ import annotations

from typing import TYPE_CHECKING

import z3

from kvreshard.codegen.printer import is_application
from kvreshard.spec import ownership, planner
from kvreshard.spec.election import POLICIES, pair_is_divisible
from kvreshard.spec.formula import FORMULAS, Formula, unfold

if TYPE_CHECKING:
    from collections.abc import Iterator

# What the hand-written shell of the template calls.
CALLED_BY_THE_SHELL: tuple[Formula, ...] = (
    ownership.group_is_legal,
    ownership.head_count,
    ownership.replica_count,
    pair_is_divisible,
    planner.sends,
    planner.src_head_offset,
    planner.dst_head_offset,
    planner.copied_head_count,
    planner.first_sender,
    planner.last_sender,
    planner.first_receiver_candidate,
    planner.last_receiver_candidate,
    planner.region_lengths_match,
    *(policy.elect for policy in POLICIES),
)

# The functions of the template's shell. They are tested, not proved; no other function of the
# module may go without a proof.
SHELL: tuple[str, ...] = (
    "plan_transfer",
    "expected_senders",
    "expected_receivers",
    "validate_region_lengths",
    "compute_sender_transfer_plan",
    "_plan",
    "_integer",
    "_at_least_one",
    "_group_size",
    "_legal_sizes_around",
    "_rank",
    "_check_election",
    "_check_region_lengths",
)

# What each result counts. The parameters have their units in the specification.
RESULT_UNITS: dict[str, str] = {
    "group_is_legal": "a truth value",
    "pair_is_divisible": "a truth value",
    "head_count": "heads",
    "replica_count": "ranks",
    "first_head": "a head",
    "replica_ordinal": "an ordinal",
    "owner": "a rank",
    "overlap_start": "a head",
    "overlap_end": "a head",
    "sends": "a truth value",
    "src_head_offset": "heads",
    "dst_head_offset": "heads",
    "copied_head_count": "heads",
    "first_sender": "a rank",
    "last_sender": "a rank",
    "first_receiver_candidate": "a rank",
    "last_receiver_candidate": "a rank",
    "region_lengths_match": "a truth value",
    "elect_lowest": "an ordinal",
    "elect_spread": "an ordinal",
    "elect_paired": "an ordinal",
}


def emitted_formulas() -> tuple[Formula, ...]:
    """Return the formulas that the shell calls and all that these call, callees first."""
    ordered: dict[str, Formula] = {}

    def visit(made: Formula) -> None:
        for callee in called_by(made.body):
            visit(callee)
        ordered.setdefault(made.name, made)

    for root in CALLED_BY_THE_SHELL:
        visit(root)
    return tuple(ordered.values())


def called_by(expression: z3.ExprRef) -> tuple[Formula, ...]:
    """Return the formulas that an expression applies, each once, in order of appearance."""
    names = dict.fromkeys(
        node.decl().name() for node in subexpressions(expression) if is_application(node)
    )
    return tuple(FORMULAS[name] for name in names)


def subexpressions(expression: z3.ExprRef) -> Iterator[z3.ExprRef]:
    """Yield the expression and everything in it, each once."""
    seen: set[int] = set()
    pending = [expression]
    while pending:
        node = pending.pop()
        if node.get_id() not in seen:
            seen.add(node.get_id())
            yield node
            pending.extend(reversed(node.children()))


def divides(made: Formula) -> bool:
    """Whether the formula, with all it calls, has a division in it."""
    return any(
        z3.is_app_of(node, z3.Z3_OP_IDIV) or z3.is_app_of(node, z3.Z3_OP_MOD)
        for node in subexpressions(unfold(made.body))
    )
