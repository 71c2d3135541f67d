# SPDX-License-Identifier: Apache-2.0
"""What a person reads of a counterexample, and what the test it brings along is worth."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
from spec_mutants import MUTANTS
from story_snapshots import AS_JSON, FOLDER, TOLD, snapshots, told

from kvreshard.generated.planner import (
    expected_receivers,
    expected_senders,
    plan_transfer,
    validate_region_lengths,
)
from kvreshard.proofs.broken import BROKEN, RIGHT
from kvreshard.proofs.counterexample import smallest_counterexamples
from kvreshard.proofs.judge import Copy, Subject
from kvreshard.proofs.story.build import story_of
from kvreshard.proofs.story.json_form import SCHEMA, as_json
from kvreshard.proofs.story.markdown import as_markdown
from kvreshard.proofs.story.model import ConsumerBlock, Mark, PeerView, Slot, Writer
from kvreshard.proofs.story.paste import STUB
from kvreshard.proofs.story.table import ROWS_SHOWN
from kvreshard.proofs.story.tell import tell
from kvreshard.proofs.story.terminal import as_terminal
from kvreshard.proofs.story.words import consumers, heads, listed, per_head, producers

if TYPE_CHECKING:
    from pathlib import Path

    from kvreshard.proofs.story.model import Story

BY_NAME = {mutant.name: mutant for mutant in MUTANTS}

# Of the formulas of the specification

STORIES = {
    ("every_replica_sends", "every_consumer_head_is_covered_exactly_once"): (
        "every_consumer_head_is_covered_exactly_once does not hold\n"
        "  Every head that a consumer rank holds is written to its slot by exactly one "
        "producer rank.\n"
        "  smallest: H=1 heads, producer TP P=2, consumer TP D=1, consumer rank d=0, "
        "election lowest\n"
        "  seen: head 0 of consumer rank 0 is written by producer ranks [0, 1]\n"
        "    rank  slot  from byte  must hold  now holds\n"
        "    d0    0     0          head 0     head 0 from p0 and p1  <-- DOUBLED\n"
        "  Block of consumer rank 0: 6 of 6 bytes written, 0 lost.\n"
        "  Of the bytes written, 6 are written more than once.\n"
        "  First byte that comes twice: offset 0 in the block of consumer rank 0, where slot 0 "
        "starts; each copy holds the right head.\n"
        "  One head has 6 bytes here."
    ),
    ("overlap_end_is_the_larger", "every_write_is_inside_the_consumer_block"): (
        "every_write_is_inside_the_consumer_block does not hold\n"
        "  Every byte that a producer rank writes for a copy lies inside the consumer's "
        "block.\n"
        "  smallest: H=2 heads, producer TP P=1, consumer TP D=2, consumer rank d=0, "
        "election lowest\n"
        "  seen: producer rank 0 writes heads 0 to 2 of a block of 1"
    ),
    ("lengths_by_product_alone", "the_length_check_accepts_exactly_the_plannable_regions"): (
        "the_length_check_accepts_exactly_the_plannable_regions does not hold\n"
        "  The length check accepts two regions exactly where each is a whole number of "
        "bytes per head, at least one, and the number is the same on both sides.\n"
        "  smallest: H=2 heads, producer TP P=1, consumer TP D=1, election lowest\n"
        "  seen: lengths of 1 and 1 bytes are accepted; the ranks hold 2 and 2 heads"
    ),
    ("last_sender_is_the_first", "producers_and_consumers_agree_on_their_peers"): (
        "producers_and_consumers_agree_on_their_peers does not hold\n"
        "  The ranks that a consumer waits for are exactly the ranks that send to it, "
        "and every rank that a producer sends to is among those it looks at.\n"
        "  smallest: H=2 heads, producer TP P=2, consumer TP D=1, consumer rank d=0, "
        "election lowest\n"
        "  seen: consumer rank 0 waits for [0], but [0, 1] send to it"
    ),
}


@pytest.mark.parametrize(("mutant", "invariant"), STORIES)
def test_the_story_of_a_counterexample(mutant: str, invariant: str) -> None:
    with BY_NAME[mutant].applied():
        found = {one.violation.invariant: one for one in smallest_counterexamples(maximum=2)}
    assert tell(found[invariant]) == STORIES[mutant, invariant]


# Of the broken planners


def test_the_snapshots_are_those_of_today() -> None:
    # To write them anew: python tests/proofs/story_snapshots.py
    files = {path.name: path.read_text(encoding="utf-8") for path in FOLDER.iterdir()}
    now = snapshots()
    assert sorted(files) == sorted(now)
    for name, text in now.items():
        assert files[name] == text, name


@pytest.mark.parametrize("key", TOLD)
def test_a_story_says_what_a_reader_has_to_know(key: str) -> None:
    story = told(key)
    H, P, D = story.sizes
    for text in (as_terminal(story), as_markdown(story)):
        flat = " ".join(text.split())
        for size in (f"H = {H}", f"P = {P}", f"D = {D}"):
            assert size in flat
        assert f"{story.bytes_per_head:,} for one head in one block" in flat
        assert story.verdict in flat
        assert story.invariant in flat
        assert story.invariant_sentence in flat
        assert all(name in flat for name in story.also_violated)
        assert f"kvreshard refute {TOLD[key][0]} --at {H} {P} {D}" in flat
        assert story.test.rstrip("\n") in text
        assert "<--" in text or "\u2190" in text  # the mark that does not need colour


@pytest.mark.parametrize("key", TOLD)
def test_a_story_fits_80_columns(key: str) -> None:
    assert [line for line in as_terminal(told(key)).splitlines() if len(line) > 80] == []


def test_the_story_of_vllm_52516_has_the_reported_bytes() -> None:
    block = told("the_lowest_rank_alone_sends_as_reported").block
    assert block is not None
    assert (block.expected, block.written, block.missing) == (262_144, 65_536, 196_608)
    assert [slot.marks for slot in block.slots] == [(Mark.OK,), *[(Mark.MISSING,)] * 3]


@pytest.mark.parametrize("name", BROKEN)
def test_a_story_says_that_nothing_smaller_fails(name: str) -> None:
    story = story_of(BROKEN[name])
    assert story is not None
    H, P, D = story.sizes
    why = story.why_this_input
    assert (f"none fails with fewer heads than H={H}" in why) == (H > 1)
    assert (f"with H={H} none fails with a smaller P than {P}" in why) == (P > 1)
    assert (f"with H={H} and P={P} none fails with a smaller D than {D}" in why) == (D > 1)
    assert why.endswith("This is the smallest input that there is.") == (story.sizes == (1, 1, 1))


def test_an_input_that_is_handled_right_has_no_story() -> None:
    assert story_of(BROKEN["the_lowest_rank_alone_sends"], (4, 8, 8)) is None


def test_the_json_is_the_story() -> None:
    assert AS_JSON
    for key in TOLD:
        story, document = told(key), json.loads(as_json(told(key)))
        assert document["schema"] == SCHEMA == "kvreshard.story/1"
        assert document["verdict"] == story.verdict
        assert document["invariant"]["name"] == story.invariant
        assert list(document["input"].values())[:3] == list(story.sizes)
        assert len(document["blocks"]) == story.consumer_tp_size
        assert len(document["peers"]) == story.producer_tp_size + story.consumer_tp_size
        assert (document["lengths"] is None) == (story.lengths is None)


def test_a_long_head_map_shows_what_is_wrong_and_counts_the_rest() -> None:
    story = story_of(BROKEN["the_lowest_rank_alone_sends"], (64, 128, 1))
    assert story is not None
    text = as_terminal(story)
    assert text.count("<-- MISSING") == ROWS_SHOWN
    assert "(not shown: 1 slot that is ok and 39 slots more like these)" in text
    assert len(json.loads(as_json(story))["blocks"][0]["slots"]) == 64


def test_bytes_per_head_scale_the_story_and_are_in_the_command() -> None:
    story = story_of(BROKEN["the_lowest_rank_alone_sends"], (4, 8, 1), 100)
    assert story is not None
    assert "Block of consumer rank 0: 100 of 400 bytes written, 300 lost." in as_terminal(story)
    assert story.command.endswith("--at 4 8 1 --bytes-per-head 100")


@pytest.mark.parametrize(
    ("sizes", "bytes_per_head", "problem"),
    [
        ((4, 0, 1), None, r"H, P, D=\(4, 0, 1\); legal: each at least 1"),
        ((4, 3, 1), None, "P=3 is not legal for H=4; legal: a divisor or a multiple of H"),
        ((4, 1, 2), None, "H=4, P=1, D=2 is not an input that .* is meant for; legal: D divides P"),
        (None, 0, "bytes_per_head=0; legal: at least 1"),
    ],
)
def test_an_input_that_cannot_be_told_is_refused(
    sizes: tuple[int, int, int] | None, bytes_per_head: int | None, problem: str
) -> None:
    with pytest.raises(ValueError, match=problem):
        story_of(BROKEN["the_lowest_rank_alone_sends"], sizes, bytes_per_head)


# The test to paste


def run_pasted(story: Story, subject: Subject) -> None:
    """Run the pasted test on a planner: put it in place of the stubs, then call the test."""

    def plan(H: int, P: int, p: int, D: int, d: int) -> tuple[int, ...] | None:
        copy = subject.plan(H, P, p, D, d)
        return copy[1:] if copy.sends else None

    names: dict[str, Any] = {}
    exec(compile(story.test, "pasted", "exec"), names)
    stubs = {
        "plan": plan,
        "senders": subject.senders,
        "receivers": subject.receivers,
        "accepts": subject.accepts,
    }
    replaced = {name: stub for name, stub in stubs.items() if name in names}
    assert replaced
    names.update(replaced)
    (test,) = (value for name, value in names.items() if name.startswith("test_"))
    test()


def emitted(election: str) -> Subject:
    """Return the emitted planner as a reader's own."""

    def groups(H: int, P: int, D: int) -> dict[str, Any]:
        return {"total_num_kv_heads": H, "producer_tp_size": P, "consumer_tp_size": D}

    def accepts(H: int, P: int, D: int, a: int, b: int) -> bool:
        try:
            validate_region_lengths(
                **groups(H, P, D), producer_region_bytes=a, consumer_region_bytes=b
            )
        except ValueError:
            return False
        return True

    return Subject(
        plan=lambda H, P, p, D, d: Copy(
            *plan_transfer(
                **groups(H, P, D), producer_tp_rank=p, consumer_tp_rank=d, election=election
            )
        ),
        senders=lambda H, P, D, d: expected_senders(
            **groups(H, P, D), consumer_tp_rank=d, election=election
        ),
        receivers=lambda H, P, p, D: expected_receivers(
            **groups(H, P, D), producer_tp_rank=p, election=election
        ),
        accepts=accepts,
    )


