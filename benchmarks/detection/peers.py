# SPDX-License-Identifier: Apache-2.0
"""The sizes at which public unit tests of other projects exercise a plan of heads, as facts.

Only tests that run without a server and compare ranks, offsets or lengths are listed; those that
start two servers and compare a model's answers are not, nor those that only wait for a handshake.
A test that repeats a size for another reason (pipeline stages, layers, data types) is one point.
"""

from __future__ import annotations

from dataclasses import dataclass

Sizes = tuple[int, int, int]


@dataclass(frozen=True)
class PeerTests:
    """One test file and the (H, P, D) that it exercises.

    Attributes:
        project: as in the reports of faults.
        repository: owner and name on GitHub.
        path: the file in it.
        commit: a commit that holds the file as it was read.
        points: the sizes; each group is legal for its H.
        note: what had to be read into it.
    """

    project: str
    repository: str
    path: str
    commit: str
    points: tuple[Sizes, ...]
    note: str = ""


PEERS: tuple[PeerTests, ...] = (
    PeerTests(
        "vLLM",
        "vllm-project/vllm",
        "tests/v1/kv_connector/unit/test_mooncake_connector.py",
        "d52c7b50f0c58f80d666bbac65dc3eb6c2d22a97",
        ((4, 2, 1), (4, 2, 4)),
        "H is not said; block lengths in inverse ratio to the group sizes make it a multiple of 4",
    ),
    PeerTests(
        "vLLM",
        "vllm-project/vllm",
        "tests/v1/kv_connector/unit/test_tp_mapping.py",
        "0fc701e4c100a0d3b5a99de1efe5514c48e714b7",
        ((8, 2, 2), (8, 2, 4), (8, 2, 1), (8, 4, 1)),
        "the NIXL connector's map of source ranks",
    ),
    PeerTests(
        "SGLang",
        "sgl-project/sglang",
        "test/registered/unit/disaggregation/test_head_slice_params.py",
        "109fe68b67708430861a85c64e70b21af8bcef13",
        ((8, 4, 2), (8, 2, 4), (2, 1, 4), (8, 4, 4), (8, 8, 8)),
        "at (2, 1, 4) it rules out the map that #23746 reports",
    ),
    PeerTests(
        "a fork of SGLang",
        "Robin930/sglang",
        "test/registered/unit/disaggregation/test_kv_replica_election.py",
        "162f488c2a9d6d0bf70500255f748c98d33321fe",
        (
            *((h, p, d) for p in (2, 4, 8) for d in (1, 2, 4) if p > d for h in (1, 2, 4, 8, 16)),
            (1, 8, 8),
            (1, 2, 8),
        ),
        "the product of small sizes with P > D, after the faults with replicated heads; three more "
        "have a group that is not legal here",
    ),
    PeerTests(
        "vllm-ascend",
        "vllm-project/vllm-ascend",
        "tests/ut/kv_connector/test_mooncake_connector.py",
        "00727e8ed579a4871445d32475eaa403dd39c7b0",
        (
            *((4, p, 1) for p in (2, 4, 8, 16)),
            (4, 4, 2),
            *((4, p, 4) for p in (4, 8, 16)),
            (8, 4, 2),
            *((1, p, 1) for p in (4, 8, 16)),
            *((1, p, 4) for p in (4, 8)),
        ),
        "H = 1 stands for a latent cache that every rank holds whole",
    ),
    PeerTests(
        "TensorRT-LLM",
        "NVIDIA/TensorRT-LLM",
        "cpp/tests/unit_tests/multi_gpu/cacheTransceiverTest.cpp",
        "00aabf92d761b73e03f0f3966bc1d7548ced2651",
        (
            *((4, p, d) for p in (1, 2) for d in (1, 2)),
            (4, 4, 1),
            (16, 1, 1),
            *((2, p, 4) for p in (1, 2, 4)),
            *((1, p, 2) for p in (1, 2, 4)),
            (2, 4, 2),
            *((h, 4, 1) for h in (1, 2)),
        ),
        "without attention data parallelism and without latent caches; needs several GPUs",
    ),
)


def points() -> tuple[Sizes, ...]:
    """Return every size that some project's tests exercise, each once, the smallest first."""
    return tuple(sorted({point for tests in PEERS for point in tests.points}))
