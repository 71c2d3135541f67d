# SPDX-License-Identifier: Apache-2.0
"""vLLM's MooncakeConnector for a hybrid model: the sender plan without the head count.

Written after `_get_sender_transfer_plan` and `send_kv_to_decode` in vLLM 0.32 and 0.33, which pass
None for the head count where the model has Mamba or GDN layers beside attention. Asked is what the
attention layers of such a model get.
"""

from typing import NamedTuple

UNIT = "bytes"
DOMAIN = "legal groups of which one size divides the other"
OUTSIDE = (
    (
        "The states of the Mamba or GDN layers. They go by the same function, are divided among "
        "all ranks, and are no heads."
    ),
    (
        "Blocks of unlike numbers of tokens. vLLM raises the block size of a hybrid model until a "
        "page holds a rank's state, each side for itself; here it is taken to be the same on both "
        "sides, as where the user sets one that is large enough. Where it is not, the connector "
        "compares numbers of blocks, and refuses a producer that has fewer."
    ),
    (
        "What else may stop such a deployment before a request is sent: only the connector's own "
        "checks were read, and nothing of it was run with a model."
    ),
    (
        "Regions are one layer each, head-major, without padding, of one data type: neither what "
        "_prepare_transfer_regions merges is looked at, nor padded pages and NVFP4, which "
        "_validate_head_resharding_layout does not refuse for a hybrid model."
    ),
    "Pairs of which neither size divides the other: vLLM stops them by an assertion.",
    "MLA, for which vLLM passes no head count either: it has no heads to divide.",
)
GUARD = "_validate_asymmetric_region_lengths"


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
        total_num_kv_heads=None,
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
        total_num_kv_heads=None,
    )
    return complaint is not None


def expected_producer(
    total_num_kv_heads, producer_tp_size, consumer_tp_size, consumer_tp_rank, head
):
    """Of the ranks that hold the head, the first one that the consumer rank is paired with."""
    replicas = max(producer_tp_size // total_num_kv_heads, 1)
    holder = head // max(total_num_kv_heads // producer_tp_size, 1)
    return holder * replicas + (consumer_tp_rank * producer_tp_size // consumer_tp_size) % replicas
