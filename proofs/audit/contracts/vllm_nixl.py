# SPDX-License-Identifier: Apache-2.0
"""vLLM's NixlConnector: a consumer rank asks which producer ranks it pulls from, and what.

Written after `compute_tp_mapping` and how the worker reads its answer in vLLM 0.32.0, for models
whose attention layers are plain: each source rank fills one slot of the consumer's block, and all
slots have the same length; a consumer that is finer than the producer reads at a multiple of its
own block's length.
"""

from types import SimpleNamespace

UNIT = "bytes"
DOMAIN = "legal groups of which one size divides the other"
OUTSIDE = (
    (
        "For plain attention the handshake, which is in another file, refuses P > D with P > H by "
        "an assertion, so that what the mapping says there is not used."
    ),
    "Pairs of which neither size divides the other: vLLM stops them by an assertion.",
    "MLA, Mamba and hybrid models, context parallel, and blocks of different size.",
)
# It computes with numpy vectors.
EXECUTED_ONLY = True


def in_domain(producer_tp_size, consumer_tp_size):
    """Whether one size divides the other."""
    return producer_tp_size % consumer_tp_size == 0 or consumer_tp_size % producer_tp_size == 0


def plan(
    planner,
    total_num_kv_heads,
    producer_tp_size,
    producer_tp_rank,
    consumer_tp_size,
    consumer_tp_rank,
    bytes_per_head,
):
    """The one read that the consumer makes from the producer rank, or none."""
    readers = max(consumer_tp_size // producer_tp_size, 1)
    mapping = planner(
        transfer_topology=SimpleNamespace(
            tp_rank=consumer_tp_rank,
            tp_size=consumer_tp_size,
            total_num_kv_heads=total_num_kv_heads,
            is_mla=False,
            dcp_consumer_count=lambda *_: readers,
        ),
        remote_tp_size=producer_tp_size,
        # No group has state other than attention; with plain attention alone, all source ranks
        # are sources of the one attention group.
        group_spec_types=(),
    )
    sources = mapping.all_source_ranks
    if producer_tp_rank not in sources:
        return []
    block = max(total_num_kv_heads // consumer_tp_size, 1) * bytes_per_head
    piece = block // len(sources)
    src_offset = mapping.rank_offset_factor * block
    dst_offset = mapping.rank_to_attention_slot[producer_tp_rank] * piece
    return [(src_offset, dst_offset, piece)]
