# SPDX-License-Identifier: Apache-2.0
"""A plan as JSON.

The object has these keys, all of them always there. Ranks, heads and slots count from 0.

schema
    "kvreshard.plan/1". The number goes up when a key goes away or changes its meaning; a new key
    may come without that.
safe, faults
    Whether the copies write every head once and the peers agree, counted in the copies below;
    and what is wrong, in words.
model
    name, source (where the shape is from, in words), notes and not_checked: sentences.
groups
    For each group of layers: name (may be empty), layers (null if not known), latent;
    total_num_kv_heads, num_query_heads (null if not known), producer_tp_size, consumer_tp_size,
    election; producer_heads and consumer_heads: for each rank the heads it holds; senders: for
    each consumer rank the producer ranks it waits for; receivers: for each producer rank the
    consumer ranks it sends to; regions; and copies.
regions
    The tensors of a layer that differ in width: name, bytes_per_head (of one block), formula,
    consumer_bytes (of one block of a consumer rank). Empty where bytes are not known.
copies
    producer_tp_rank, consumer_tp_rank, first_head, head_count, src_head_offset, dst_head_offset;
    and bytes: for each region src_offset, dst_offset and length.
command
    Gives the plan again.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kvreshard.head_plan import HeadCopy
    from kvreshard.plan_request import GroupPlan, Planned, Region

SCHEMA = "kvreshard.plan/1"


def plan_json(planned: Planned) -> str:
    """Return the answer as JSON, indented, without a newline at its end."""
    return json.dumps(
        {
            "schema": SCHEMA,
            "safe": not planned.faults,
            "faults": list(planned.faults),
            "model": {
                "name": planned.shape.name,
                "source": planned.shape.source,
                "notes": list(planned.shape.notes),
                "not_checked": list(planned.warnings),
            },
            "groups": [_group(group) for group in planned.groups],
            "command": planned.command,
        },
        indent=1,
    )


def _group(group: GroupPlan) -> dict[str, Any]:
    plan, layers = group.plan, group.layers
    return {
        "name": layers.name,
        "layers": layers.layers,
        "latent": layers.latent,
        "total_num_kv_heads": plan.total_num_kv_heads,
        "num_query_heads": layers.query_heads,
        "producer_tp_size": plan.producer_tp_size,
        "consumer_tp_size": plan.consumer_tp_size,
        "election": plan.election,
        "producer_heads": [list(held) for held in plan.producer_heads],
        "consumer_heads": [list(held) for held in plan.consumer_heads],
        "senders": [list(one.counted) for one in plan.peers if one.side == "consumer"],
        "receivers": [list(one.counted) for one in plan.peers if one.side == "producer"],
        "regions": [
            {
                **asdict(one),
                "consumer_bytes": len(plan.consumer_heads[0]) * one.bytes_per_head,
            }
            for one in group.regions
        ],
        "copies": [
            {**asdict(copy), "bytes": [_bytes(copy, one) for one in group.regions]}
            for copy in plan.copies
        ],
    }


def _bytes(copy: HeadCopy, region: Region) -> dict[str, Any]:
    return {
        "src_offset": copy.src_head_offset * region.bytes_per_head,
        "dst_offset": copy.dst_head_offset * region.bytes_per_head,
        "length": copy.head_count * region.bytes_per_head,
    }
