# SPDX-License-Identifier: Apache-2.0
"""Planners that take another number for the model's number of KV heads."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kvreshard.proofs.broken.entry import BrokenPlanner
from kvreshard.proofs.broken.names import CONTENT, COVERED, HOLDER, READ, WRITE
from kvreshard.proofs.broken.right import heads_of, planner_of, right_plan
from kvreshard.proofs.judge import is_legal

if TYPE_CHECKING:
    from kvreshard.proofs.judge import Copy


def local_heads(H: int, P: int) -> int:
    """Return the heads that one producer rank holds."""
    return len(heads_of(H, P, 0))


def by_rebuilt_heads(H: int, P: int, p: int, D: int, d: int) -> Copy:
    """Take the model to have local heads times group size, which counts replicas as heads."""
    return right_plan(local_heads(H, P) * P, P, p, D, d)


def by_local_heads(H: int, P: int, p: int, D: int, d: int) -> Copy:
    """Take the model to have no more heads than one producer rank."""
    return right_plan(local_heads(H, P), P, p, D, d)


def by_the_target_models_heads(H: int, P: int, p: int, D: int, d: int) -> Copy:
    """Take a draft model of H heads to have the 2 * H of its target model."""
    return right_plan(2 * H, P, p, D, d)


PLANNERS = (
    BrokenPlanner(
        name="the_head_count_is_rebuilt_from_local_heads",
        sentence=(
            "The number of heads is rebuilt as local heads times P, which counts every replica as "
            "a head of its own."
        ),
        seen_in=("SGLang #19086",),
        subject=planner_of(by_rebuilt_heads),
        invariants=(WRITE, CONTENT, HOLDER),
        domain="sizes where D divides max(H, P) or the reverse",
        in_domain=lambda H, P, D: is_legal(local_heads(H, P) * P, D),
        reported=(2, 4, 1),
    ),
    BrokenPlanner(
        name="local_heads_are_taken_as_the_models",
        sentence="The heads of one producer rank are taken as the number of heads of the model.",
        seen_in=("vllm-ascend #11885", "vllm-ascend #11886", "vllm-ascend #11887"),
        subject=planner_of(by_local_heads),
        invariants=(COVERED, CONTENT, HOLDER),
        domain="sizes for which max(H // P, 1) heads are legal too",
        in_domain=lambda H, P, D: is_legal(local_heads(H, P), P) and is_legal(local_heads(H, P), D),
        reported=(16, 8, 2),
    ),
    BrokenPlanner(
        name="the_draft_model_has_the_targets_heads",
        sentence=(
            "The cache of a draft model with H heads is planned with the 2 * H heads of its "
            "target model."
        ),
        seen_in=("vllm-ascend #11885", "vllm-ascend #11886", "vllm-ascend #11887"),
        subject=planner_of(by_the_target_models_heads),
        invariants=(READ, WRITE, CONTENT, HOLDER),
        domain="sizes for which 2 * H heads are legal too",
        in_domain=lambda H, P, D: is_legal(2 * H, P) and is_legal(2 * H, D),
        reported=(8, 8, 2),
    ),
)
