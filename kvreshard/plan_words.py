# SPDX-License-Identifier: Apache-2.0
"""The sentences that all forms of a plan share."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from kvreshard.proofs.story.words import consumers, counted, heads, producers

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kvreshard.head_plan import HeadCopy, HeadPlan
    from kvreshard.plan_request import GroupPlan, Planned


def verdict(planned: Planned) -> str:
    """Say whether the deployment is safe."""
    if planned.faults:
        return f"NOT SAFE: {'; '.join(planned.faults)}"
    return (
        "Safe: every head of every consumer rank is written once, by a rank that holds it, and "
        "each rank expects the peers that it has."
    )


def group_title(planned: Planned, group: GroupPlan) -> str:
    """Say which layers a plan is for, and between which groups."""
    plan, layers = group.plan, group.layers
    what = f"{counted(layers.kv_heads, 'KV head')}"
    if layers.latent:
        what = "one latent, planned as 1 KV head"
    which = f"{planned.shape.name}, {layers.name}: " if layers.name else ""
    many = f"{counted(layers.layers, 'layer')}, " if layers.layers else ""
    return (
        f"{which}{many}{what}, prefill TP {plan.producer_tp_size} to decode TP "
        f"{plan.consumer_tp_size}, election {plan.election}"
    )


def offsets(heads_before: int, group: GroupPlan) -> list[str]:
    """Say an offset in heads, and in bytes of each region where they are known."""
    several = len(group.regions) > 1
    said = [
        f"{heads_before * one.bytes_per_head:,} B{_of(one.name) if several else ''}"
        for one in group.regions
    ]
    return [counted(heads_before, "head"), *said]


def copied_heads(copy: HeadCopy) -> str:
    """Name the heads of a copy."""
    return heads(range(copy.first_head, copy.first_head + copy.head_count))


PROVED = (
    "The plan is that of kvreshard.generated.planner, whose formulas are proved for all sizes; "
    "here each copy was counted as well."
)


def totals(group: GroupPlan) -> Iterator[str]:
    """Yield how many copies there are, what a consumer gets, and which producer has most to do."""
    plan = group.plan
    per_rank = len(plan.consumer_heads[0])
    ranks = "the consumer rank" if plan.consumer_tp_size == 1 else "each consumer rank"
    yield "1 copy a block" if len(plan.copies) == 1 else f"{len(plan.copies):,} copies a block"
    got = f"{ranks} gets {counted(per_rank, 'head')}"
    sizes = [f"{per_rank * one.bytes_per_head:,} bytes{_of(one.name)}" for one in group.regions]
    yield f"{got}: {' and '.join(sizes)}" if sizes else got
    sent = Counter[int]()
    for copy in plan.copies:
        sent[copy.producer_tp_rank] += copy.head_count
    most = max(sent.values())
    busiest = [rank for rank in sorted(sent) if sent[rank] == most]
    yield (
        f"{len(sent)} of {counted(plan.producer_tp_size, 'producer rank')} "
        f"{'sends' if len(sent) == 1 else 'send'}; the most that one sends is "
        f"{counted(most, 'head')}, by {producers(busiest)}"
    )


def sizes(group: GroupPlan) -> Iterator[str]:
    """Yield how many bytes a head has, how that was found, and for which blocks it is right."""
    for one in group.regions:
        yield f"bytes of a head in a block: {one.bytes_per_head:,}, {one.formula}"
    if group.regions:
        yield "offsets in bytes are for head-major blocks, where a head's bytes lie together"


def _of(name: str) -> str:
    return f" for {name}" if name else ""


def waiting(plan: HeadPlan) -> Iterator[tuple[str, str]]:
    """Yield who waits for whom, and who sends to whom; ranks with the same peers together."""
    for side, verb in (("consumer", "waits for"), ("producer", "sends to")):
        name, other = (consumers, producers) if side == "consumer" else (producers, consumers)
        groups: dict[tuple[int, ...], list[int]] = {}
        for view in plan.peers:
            if view.side == side:
                groups.setdefault(view.counted, []).append(view.tp_rank)
        for peers, ranks in groups.items():
            said = verb if len(ranks) == 1 else {"waits for": "wait for"}.get(verb, "send to")
            yield name(ranks), f"{said} {other(peers)}"
