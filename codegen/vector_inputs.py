# SPDX-License-Identifier: Apache-2.0
"""What the test vectors are about: which sizes, and why each is there. No answers.

Facts about faults come from public reports, named with each; shapes of models come from their
published configurations.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from kvreshard.proofs.judge import is_legal


class Sizes(NamedTuple):
    """KV heads of the model and the two group sizes, in the order of the theorems: H, P, D."""

    total_num_kv_heads: int
    producer_tp_size: int
    consumer_tp_size: int


@dataclass(frozen=True)
class Fault:
    """A fault that was reported in public, about a plan or a length check.

    Attributes:
        name: what went wrong, as a name.
        source: where it was reported.
        told: what went wrong and what is right, in a sentence or two.
        sizes: the inputs that it is shown on.
        reported: whether the report gives these sizes, or they are ours.
        bytes_per_head: bytes of one head in one block.
        lengths: region lengths that belong to it, in bytes, producer first.
    """

    name: str
    source: str
    told: str
    sizes: tuple[Sizes, ...]
    reported: bool = True
    bytes_per_head: int = 4096
    lengths: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True)
class Model:
    """The cache of one kind of layer of a model.

    Attributes:
        name: the model, and the kind of layer where it has several.
        query_heads: a TP size has to divide them, too.
        kv_heads: 1 for a latent cache (MLA), which has no heads to split.
        elements: elements of one head of one token, keys and values together.
    """

    name: str
    query_heads: int
    kv_heads: int
    elements: int


# Every legal triple with H, P and D up to this is a case.
SWEPT_TO = 6
# Small and divisible by 2 and 3 only, so that an offset in the wrong unit lands somewhere else.
SWEPT_BYTES_PER_HEAD = 24

# Pairs of which no size divides the other, beyond the sweep.
INDIVISIBLE = (
    Sizes(12, 3, 4),
    Sizes(12, 4, 3),
    Sizes(12, 4, 6),
    Sizes(12, 6, 4),
    Sizes(10, 5, 2),
    Sizes(30, 6, 10),
    Sizes(30, 15, 6),
    Sizes(3, 6, 9),
    Sizes(3, 9, 6),
    Sizes(4, 8, 12),
    Sizes(4, 12, 8),
    Sizes(1, 7, 5),
)

# Sizes past those of most deployments, so that a planner with a bound of its own meets them. H, P
# and D each are the large one once, and of the last four pairs no size divides the other.
WIDE = (
    Sizes(8, 8, 32),
    Sizes(8, 32, 8),
    Sizes(8, 64, 16),
    Sizes(8, 16, 64),
    Sizes(1, 64, 8),
    Sizes(1, 8, 64),
    Sizes(128, 8, 4),
    Sizes(128, 4, 8),
    Sizes(64, 64, 32),
    Sizes(64, 32, 64),
    Sizes(96, 48, 32),
    Sizes(96, 32, 48),
    Sizes(4, 40, 24),
    Sizes(4, 24, 40),
)

# Sizes that are no legal group of the model. The third of each triple is 1 or more on purpose:
# one wrong side is enough.
REFUSED = (
    Sizes(6, 4, 2),
    Sizes(6, 2, 4),
    Sizes(6, 4, 4),
    Sizes(4, 3, 1),
    Sizes(4, 1, 3),
    Sizes(4, 6, 2),
    Sizes(4, 2, 6),
    Sizes(8, 12, 4),
    Sizes(10, 4, 2),
    Sizes(0, 1, 1),
    Sizes(4, 0, 1),
    Sizes(4, 1, 0),
    Sizes(4, -2, 1),
)

# Legal sizes of which a rank is asked for that its group does not have.
REFUSED_RANKS = (
    Sizes(4, 2, 4),
    Sizes(4, 8, 2),
    Sizes(2, 1, 4),
)

FAULTS: tuple[Fault, ...] = (
    Fault(
        "only_producer_rank_0_sends",
        "vLLM PR #52516",
        "Only producer rank 0 sent 65,536 of 262,144 bytes, and the request was marked ready. "
        "One replica of each head sends.",
        (Sizes(4, 8, 1),),
        bytes_per_head=65_536,
    ),
    Fault(
        "offsets_by_tp_ratio_past_the_last_head",
        "vLLM PR #52516",
        "Source offsets went by the ratio of the TP sizes. Consumer rank d of 8 reads head d // 2.",
        (Sizes(4, 1, 8), Sizes(4, 2, 8), Sizes(4, 4, 8)),
        bytes_per_head=65_536,
    ),
    Fault(
        "a_padded_page_is_taken_for_its_payload",
        "vLLM PR #52516, review",
        "The padded length of a page gave the head stride. A length is that of the payload; one "
        "with padding on one side is refused. The padding of 4,096 bytes is ours.",
        (Sizes(4, 1, 8),),
        bytes_per_head=65_536,
        lengths=((4 * 65_536 + 4096, 65_536),),
    ),
    Fault(
        "lengths_compared_by_tp_size",
        "vLLM #45330, PR #45860, PR #45879",
        "Valid pairs were refused because lengths were taken to scale with the TP size. They "
        "scale with the heads that a rank holds.",
        (Sizes(8, 8, 16), Sizes(4, 2, 8)),
    ),
    Fault(
        "heads_rebuilt_from_local_heads",
        "SGLang #19086",
        "The head count was rebuilt as local heads times TP size, 1 * 4. It is 2; one head comes "
        "from rank 0 or 1, the other from rank 2 or 3.",
        (Sizes(2, 4, 1),),
    ),
    Fault(
        "heads_by_modulo",
        "SGLang #23746, #30997",
        "Consumer ranks read heads 0, 1, 0, 1. Replicas are consecutive: 0, 0, 1, 1.",
        (Sizes(2, 1, 4),),
    ),
    Fault(
        "sources_twice_the_region",
        "SGLang #31295, PR #31968",
        "The source list was twice the registered region. There are two source slices, each "
        "used twice.",
        (Sizes(2, 1, 4),),
    ),
    Fault(
        "every_replica_sends",
        "SGLang",
        "All replicas sent the same head, which goes unseen because the bytes are equal. One "
        "sends each head.",
        (Sizes(2, 4, 1),),
    ),
    Fault(
        "cut_by_ratio_where_no_size_divides",
        "a fork of SGLang",
        "Writes overlapped and left the block, and one rank was never contacted. Consumer rank 0 "
        "takes two heads of rank 0 and one of rank 1, consumer rank 1 the rest.",
        (Sizes(6, 3, 2),),
    ),
    Fault(
        "a_plannable_pair_is_refused",
        "SGLang #38552, llm-d #2433",
        "gpt-oss-120b from TP 1 to TP 4 was refused at transfer time, and the client hung. It "
        "can be planned.",
        (Sizes(8, 1, 4),),
    ),
    Fault(
        "duplicates_where_producers_outnumber_heads",
        "vllm-ascend #3366",
        "Duplicates broke the transfer where the producer group is larger than the head count.",
        (Sizes(4, 8, 2), Sizes(2, 8, 4), Sizes(1, 8, 2)),
        reported=False,
    ),
    Fault(
        "consumers_left_out_where_they_outnumber_heads",
        "vllm-ascend #5846",
        "Some consumer ranks got nothing where the consumer group is larger than the head count.",
        (Sizes(4, 2, 8), Sizes(2, 1, 8), Sizes(4, 8, 16)),
        reported=False,
    ),
    Fault(
        "local_heads_taken_for_global",
        "vllm-ascend #11885 to #11887",
        "Local heads were used as the model's, and a draft model has another head count than its "
        "target: 8 and 16. Each region has its own.",
        (Sizes(16, 8, 2), Sizes(8, 8, 2)),
    ),
    Fault(
        "one_region_for_all_layers",
        "vllm-gaudi #1201",
        "Regions of DeepSeek-V2-Lite, a latent cache of 27 layers, were taken for spans of all "
        "layers, 27 times as long. A region is one layer; the TP sizes here are ours.",
        (Sizes(1, 1, 1),),
        reported=False,
        bytes_per_head=18_432,
        lengths=((27 * 18_432, 18_432), (18_432, 27 * 18_432)),
    ),
)

# Blocks of 16 tokens, 2 bytes per element (bfloat16), keys and values in one region.
BLOCK_SIZE, ELEMENT_BYTES = 16, 2

MODELS: tuple[Model, ...] = (
    Model("Llama-3.1-8B", 32, 8, 256),
    Model("Llama-3.1-70B", 64, 8, 256),
    Model("Llama-3.1-405B", 128, 8, 256),
    Model("Llama-4-Maverick", 40, 8, 256),
    Model("Qwen3-0.6B", 16, 8, 256),
    Model("Qwen3-8B", 32, 8, 256),
    Model("Qwen3-32B", 64, 8, 256),
    Model("Qwen3-Coder-480B", 96, 8, 256),
    Model("Mixtral-8x7B", 32, 8, 256),
    Model("Mixtral-8x22B", 48, 8, 256),
    Model("GLM-4.7", 96, 8, 256),
    Model("MiniMax-M2.5", 48, 8, 256),
    Model("Step-3.7-Flash", 64, 8, 256),
    Model("Nemotron-H-56B", 64, 8, 256),
    Model("Llama-3.3-Nemotron-49B", 64, 8, 256),
    Model("gpt-oss-20b", 64, 8, 128),
    Model("gpt-oss-120b", 64, 8, 128),
    Model("Gemma-4-26B-A4B, local layers", 16, 8, 512),
    Model("Gemma-4-31B, local layers", 32, 16, 512),
    Model("Qwen3-30B-A3B", 32, 4, 256),
    Model("Qwen3-235B-A22B", 64, 4, 256),
    Model("MiniMax-M3", 64, 4, 256),
    Model("Qwen3.5-27B, full attention layers", 24, 4, 512),
    Model("MiMo-V2-Flash, full attention layers", 64, 4, 320),
    Model("MiMo-V2-Flash, sliding window layers", 64, 8, 320),
    Model("Qwen3-Next-80B, full attention layers", 16, 2, 512),
    Model("Qwen3.5-35B-A3B, full attention layers", 16, 2, 512),
    Model("Qwen3.5-122B, full attention layers", 32, 2, 512),
    Model("Qwen3.5-397B, full attention layers", 32, 2, 512),
    Model("Nemotron-3-Nano, attention layers", 32, 2, 256),
    Model("Nemotron-3-Super, attention layers", 32, 2, 256),
    Model("DeepSeek-V3", 128, 1, 576),
    Model("DeepSeek-R1", 128, 1, 576),
    Model("Kimi-K2", 64, 1, 576),
    Model("GLM-5", 64, 1, 576),
    Model("Phi-3-medium", 40, 10, 256),
    # Attention without groups: as many KV heads as query heads.
    Model("Llama-2-7B", 32, 32, 256),
    Model("Llama-2-13B", 40, 40, 256),
    Model("LLaMA-65B", 64, 64, 256),
    Model("OPT-175B", 96, 96, 256),
)

# The last four are for a head count that is no power of two.
TP_PAIRS = (
    (1, 4),
    (4, 1),
    (2, 4),
    (4, 2),
    (1, 8),
    (8, 1),
    (4, 8),
    (8, 4),
    (8, 16),
    (16, 8),
    (2, 5),
    (5, 2),
    (5, 10),
    (10, 5),
)


def swept() -> list[Sizes]:
    """Return every legal triple with H, P and D up to `SWEPT_TO`."""
    sizes = range(1, SWEPT_TO + 1)
    return [
        Sizes(heads, producers, consumers)
        for heads in sizes
        for producers in sizes
        for consumers in sizes
        if is_legal(heads, producers) and is_legal(heads, consumers)
    ]


def ranks_refused() -> list[tuple[Sizes, int, int]]:
    """Return sizes with a producer and a consumer rank, one of which its group does not have.

    The first rank past the group is the one that a modulo takes for rank 0, and -1 for the last.
    """
    return [
        (sizes, producer, consumer)
        for sizes in REFUSED_RANKS
        for producer, consumer in (
            (sizes.producer_tp_size, 0),
            (-1, 0),
            (0, sizes.consumer_tp_size),
            (0, -1),
        )
    ]


def model_shapes() -> dict[tuple[Sizes, int], list[str]]:
    """Return the models by sizes and bytes per head, for the pairs that each can be served with.

    Models whose caches are alike share an entry. A TP size has to divide the query heads.
    """
    found: dict[tuple[Sizes, int], list[str]] = {}
    for model in MODELS:
        size = model.elements * ELEMENT_BYTES * BLOCK_SIZE
        for pair in TP_PAIRS:
            if all(is_legal(model.kv_heads, tp) and model.query_heads % tp == 0 for tp in pair):
                found.setdefault((Sizes(model.kv_heads, *pair), size), []).append(model.name)
    return found