@pytest.mark.parametrize("key", TOLD)
def test_the_pasted_test_passes_for_right_planners_and_fails_for_the_broken_one(key: str) -> None:
    story = told(key)
    for right in (RIGHT, emitted("lowest"), emitted("spread")):
        run_pasted(story, right)
    with pytest.raises(AssertionError):
        run_pasted(story, BROKEN[TOLD[key][0]].subject)
    with pytest.raises(NotImplementedError, match="ask your planner here"):
        run_as_it_is(story)


def run_as_it_is(story: Story) -> None:
    names: dict[str, Any] = {}
    exec(compile(story.test, "pasted", "exec"), names)
    next(value for name, value in names.items() if name.startswith("test_"))()


@pytest.mark.parametrize(
    ("planner", "outcome"), [("RIGHT", 0), ("BROKEN['the_lowest_rank_alone_sends'].subject", 1)]
)
def test_the_pasted_test_runs_under_pytest(planner: str, outcome: int, tmp_path: Path) -> None:
    call = (
        "from kvreshard.proofs.broken import BROKEN, RIGHT\n"
        f"    copy = {planner}.plan(H, P, p, D, d)\n"
        "    return copy[1:] if copy.sends else None"
    )
    text = told("the_lowest_rank_alone_sends").test
    assert text.count(STUB) == 1
    (tmp_path / "test_pasted.py").write_text(text.replace(STUB, call), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_pasted.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == outcome, done.stdout
    expected = "1 passed" if outcome == 0 else "heads written to the slots of d0"
    assert expected in done.stdout


# The pieces


@pytest.mark.parametrize(
    ("wanted", "writers", "marks"),
    [
        (0, [(0, 0)], [Mark.OK]),
        (0, [], [Mark.MISSING]),
        (0, [(0, 0), (1, 0)], [Mark.DOUBLED]),
        (0, [(0, 1)], [Mark.WRONG_HEAD]),
        (0, [(0, None)], [Mark.READ_OUTSIDE]),
        (0, [(0, 0), (1, 2)], [Mark.DOUBLED, Mark.WRONG_HEAD]),
        (None, [(0, 1)], [Mark.WRITE_OUTSIDE]),
        (None, [(0, None)], [Mark.WRITE_OUTSIDE, Mark.READ_OUTSIDE]),
    ],
)
def test_the_marks_of_a_slot(
    wanted: int | None, writers: list[tuple[int, int | None]], marks: list[Mark]
) -> None:
    assert Slot(0, wanted, tuple(Writer(*one) for one in writers)).marks == tuple(marks)


def test_the_bytes_of_a_block() -> None:
    slots = (
        Slot(-1, None, (Writer(0, None),)),
        Slot(0, 4, (Writer(0, 4), Writer(1, 4))),
        Slot(1, 5, (Writer(0, 4),)),
        Slot(2, 6, ()),
        Slot(3, 7, (Writer(0, None),)),
    )
    block = ConsumerBlock(0, slots, 10)
    assert (block.expected, block.written, block.missing) == (40, 30, 10)
    assert (block.wrong, block.doubled, block.outside) == (20, 10, 10)
    assert block.first_bad_slot == slots[0]
    assert not block.is_right
    assert ConsumerBlock(0, slots[1:2], 10).first_bad_slot == slots[1]
    assert not ConsumerBlock(0, (), 10, empty_copies=(3,)).is_right


@pytest.mark.parametrize(
    ("counted", "actual", "in_vain", "overlooked"),
    [
        ((0, 1), (0, 1), (), ()),
        ((0, 1), (0,), (1,), ()),
        ((0,), (0, 1), (), (1,)),
        ((0, 0), (0,), (0,), ()),
        ((1,), (0,), (1,), (0,)),
    ],
)
def test_peers_that_are_waited_for_in_vain_or_overlooked(
    counted: tuple[int, ...],
    actual: tuple[int, ...],
    in_vain: tuple[int, ...],
    overlooked: tuple[int, ...],
) -> None:
    view = PeerView("consumer", 0, counted, actual)
    assert (view.in_vain, view.overlooked) == (in_vain, overlooked)
    assert view.is_right == (counted == actual)


def test_lists_are_spelled_out() -> None:
    assert heads([3]) == "head 3"
    assert heads([3, 4]) == "heads 3 and 4"
    assert heads([3, 4, 5]) == "heads 3 to 5"
    assert heads([3, 5, 8]) == "heads 3, 5 and 8"
    assert producers([]) == "nobody"
    assert producers([0, 2]) == "p0 and p2"
    assert consumers([0, 1, 2]) == "d0 to d2"
    assert listed("abcdefg") == "a, b, c, d, e and 2 more"
    assert (per_head(6, 2), per_head(3, 2)) == ("3", "3/2")
