# SPDX-License-Identifier: Apache-2.0
"""The demo finds a wrong byte, says where it came from, and fails when it compared nothing."""

from __future__ import annotations

import io
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from click.testing import CliRunner, Result
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from kvreshard import demo_case, demo_ranks
from kvreshard.demo import default_cases, demo, run_demo
from kvreshard.demo_pattern import Place, pattern, place_of
from kvreshard.demo_ranks import CaseOutcome, ConsumerOutcome, run_before_the_fix, run_in_process
from kvreshard.generated.planner import head_count
from kvreshard.models import MODELS
from kvreshard.runtime.receipts import ByteAccount
from kvreshard.runtime.transport.in_process import InProcessTransport

if TYPE_CHECKING:
    from kvreshard.demo_case import Case
    from kvreshard.runtime.descriptors import Descriptors

CASES = default_cases(layers=2, blocks=2, block_size=2)


def invoke(*arguments: str) -> Result:
    return CliRunner().invoke(demo, arguments, env={"COLUMNS": "100"})


def in_process(cases: list[Case]) -> tuple[int, str]:
    stream = io.StringIO()
    console = Console(file=stream, width=100)
    return run_demo(cases=cases, transports=["in-process"], console=console), stream.getvalue()


# The pattern


@given(
    st.builds(
        Place,
        st.integers(0, 2**12 - 1),
        st.integers(0, 2**14 - 1),
        st.integers(0, 2**12 - 1),
        st.integers(0, 40),
        st.integers(0, 40),
    )
)
def test_a_word_can_be_read_back(place: Place) -> None:
    words = pattern(
        place.layer,
        [place.block],
        range(place.head, place.head + 1),
        place.token + 1,
        place.word + 1,
    )
    assert place_of(int(words[0, 0, -1, -1])) == place


def test_nearly_every_byte_of_two_heads_differs() -> None:
    raw = pattern(3, [0], range(2), 16, 64).view(np.uint8)
    assert (raw[:, 0] != raw[:, 1]).mean() > 0.99


def test_a_coordinate_that_does_not_fit_is_refused() -> None:
    with pytest.raises(ValueError, match="layer=4096; legal is below 4096"):
        pattern(4096, [0], range(1), 1, 1)


# The command


def test_the_four_cases() -> None:
    result = invoke("--transport", "in-process")
    assert result.exit_code == 0, result.output
    assert "Every byte of every consumer is right." in result.output
    assert (
        "producer 0 alone sends to consumer 0 and writes 65,536 of 262,144 B of a block; 196,608 B "
        "keep what was there, and the request counted as ready."
    ) in " ".join(result.output.split())


def test_the_default_shape_is_the_reported_one() -> None:
    first = default_cases()[0]
    assert first.bytes_per_head == 65536
    assert head_count(first.kv_heads, first.decode_tp) * first.bytes_per_head == 262144


def test_a_model() -> None:
    result = invoke(
        *("--transport", "in-process", "--model", "qwen3-235b-a22b", "--prefill-tp", "8"),
        *("--decode-tp", "16", "--election", "spread", "--layers", "2", "--blocks", "1"),
    )
    assert result.exit_code == 0, result.output
    assert "4 KV heads, prefill TP 8 to decode TP 16, 2 layers, 1 blocks" in result.output


@pytest.mark.parametrize("name", sorted(MODELS))
def test_every_model_of_the_table_moves(name: str) -> None:
    result = invoke(
        *("--transport", "in-process", "--model", name, "--prefill-tp", "2"),
        *("--layers", "1", "--blocks", "1", "--block-size", "1"),
    )
    assert result.exit_code == 0, result.output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--prefill-tp", "3"], "3"),
        (["--model", "qwen3-235b-a22b", "--layers", "95"], "--layers=95; qwen3-235b-a22b has 94"),
        (["--election", "paired"], "election"),
        (["--model", "nobody"], "Invalid value for '--model'"),
        (["--blocks", "0"], "Invalid value for '--blocks'"),
    ],
)
def test_usage_errors(arguments: list[str], message: str) -> None:
    result = invoke("--transport", "in-process", *arguments)
    assert result.exit_code == 2
    assert message in result.output


def test_a_cache_that_does_not_fit_is_a_usage_error() -> None:
    result = invoke("--transport", "in-process", "--blocks", "100000000")
    assert result.exit_code == 2, result.output
    needed = 2 * (8 * 100_000_001 + 4 * 100_000_002) * 65536
    # Click breaks the line anywhere.
    text = " ".join(result.output.replace("│", " ").split())
    assert f"need {needed:,} B of memory; legal is what is free" in text


def test_blocks_that_the_pattern_cannot_tell_apart_are_a_usage_error() -> None:
    # 16384 blocks would count up to the mark of another request's block.
    result = invoke("--layers", "1", "--block-size", "1", "--blocks", "16384")
    assert result.exit_code == 2, result.output
    assert "blocks=16384; legal is 1 to 16383" in result.output


def test_memory_that_runs_out_is_a_usage_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo_case, "_free_bytes", lambda: None)
    result = invoke("--transport", "in-process", "--blocks", "16383", "--block-size", "1000000000")
    assert result.exit_code == 2, result.output
    assert "could not be made" in " ".join(result.output.replace("│", " ").split())


def test_bytes_needed_are_those_of_all_caches() -> None:
    case = CASES[2]
    tensors = [
        tensor
        for rank in range(case.prefill_tp)
        for tensor in demo_ranks._producer_cache(case, rank).tensors
    ]
    tensors += [
        tensor
        for rank in range(case.decode_tp)
        for tensor in demo_ranks._consumer_cache(case, rank).tensors
    ]
    assert case.bytes_needed == sum(tensor.nbytes for tensor in tensors)


