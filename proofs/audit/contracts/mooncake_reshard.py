# SPDX-License-Identifier: Apache-2.0
"""Mooncake Reshard: plan one target participant from two placements, and read off its edges.

Written after `plan_kv_cache_transfer_to_local_target` in mooncake-transfer-engine-cuda13 0.3.14.
Each rank is a participant that declares its heads and its place among the ranks that hold the same
heads; one layer, one DP replica and one pipeline stage. Of an edge per component, the key's is
read.
"""

from functools import lru_cache

UNIT = "heads"
DOMAIN = "legal groups"
OUTSIDE = (
    "Lowering to memory: token-major rows, one descriptor per token for a slice of heads.",
    "Data parallel, pipeline and context parallel, MLA and hybrid models.",
    "The value component: its edges repeat the key's.",
)
# The planner's classes lie in many files of its package.
EXECUTED_ONLY = True
PACKAGE = True


def plan(
    planner,
    total_num_kv_heads,
    producer_tp_size,
    producer_tp_rank,
    consumer_tp_size,
    consumer_tp_rank,
):
    """The edges from the producer rank, of the plan of the consumer rank."""
    edges = edges_of(
        planner, total_num_kv_heads, producer_tp_size, consumer_tp_size, consumer_tp_rank
    )
    return [
        (edge.source_head_offset, edge.target_head_offset, edge.head_count)
        for edge in edges
        if edge.source_participant_id == participant(producer_tp_rank)
        and edge.component.value == "key"
    ]


@lru_cache(maxsize=64)
def edges_of(planner, total_num_kv_heads, producer_tp_size, consumer_tp_size, consumer_tp_rank):
    """Plan once for all producer ranks."""
    planned = planner(
        placement(total_num_kv_heads, producer_tp_size),
        placement(total_num_kv_heads, consumer_tp_size),
        participant(consumer_tp_rank),
    )
    return planned.edges


def participant(tp_rank):
    """Name a rank so that names sort as ranks do: ties between replicas are broken by name."""
    return f"tp{tp_rank:06}"


@lru_cache(maxsize=64)
def placement(total_num_kv_heads, tp_size):
    """Declare the heads of each rank of a group."""
    from mooncake.reshard.kv_cache.part import KVCachePlacementPart
    from mooncake.reshard.kv_cache.placement import KVCachePlacementManifest
    from mooncake.reshard.kv_cache.topology import KVCacheTopology, KVCacheTopologyParticipant
    from mooncake.reshard.kv_cache.types import KVCacheDescriptor, KVCacheRank

    descriptor = KVCacheDescriptor(
        global_layer_ids=(0,),
        dtype="bfloat16",
        itemsize=2,
        page_size=2,
        total_kv_heads=total_num_kv_heads,
        key_head_dim=1,
        value_head_dim=1,
    )
    ranks = tuple(KVCacheRank(tp=tp_rank) for tp_rank in range(tp_size))
    topology = KVCacheTopology(
        dp_size=1,
        pp_size=1,
        tp_size=tp_size,
        participants=tuple(
            KVCacheTopologyParticipant(participant(rank.tp), rank) for rank in ranks
        ),
    )
    replicas = max(tp_size // total_num_kv_heads, 1)
    parts = tuple(
        KVCachePlacementPart(
            resource_id="cache",
            revision="1",
            placement_set_id="set",
            topology_id=topology.topology_id,
            participant_id=participant(rank.tp),
            rank=rank,
            descriptor=descriptor,
            layer_ids=(0,),
            head_start=rank.tp * total_num_kv_heads // tp_size,
            head_count=max(total_num_kv_heads // tp_size, 1),
            replica_ordinal=rank.tp % replicas,
            replica_count=replicas,
        )
        for rank in ranks
    )
    return KVCachePlacementManifest(
        resource_id="cache",
        revision="1",
        placement_set_id="set",
        topology=topology,
        descriptor=descriptor,
        parts=parts,
    )
