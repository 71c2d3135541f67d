# SPDX-License-Identifier: Apache-2.0
"""vLLM's MooncakeConnector: a producer rank asks what it sends to one consumer rank.

Written after `_compute_sender_transfer_plan` and its callers in vLLM 0.25 to 0.33, for models
whose attention layers are plain: the head count is passed where the signature has it.
"""

from typing import NamedTuple

UNIT = "bytes"
DOMAIN = "legal groups of which one size divides the other"
OUTSIDE = (
    (
        "Regions are one layer each, head-major, without padding, of one data type: neither what "
        "_prepare_transfer_regions merges nor what _validate_head_resharding_layout refuses is "
        "looked at."
    ),
    "Pairs of which neither size divides the other: vLLM stops them by an assertion.",
    "MLA, and hybrid models, for which vLLM passes no head count.",
)
GUARD = "_validate_asymmetric_region_lengths"
# Before vLLM 0.30.0 neither function has it.
OPTIONAL_ARGUMENTS = ("total_num_kv_heads",)


class Region(NamedTuple):
    """What the length check reads of a region."""

    kv_block_len: int


def in_domain(producer_tp_size, consumer_tp_size):
    """Whether one size divides the other."""
    return producer_tp_size % consumer_tp_size == 0 or consumer_tp_size % producer_tp_size == 0


def pairs(producer_tp_size, producer_tp_rank, consumer_tp_size, consumer_tp_rank):
    """Rank r of the larger group meets rank r // ratio of the smaller."""
    if producer_tp_size >= consumer_tp_size:
        return producer_tp_rank // (producer_tp_size // consumer_tp_size) == consumer_tp_rank
    return consumer_tp_rank // (consumer_tp_size // producer_tp_size) == producer_tp_rank


def block_length(total_num_kv_heads, tp_size, bytes_per_head):
    """Bytes of a rank's block, which are registered as kv_block_len."""
    return max(total_num_kv_heads // tp_size, 1) * bytes_per_head


def plan(
    planner,
    total_num_kv_heads,
    producer_tp_size,
    producer_tp_rank,
    consumer_tp_size,
    consumer_tp_rank,
    bytes_per_head,
):
    """The one copy that the producer makes, or none."""
    send, src_offset, dst_offset, length = planner(
        local_tp_rank=producer_tp_rank,
        local_tp_size=producer_tp_size,
        remote_tp_rank=consumer_tp_rank,
        remote_tp_size=consumer_tp_size,
        local_kv_block_len=block_length(total_num_kv_heads, producer_tp_size, bytes_per_head),
        remote_kv_block_len=block_length(total_num_kv_heads, consumer_tp_size, bytes_per_head),
        producer_cache_replicated=producer_tp_size > total_num_kv_heads,
        total_num_kv_heads=total_num_kv_heads,
    )
    return [(src_offset, dst_offset, length)] if send else []


def refused(guard, total_num_kv_heads, producer_tp_size, consumer_tp_size, bytes_per_head):
    """Whether the length check returns a complaint, after which nothing is sent."""
    complaint = guard(
        local_regions=[Region(block_length(total_num_kv_heads, producer_tp_size, bytes_per_head))],
        remote_regions=[Region(block_length(total_num_kv_heads, consumer_tp_size, bytes_per_head))],
        local_tp_size=producer_tp_size,
        remote_tp_size=consumer_tp_size,
        producer_cache_replicated=producer_tp_size > total_num_kv_heads,
        total_num_kv_heads=total_num_kv_heads,
    )
    return complaint is not None


def expected_producer(
    total_num_kv_heads, producer_tp_size, consumer_tp_size, consumer_tp_rank, head
):
    """Of the ranks that hold the head, the first one that the consumer rank is paired with."""
    replicas = max(producer_tp_size // total_num_kv_heads, 1)
    holder = head // max(total_num_kv_heads // producer_tp_size, 1)
    return holder * replicas + (consumer_tp_rank * producer_tp_size // consumer_tp_size) % replicas
