# SPDX-License-Identifier: Apache-2.0
"""SGLang's head slices: a prefill rank asks which heads it copies into one decode rank's block.

Written after `compute_head_slice_params` and its callers in SGLang 0.5.23, which ask it where the
two sizes differ, and after the ranks that a decode rank contacts there.
"""

UNIT = "heads"
DOMAIN = "legal groups of different size"
OUTSIDE = (
    "Groups of equal size: SGLang copies whole pages there and does not ask this function.",
    "Tokens and pages: a slice is one descriptor per token, layer and component.",
    "MLA, context parallel and pipeline parallel.",
)


def in_domain(producer_tp_size, consumer_tp_size):
    """Whether the function is asked at all."""
    return producer_tp_size != consumer_tp_size


def pairs(producer_tp_size, producer_tp_rank, consumer_tp_size, consumer_tp_rank):
    """A decode rank contacts the next P // D prefill ranks, or rank d // (D // P) alone."""
    if producer_tp_size > consumer_tp_size:
        return producer_tp_rank // (producer_tp_size // consumer_tp_size) == consumer_tp_rank
    return consumer_tp_rank // (consumer_tp_size // producer_tp_size) == producer_tp_rank


def plan(
    planner,
    total_num_kv_heads,
    producer_tp_size,
    producer_tp_rank,
    consumer_tp_size,
    consumer_tp_rank,
):
    """The one slice that every contacted rank sends."""
    src_head, count, dst_head, _ = planner(
        src_attn_tp_size=producer_tp_size,
        dst_attn_tp_size=consumer_tp_size,
        src_tp_rank=producer_tp_rank,
        dst_tp_rank=consumer_tp_rank,
        total_kv_heads=total_num_kv_heads,
    )
    return [(src_head, dst_head, count)]