def test_a_model_that_was_not_named_is_said() -> None:
    result = invoke("--transport", "in-process", "--prefill-tp", "8", "--blocks", "1")
    assert result.exit_code == 0, result.output
    assert (
        "No --model given: moving 94 layers of qwen3-235b-a22b, prefill TP 8 to decode TP 1."
    ) in result.output


def test_the_map_of_heads() -> None:
    _, output = in_process([CASES[2]])
    rows = [
        [cell.strip() for cell in line.strip("│").split("│")]
        for line in output.splitlines()
        if line.startswith("│")
    ]
    assert rows[:4] == [
        ["0", "0 to 1", "0 to 1", "0"],
        ["0", "2", "2", "1"],
        ["1", "0", "3", "1"],
        ["1", "1 to 2", "4 to 5", "2"],
    ]
    assert ["bytes sent", "24,576"] in rows
    assert ["bytes wrong", "0"] in rows


# What it fails on


class WrongBlock(InProcessTransport):
    """Writes each block where another one belongs."""

    def write(self, session_id: str, descriptors: Descriptors) -> None:
        rolled = np.roll(descriptors.destination, 1)
        super().write(session_id, descriptors._replace(destination=rolled))


def test_a_wrong_byte_fails_the_demo_and_is_traced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo_ranks, "InProcessTransport", WrongBlock)
    code, output = in_process([CASES[0]])
    assert code == 1
    text = " ".join(output.split())
    assert "Not every byte is right." in text
    assert "layer 0 block 1 head 0 token 0 byte 0 holds what belongs to layer 0 block 0" in text
    assert "of the request, head 0 token 0 byte 0" in text


class Idle(InProcessTransport):
    """Reports success and writes nothing."""

    def write(self, session_id: str, descriptors: Descriptors) -> None:
        assert session_id
        assert descriptors.rows


def test_bytes_that_never_came_fail_the_demo(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo_ranks, "InProcessTransport", Idle)
    code, output = in_process([CASES[1]])
    assert code == 1
    assert "layer 0 block 1 head 0 token 0 byte 0 was never written" in " ".join(output.split())


def outcome(*consumers: ConsumerOutcome) -> CaseOutcome:
    return CaseOutcome("in-process", consumers, descriptors=0, processes=1, seconds=0.0)


def consumer(**changes: Any) -> ConsumerOutcome:
    fields: dict[str, Any] = {
        "rank": 0,
        "ready": True,
        "reason": "",
        "account": ByteAccount(1, 1, 1),
        "compared": 1,
        "wrong": 0,
        "wrong_outside": 0,
        "first_wrong": "",
    }
    return ConsumerOutcome(**(fields | changes))


@pytest.mark.parametrize(
    ("found", "message"),
    [
        (outcome(), "in-process: no consumer reported"),
        (outcome(consumer(compared=0)), "in-process: consumer 0 compared no byte"),
        (outcome(consumer(ready=False, reason="late")), "consumer 0 is not ready: late"),
        (outcome(consumer(wrong=3, wrong_outside=2)), "3 wrong bytes, 2 of them outside"),
    ],
)
def test_nothing_compared_is_not_right(
    found: CaseOutcome, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(demo_ranks, "run_in_process", lambda _: found)
    code, output = in_process([CASES[3]])
    assert code == 1
    assert message in output
    assert not found.is_right


def test_no_case_is_not_right() -> None:
    assert in_process([])[0] == 1


def test_a_block_of_others_that_changed_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    class Outside(InProcessTransport):
        def write(self, session_id: str, descriptors: Descriptors) -> None:
            super().write(session_id, descriptors)
            last = int(descriptors.destination.argmax())
            after = descriptors.destination[last] + descriptors.length[last]
            row = type(descriptors)(*(column[last : last + 1] for column in descriptors))
            super().write(session_id, row._replace(destination=after.reshape(1)))

    monkeypatch.setattr(demo_ranks, "InProcessTransport", Outside)
    (found,) = run_in_process(CASES[1]._replace(layers=1, decode_tp=1)).consumers
    assert found.ready
    assert found.wrong == found.wrong_outside > 0


def test_without_mooncake_it_says_so_and_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mooncake.engine", None)
    result = invoke("--layers", "1", "--blocks", "1", "--block-size", "1")
    assert result.exit_code == 1
    assert "mooncake: Mooncake is not installed" in result.output
    assert invoke("--transport", "in-process", "--blocks", "1").exit_code == 0


def test_without_the_runtime_packages_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "kvreshard.demo_ranks", None)
    result = invoke("--transport", "in-process")
    assert result.exit_code == 1
    assert "pip install 'kvreshard[runtime]'" in result.output


# The formula before the fix


@pytest.mark.parametrize(
    ("heads", "prefill", "decode", "untouched"),
    [(4, 8, 1, 3), (4, 8, 2, 1), (2, 4, 1, 1), (4, 8, 4, 0)],
)
def test_before_the_fix(heads: int, prefill: int, decode: int, untouched: int) -> None:
    case = default_cases()[0]._replace(kv_heads=heads, prefill_tp=prefill, decode_tp=decode)
    found = run_before_the_fix(case)
    assert found.senders == (0,)
    assert found.written == 65536
    assert found.untouched == untouched * 65536
    assert found.block_bytes == found.written + found.untouched


def test_before_the_fix_is_about_replicated_producers() -> None:
    with pytest.raises(ValueError, match="more than one rank per head"):
        run_before_the_fix(CASES[1])


def test_the_command_line_loads_without_torch() -> None:
    program = (
        "import sys\n"
        "for name in ('torch', 'numpy', 'msgspec', 'zmq', 'mooncake'): sys.modules[name] = None\n"
        "import kvreshard.demo"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
