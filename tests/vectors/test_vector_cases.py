# SPDX-License-Identifier: Apache-2.0
"""What the checked-in vectors cover, their right answers by hand, and that the judge is strict."""

from __future__ import annotations

import copy
import json
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from kvreshard import generated
from kvreshard.codegen import vector_inputs, vectors
from kvreshard.codegen.evidence import EmissionRefused
from kvreshard.codegen.vector_judge import complaints
from kvreshard.codegen.vector_text import WIDTH, as_text
from kvreshard.models import MODELS
from kvreshard.spec.canonical import spec_hash
from kvreshard.spec.election import POLICIES
from kvreshard.spec.regimes import REGIMES

if TYPE_CHECKING:
    from collections.abc import Callable

FOLDER = Path(generated.__path__[0]) / "vectors"
TEXT = (FOLDER / "vectors.json").read_text(encoding="utf-8")
DOCUMENT: dict[str, Any] = json.loads(TEXT)
CASES: dict[str, dict[str, Any]] = {case["name"]: case for case in DOCUMENT["cases"]}
PLANNED = [case for case in CASES.values() if "refused" not in case]


def copies(case: dict[str, Any], election: str) -> list[list[int]]:
    """Return the rows of an election's plan."""
    (found,) = (plan["copies"] for plan in case["plans"] if election in plan["elections"])
    return [list(row) for row in found]


def senders(case: dict[str, Any], election: str) -> list[list[int]]:
    """Return the senders of each consumer rank."""
    (found,) = (plan["senders"] for plan in case["plans"] if election in plan["elections"])
    return [list(ranks) for ranks in found]


# What is covered


def test_every_regime_has_cases_of_every_election_that_is_defined_there() -> None:
    found = Counter(
        (case["regime"], election)
        for case in PLANNED
        for plan in case["plans"]
        for election in plan["elections"]
    )
    for regime in REGIMES:
        for policy in POLICIES:
            undefined = policy.needs_divisible_pair and regime.name.endswith("_indivisible")
            assert (found[regime.name, policy.name] == 0) is undefined


def test_elections_differ_in_some_case() -> None:
    apart = [case for case in PLANNED if len(case["plans"]) == len(POLICIES)]
    assert apart


def test_every_listed_fault_has_a_case_for_each_of_its_sizes() -> None:
    found = Counter(case["fault"]["name"] for case in PLANNED if "fault" in case)
    assert found == {fault.name: len(fault.sizes) for fault in vector_inputs.FAULTS}


@pytest.mark.parametrize("sizes", [(6, 3, 2), (12, 3, 4)])
def test_pairs_of_which_no_size_divides_the_other(sizes: tuple[int, int, int]) -> None:
    names = ("total_num_kv_heads", "producer_tp_size", "consumer_tp_size")
    assert any(
        tuple(case[name] for name in names) == sizes and case["regime"].endswith("_indivisible")
        for case in PLANNED
    )


def test_models_have_the_shapes_that_the_demo_gives_them() -> None:
    ours = {model.name.lower().split(",")[0]: model for model in vector_inputs.MODELS}
    assert set(MODELS) <= set(ours)
    for name, shape in MODELS.items():
        assert (ours[name].kv_heads, ours[name].elements) == (shape.kv_heads, 2 * shape.head_dim)


@pytest.mark.parametrize("large", ["total_num_kv_heads", "producer_tp_size", "consumer_tp_size"])
def test_a_bound_on_one_of_the_sizes_is_met(large: str) -> None:
    sizes = {"total_num_kv_heads", "producer_tp_size", "consumer_tp_size"}
    assert any(
        case[large] > 32 and all(case[name] <= 32 for name in sizes - {large}) for case in PLANNED
    )


def test_models_without_grouped_heads_have_cases() -> None:
    for name, heads in (("Llama-2-7B", 32), ("Llama-2-13B", 40)):
        pairs = {
            (case["producer_tp_size"], case["consumer_tp_size"])
            for case in PLANNED
            if name in case.get("models", []) and case["total_num_kv_heads"] == heads
        }
        assert {(1, 4), (4, 1), (8, 4), (4, 8)} <= pairs


def test_ranks_past_each_end_of_each_group_are_refused() -> None:
    found = set()
    for case in CASES.values():
        for side in ("producer", "consumer"):
            rank = case.get(f"{side}_tp_rank", 0)
            if rank < 0 or rank >= case[f"{side}_tp_size"] > 0:
                found.add((side, rank < 0))
    assert found == {(side, below) for side in ("producer", "consumer") for below in (True, False)}


