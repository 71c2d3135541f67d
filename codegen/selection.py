# SPDX-License-Identifier: Apache-2.0
"""Which formulas an emitted module needs, in an order in which each follows what it calls."""

from __future__ import annotations

from typing import TYPE_CHECKING

import z3

from kvreshard.codegen.printer import is_application
from kvreshard.spec import ownership, planner
from kvreshard.spec.election import POLICIES, pair_is_divisible
from kvreshard.spec.formula import FORMULAS, Formula, unfold
from kvreshard.spec.parameters import hypotheses_for

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kvreshard.spec.formula import Hypothesis

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

CALLED_BY_THE_NUMPY_SHELL: tuple[Formula, ...] = (
    ownership.group_is_legal,
    ownership.replica_count,
    pair_is_divisible,
    planner.sends,
    planner.src_head_offset,
    planner.dst_head_offset,
    planner.copied_head_count,
    planner.first_sender,
    planner.last_sender,
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

NUMPY_SHELL: tuple[str, ...] = (
    "plan_transfer",
    "transfer_matrix",
    "sender_ranges",
    "region_lengths_are_valid",
    "_plan",
    "_integers",
    "_has_truth_values",
    "_in_64_bits",
    "_at_least_one",
    "_region_bytes",
    "_group_size",
    "_rank",
    "_check_shapes",
    "_broadcast",
    "_single",
    "_check_election",
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


def emitted_formulas(
    roots: tuple[Formula, ...] = CALLED_BY_THE_SHELL,
) -> tuple[Formula, ...]:
    """Return the formulas that a shell calls and all that these call, callees first.

    Args:
        roots: what the shell calls; by default that of the planner module.
    """
    ordered: dict[str, Formula] = {}

    def visit(made: Formula) -> None:
        for callee in called_by(made.body):
            visit(callee)
        ordered.setdefault(made.name, made)

    for root in roots:
        visit(root)
    return tuple(ordered.values())


def called_by(expression: z3.ExprRef) -> tuple[Formula, ...]:
    """Return the formulas that an expression applies, each once, in order of appearance."""
    names = dict.fromkeys(
        node.decl().name() for node in subexpressions(expression) if is_application(node)
    )
    return tuple(FORMULAS[name] for name in names)


def assumed_by(made: Formula) -> tuple[Hypothesis, ...]:
    """Return the legal ranges of a formula's parameters, except where it is what decides."""
    return tuple(
        hypothesis
        for hypothesis in hypotheses_for(made.parameter_names)
        if made not in called_by(hypothesis.condition)
    )


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