def test_every_model_has_a_case() -> None:
    found = {name for case in PLANNED for name in case.get("models", [])}
    assert found == {model.name for model in vector_inputs.MODELS}


def test_a_real_model_at_a_common_pair_in_numbers() -> None:
    case = CASES["model_8192_bytes_h8_p8_d4"]
    assert {"Llama-3.1-70B", "Qwen3-32B"} <= set(case["models"])
    assert copies(case, "lowest")[:2] == [
        [0, 0, 0, 0, 1, 0, 0, 8192],
        [1, 0, 0, 1, 1, 0, 8192, 8192],
    ]


def test_the_file_stays_small_and_reads_in_a_diff() -> None:
    assert len(TEXT.encode()) < 1_000_000
    long = [line for line in TEXT.splitlines() if len(line) > WIDTH]
    assert all(line.lstrip().startswith(('"why": ', '"models": ')) for line in long)


# Right answers, by hand


def test_one_replica_of_each_head_sends() -> None:
    case = CASES["fault_only_producer_rank_0_sends_h4_p8_d1"]
    rows = copies(case, "paired")
    assert [(row[0], row[6], row[7]) for row in rows] == [
        (0, 0, 65_536),
        (2, 65_536, 65_536),
        (4, 131_072, 65_536),
        (6, 196_608, 65_536),
    ]
    assert case["consumer_block_bytes"] == 262_144


@pytest.mark.parametrize(
    ("producers", "sources"),
    [
        (1, [0, 0, 65_536, 65_536, 131_072, 131_072, 196_608, 196_608]),
        (2, [0, 0, 65_536, 65_536, 0, 0, 65_536, 65_536]),
        (4, [0] * 8),
    ],
)
def test_consumers_past_the_last_head_read_their_own(producers: int, sources: list[int]) -> None:
    case = CASES[f"fault_offsets_by_tp_ratio_past_the_last_head_h4_p{producers}_d8"]
    assert [row[5] for row in copies(case, "lowest")] == sources
    assert case["consumer_blocks"] == [[0], [0], [1], [1], [2], [2], [3], [3]]


@pytest.mark.parametrize(
    ("name", "row"),
    [
        ("fault_lengths_compared_by_tp_size_h8_p8_d16", [4096, 4096, True]),
        ("fault_lengths_compared_by_tp_size_h8_p8_d16", [65_536, 32_768, False]),
        ("fault_lengths_compared_by_tp_size_h4_p2_d8", [8192, 4096, True]),
        ("fault_lengths_compared_by_tp_size_h4_p2_d8", [32_768, 8192, False]),
        ("fault_a_padded_page_is_taken_for_its_payload_h4_p1_d8", [262_144, 65_536, True]),
        ("fault_a_padded_page_is_taken_for_its_payload_h4_p1_d8", [266_240, 65_536, False]),
        ("fault_one_region_for_all_layers_h1_p1_d1", [18_432, 18_432, True]),
        ("fault_one_region_for_all_layers_h1_p1_d1", [497_664, 18_432, False]),
        # 2 and 4 heads: the product fits, the bytes per head do not.
        ("sweep_h4_p2_d1", [1, 2, False]),
    ],
)
def test_lengths_compare_by_heads_held(name: str, row: list[int | bool]) -> None:
    assert row in CASES[name]["lengths"]


def test_two_heads_on_four_ranks_come_from_one_of_each_pair() -> None:
    for name in ("heads_rebuilt_from_local_heads", "every_replica_sends"):
        case = CASES[f"fault_{name}_h2_p4_d1"]
        assert case["consumer_blocks"] == [[0, 1]]
        for election in ("lowest", "spread", "paired"):
            ((first, second),) = senders(case, election)
            assert first in (0, 1)
            assert second in (2, 3)


def test_two_source_slices_are_each_used_twice() -> None:
    for name in ("heads_by_modulo", "sources_twice_the_region"):
        case = CASES[f"fault_{name}_h2_p1_d4"]
        assert case["consumer_blocks"] == [[0], [0], [1], [1]]
        assert [row[5] for row in copies(case, "lowest")] == [0, 0, 4096, 4096]


def test_six_heads_from_three_ranks_to_two() -> None:
    case = CASES["fault_cut_by_ratio_where_no_size_divides_h6_p3_d2"]
    assert [row[:5] for row in copies(case, "lowest")] == [
        [0, 0, 0, 0, 2],
        [1, 0, 0, 2, 1],
        [1, 1, 1, 0, 1],
        [2, 1, 0, 1, 2],
    ]
    (plan,) = case["plans"]
    assert plan["receivers"] == [[0], [0, 1], [1]]


def test_the_pair_that_was_refused_is_planned() -> None:
    case = CASES["fault_a_plannable_pair_is_refused_h8_p1_d4"]
    assert [row[2:5] for row in copies(case, "lowest")] == [[2 * d, 0, 2] for d in range(4)]


def test_target_and_draft_model_have_heads_of_their_own() -> None:
    for heads in (16, 8):
        case = CASES[f"fault_local_heads_taken_for_global_h{heads}_p8_d2"]
        assert case["consumer_blocks"][1] == list(range(heads // 2, heads))


def test_nobody_is_doubled_or_left_out() -> None:
    for fault in (
        "duplicates_where_producers_outnumber_heads",
        "consumers_left_out_where_they_outnumber_heads",
    ):
        cases = [case for case in PLANNED if case.get("fault", {}).get("name") == fault]
        assert cases
        for case in cases:
            for plan in case["plans"]:
                received = Counter(row[1] for row in plan["copies"] for _ in range(row[4]))
                heads = {d: len(block) for d, block in enumerate(case["consumer_blocks"])}
                assert received == heads


def elected(case: dict[str, Any], election: str, consumer: int, head: int) -> int:
    """Return who should send a head, by looking through those that hold it."""
    blocks, consumers = case["producer_blocks"], case["consumer_tp_size"]
    holders = [rank for rank, held in enumerate(blocks) if head in held]
    if election == "lowest":
        return holders[0]
    if election == "spread":
        return holders[consumer % len(holders)]
    # Pairs: the ranks of the larger group in equal runs, one run for each rank of the smaller.
    for rank in holders:
        if len(blocks) >= consumers:
            run = len(blocks) // consumers
            paired = rank in range(run * consumer, run * (consumer + 1))
        else:
            run = consumers // len(blocks)
            paired = consumer in range(run * rank, run * (rank + 1))
        if paired:
            return rank
    raise AssertionError("no pair holds the head")


def test_each_plan_is_that_of_the_elections_it_names() -> None:
    checked = 0
    for case in PLANNED:
        for plan in case["plans"]:
            senders_of = {
                (row[1], head): row[0]
                for row in plan["copies"]
                for head in case["producer_blocks"][row[0]][row[2] : row[2] + row[4]]
            }
            for election in plan["elections"]:
                for consumer, heads in enumerate(case["consumer_blocks"]):
                    for head in heads:
                        right = elected(case, election, consumer, head)
                        assert senders_of[consumer, head] == right
                        checked += 1
    assert checked > len(PLANNED)


# Generated, fresh, judged


def test_the_vectors_are_what_the_specification_gives() -> None:
    for name, text in vectors.render_vectors().items():
        assert (FOLDER.parent / name).read_text(encoding="utf-8") == text
    assert {path.name for path in FOLDER.iterdir() if path.is_file()} == {
        name.removeprefix("vectors/") for name in vectors.render_vectors()
    }


def test_the_vectors_name_their_specification() -> None:
    assert DOCUMENT["provenance"]["spec_sha256"] == spec_hash()


def test_the_judge_finds_nothing_in_the_vectors() -> None:
    assert complaints(DOCUMENT) == []


def _edited(name: str, edit: Callable[[dict[str, Any]], None]) -> list[str]:
    document = copy.deepcopy(DOCUMENT)
    edit(next(case for case in document["cases"] if case["name"] == name))
    return [one.removeprefix(f"vectors: {name}: ") for one in complaints(document)]


SIX = "fault_cut_by_ratio_where_no_size_divides_h6_p3_d2"


@pytest.mark.parametrize(
    ("edit", "complaint"),
    [
        (
            lambda case: case["plans"][0]["copies"].pop(),
            (
                "lowest and spread: every_consumer_head_is_covered_exactly_once: head 4 of "
                "consumer rank 1 is written by no producer rank"
            ),
        ),
        (
            lambda case: case["plans"][0]["copies"][1].__setitem__(2, 1),
            (
                "lowest and spread: every_written_byte_holds_the_same_head_token_and_position: "
                "producer rank 1 writes head 3 to the slot of head 2"
            ),
        ),
        (
            lambda case: case["plans"][0]["copies"][0].__setitem__(6, 1),
            "copy [0, 0, 0, 0, 2, 0, 1, 8192]: the bytes are not those of the heads",
        ),
        (
            lambda case: case["plans"][0]["copies"].append(case["plans"][0]["copies"][0]),
            "two copies for one pair of ranks",
        ),
        (
            lambda case: case["plans"][0]["senders"][0].pop(),
            (
                "lowest and spread: producers_and_consumers_agree_on_their_peers: consumer rank 0 "
                "waits for [0], but [0, 1] send to it"
            ),
        ),
        (
            lambda case: case["plans"][0]["receivers"][1].pop(),
            (
                "lowest and spread: producers_and_consumers_agree_on_their_peers: producer rank 1 "
                "counts on [0], but sends to [0, 1]"
            ),
        ),
        (
            lambda case: case["plans"][0]["elections"].pop(),
            "not every election that is defined has one plan",
        ),
        (
            lambda case: case["lengths"][0].__setitem__(2, False),
            "lengths 8192 and 12288 are refused",
        ),
        (
            lambda case: case.__setitem__("lengths", case["lengths"][:1]),
            "the lengths are all accepted or all refused",
        ),
        (
            lambda case: case["consumer_blocks"].reverse(),
            "consumer_blocks are not the heads that the ranks hold",
        ),
        (
            lambda case: case.__setitem__("producer_block_bytes", 4096),
            "producer_block_bytes are not those of the heads that a rank holds",
        ),
        (
            lambda case: case.__setitem__("regime", "split_to_split_divisible"),
            "regime split_to_split_divisible is not what the sets of holders say",
        ),
        (
            lambda case: case.__setitem__("refused", True),
            "legal sizes are refused",
        ),
    ],
)
def test_the_judge_sees_an_edit(edit: Callable[[dict[str, Any]], None], complaint: str) -> None:
    assert complaint in _edited(SIX, edit)


RANK = "refused_rank_h4_p2_d4_rank_2_to_0"


@pytest.mark.parametrize(
    ("name", "value", "complaint"),
    [
        ("producer_tp_rank", 1, "ranks of their groups are refused"),
        ("producer_tp_size", 3, "it is about ranks, and its sizes are not legal either"),
    ],
)
def test_the_judge_sees_an_edit_of_a_refused_rank(name: str, value: int, complaint: str) -> None:
    assert complaint in _edited(RANK, lambda case: case.__setitem__(name, value))


def test_a_name_that_is_there_twice_is_seen() -> None:
    document = DOCUMENT | {"cases": [*DOCUMENT["cases"], CASES[SIX]]}
    assert complaints(document) == [f"vectors: {SIX} is there 2 times"]


def test_nothing_is_emitted_where_the_judge_complains(monkeypatch: pytest.MonkeyPatch) -> None:
    document = copy.deepcopy(DOCUMENT)
    document["cases"][0]["plans"][0]["copies"].clear()
    monkeypatch.setattr(vectors, "vectors", lambda _: document)
    vectors._rendered.cache_clear()
    with pytest.raises(EmissionRefused, match="sweep_h1_p1_d1: lowest and spread and paired"):
        vectors.render_vectors()


# The text of the file


def test_the_text_is_the_document() -> None:
    assert TEXT == as_text(DOCUMENT)


def test_the_text_of_a_small_document() -> None:
    rows = [[p, d, p * 1000, d * 1000] for d in range(2) for p in range(4)]
    lengths = [[number, number] for number in range(12)]
    blocks = [list(range(25)), [25]]
    document = {
        "cases": [{"name": "one", "copies": rows, "lengths": lengths, "blocks": blocks}],
    }
    assert as_text(document) == (
        "{\n"
        '  "cases": [\n'
        "    {\n"
        '      "name": "one",\n'
        '      "copies": [\n'
        "        [0, 0, 0, 0], [1, 0, 1000, 0], [2, 0, 2000, 0], [3, 0, 3000, 0],\n"
        "        [0, 1, 0, 1000], [1, 1, 1000, 1000], [2, 1, 2000, 1000], [3, 1, 3000, 1000]\n"
        "      ],\n"
        '      "lengths": [\n'
        "        [0, 0], [1, 1], [2, 2], [3, 3], [4, 4], [5, 5], [6, 6], [7, 7], [8, 8], [9, 9],\n"
        "        [10, 10], [11, 11]\n"
        "      ],\n"
        '      "blocks": [\n'
        "        [\n"
        "          0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, "
        "11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23,\n"
        "          24\n"
        "        ],\n"
        "        [25]\n"
        "      ]\n"
        "    }\n"
        "  ]\n"
        "}\n"
    )
