# SPDX-License-Identifier: Apache-2.0
"""The vectors and their test file, copied alone into an empty folder, judge planners rightly."""

from __future__ import annotations

import ast
import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from kvreshard import generated
from kvreshard.proofs.broken import BROKEN, BrokenPlanner

GENERATED = Path(generated.__path__[0])
RUNNER = GENERATED / "vectors" / "test_planner_vectors.py"

LOADED = "test_the_planner_can_be_judged"
EFFECT = "test_every_consumer_byte_is_written_once_with_the_right_head"
EXACT = "test_the_plan_is_that_of_the_election"
SENDERS = "test_a_consumer_waits_for_those_who_send"
RECEIVERS = "test_a_producer_counts_those_it_sends_to"
LENGTHS = "test_lengths_are_accepted_exactly_where_a_plan_fits"
REFUSED = "test_sizes_that_are_not_legal_are_refused"
RANKS = "test_ranks_that_are_not_of_the_group_are_refused"

# The tests that see a violation of an invariant, one of which is enough.
SEEN_BY = {
    "every_consumer_head_is_covered_exactly_once": {EFFECT},
    "no_two_writes_overlap": {EFFECT},
    "every_read_is_inside_the_producer_block": {EFFECT},
    "every_write_is_inside_the_consumer_block": {EFFECT},
    "every_written_byte_holds_the_same_head_token_and_position": {EFFECT},
    "only_a_holder_of_the_head_sends_it": {EFFECT},
    "producers_and_consumers_agree_on_their_peers": {SENDERS, RECEIVERS},
    "the_length_check_accepts_exactly_the_plannable_regions": {LENGTHS},
}

# A right or broken planner of the proof side, as a connector project would present its own.
ADAPTER = """
from kvreshard.proofs.broken import BROKEN, RIGHT
from kvreshard.proofs.judge import is_legal

NAME = {name!r}
SUBJECT = BROKEN[NAME].subject if NAME else RIGHT

def plan_transfer(
    *, total_num_kv_heads, producer_tp_size, producer_tp_rank, consumer_tp_size, consumer_tp_rank
):
    if producer_tp_rank not in range(producer_tp_size):
        raise ValueError("the producer rank is not of its group")
    if consumer_tp_rank not in range(consumer_tp_size):
        raise ValueError("the consumer rank is not of its group")
    return SUBJECT.plan(
        total_num_kv_heads, producer_tp_size, producer_tp_rank, consumer_tp_size, consumer_tp_rank
    )

def expected_senders(*, total_num_kv_heads, producer_tp_size, consumer_tp_size, consumer_tp_rank):
    return SUBJECT.senders(
        total_num_kv_heads, producer_tp_size, consumer_tp_size, consumer_tp_rank
    )

def expected_receivers(
    *, total_num_kv_heads, producer_tp_size, producer_tp_rank, consumer_tp_size
):
    return SUBJECT.receivers(
        total_num_kv_heads, producer_tp_size, producer_tp_rank, consumer_tp_size
    )

def validate_region_lengths(
    *,
    total_num_kv_heads,
    producer_tp_size,
    consumer_tp_size,
    producer_region_bytes,
    consumer_region_bytes,
):
    return SUBJECT.accepts(
        total_num_kv_heads,
        producer_tp_size,
        consumer_tp_size,
        producer_region_bytes,
        consumer_region_bytes,
    )

def in_domain(H, P, D):
    legal = H >= 1 and P >= 1 and D >= 1 and is_legal(H, P) and is_legal(H, D)
    return legal and (not NAME or BROKEN[NAME].in_domain(H, P, D))
"""

# What a planner has to say, in two forms; each test below changes one thing.
BY_LISTING = """
def heads_of(H, T, r):
    if H < 1 or T < 1 or (H % T and T % H):
        raise ValueError(f"{T} ranks, {H} heads")
    if not 0 <= r < T:
        raise ValueError(f"rank {r} of {T}")
    return [h for h in range(H) if h * T < (r + 1) * H and r * H < (h + 1) * T]

def plan_transfer(
    *, total_num_kv_heads, producer_tp_size, producer_tp_rank, consumer_tp_size, consumer_tp_rank
):
    H, P, p = total_num_kv_heads, producer_tp_size, producer_tp_rank
    D, d = consumer_tp_size, consumer_tp_rank
    mine, theirs = heads_of(H, P, p), heads_of(H, D, d)
    shared = [h for h in mine if h in theirs]
    holders = [q for q in range(P) if heads_of(H, P, q) == mine]
    if not shared or p != holders[-1]:
        return False, 0, 0, 0
    return True, mine.index(shared[0]), theirs.index(shared[0]), len(shared)
"""


@dataclass(frozen=True)
class Outcome:
    """What a run of the copied test file said."""

    code: int
    failed: set[tuple[str, str]]
    output: str

    @property
    def failed_tests(self) -> set[str]:
        """Return the names of the tests that failed, without the cases."""
        return {test for test, _ in self.failed}


@pytest.fixture
def alone(tmp_path: Path) -> Path:
    """Return a folder with the vectors and the test file, and nothing else."""
    for name in ("vectors.json", "test_planner_vectors.py"):
        shutil.copy(GENERATED / "vectors" / name, tmp_path)
    assert len(list(tmp_path.iterdir())) == 2
    return tmp_path


@pytest.fixture
def small(alone: Path) -> Path:
    """Leave only the smallest cases and the refused ones, for tests of what is said."""
    path = alone / "vectors.json"
    document = json.loads(path.read_text(encoding="utf-8"))
    kept = ("sweep_h1_", "sweep_h2_", "refused_")
    document["cases"] = [case for case in document["cases"] if case["name"].startswith(kept)]
    path.write_text(json.dumps(document), encoding="utf-8")
    return alone


def judge(
    folder: Path, planner: str | None, election: str | None = None, messages: bool = True
) -> Outcome:
    """Run the copied test file as a connector project would."""
    settings = {"KV_PLANNER": planner, "KV_ELECTION": election}
    ours = {"KV_PLANNER", "KV_ELECTION", "PYTEST_ADDOPTS"}
    environment = {name: value for name, value in os.environ.items() if name not in ours}
    environment |= {name: value for name, value in settings.items() if value is not None}
    # The test file needs no plugin of pytest, and our environment's would only take time.
    environment |= {"COLUMNS": "400", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    command = [sys.executable, "-m", "pytest", "-q", "-rfs", "-p", "no:cacheprovider"]
    done = subprocess.run(
        [*command, f"--tb={'short' if messages else 'no'}", "test_planner_vectors.py"],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    found = re.findall(r"^FAILED [\w.]+::(\w+)(?:\[(.*?)\])?(?: - |$)", done.stdout, re.MULTILINE)
    return Outcome(done.returncode, set(found), done.stdout + done.stderr)


def test_the_test_file_needs_pytest_and_the_standard_library_only() -> None:
    tree = ast.parse(RUNNER.read_text(encoding="utf-8"))
    imported = {
        name.split(".")[0]
        for node in ast.walk(tree)
        for name in (
            [alias.name for alias in node.names]
            if isinstance(node, ast.Import)
            else [node.module or ""]
            if isinstance(node, ast.ImportFrom)
            else []
        )
    }
    assert imported - set(sys.stdlib_module_names) == {"pytest"}


# Right planners pass


@pytest.mark.parametrize("election", [None, "lowest", "spread", "paired"])
def test_our_planner_passes(alone: Path, election: str | None) -> None:
    outcome = judge(alone, "kvreshard.generated.planner", election)
    assert outcome.code == 0, outcome.output
    skipped = re.findall(r"not checked: .*", outcome.output)
    assert skipped == {
        None: ["not checked: KV_ELECTION is not set"],
        "paired": ["not checked: 39 of 317 cases are without a plan of election paired"],
    }.get(election, [])


def test_our_planner_in_bytes_passes(alone: Path) -> None:
    named = "kvreshard.generated.planner:compute_sender_transfer_plan"
    outcome = judge(alone, named, "paired")
    assert outcome.code == 0, outcome.output


def test_our_planner_in_bytes_without_an_election_is_told_what_to_set(alone: Path) -> None:
    outcome = judge(alone, "kvreshard.generated.planner:compute_sender_transfer_plan")
    assert outcome.failed_tests == {EFFECT}
    assert len(outcome.failed) == 39
    assert (
        "case indivisible_h12_p3_d4: Neither TP size divides the other.\n"
        "election paired is not defined for these sizes: for a planner of that kind set "
        "KV_ELECTION=paired; for any other that is not meant for them, in_domain returns False\n"
        "producer rank 0 to consumer rank 0: the planner raises ValueError: election='paired' is "
    ) in outcome.output
    assert re.findall(r"not checked: .*", outcome.output) == [
        "not checked: KV_ELECTION is not set",
        *(
            f"not checked: {name} takes election and the planner does not, so that KV_ELECTION "
            "has to name the planner's"
            for name in ("expected_senders", "expected_receivers")
        ),
    ]


def test_a_vendored_planner_passes_from_its_file(alone: Path) -> None:
    (alone / "vendored").mkdir()
    shutil.copy(GENERATED / "planner.py", alone / "vendored" / "kv_plan.py")
    outcome = judge(alone, "vendored/kv_plan.py:plan_transfer")
    assert outcome.code == 0, outcome.output


def test_an_election_of_ones_own_passes_and_is_told_from_ours(small: Path) -> None:
    (small / "own.py").write_text(BY_LISTING, encoding="utf-8")
    assert judge(small, "own").code == 0
    outcome = judge(small, "own", "lowest")
    assert outcome.failed_tests == {EXACT}
    assert (
        "H=2 heads, producer TP P=4, consumer TP D=1\n"
        "case sweep_h2_p4_d1: One of all legal sizes up to 6.\n"
        "producer rank 0 to consumer rank 0, in heads: planned None, election lowest has "
        "Copy(src_offset=0, dst_offset=0, length=1)\n"
    ) in outcome.output


def test_the_right_planner_of_the_broken_ones_passes(alone: Path) -> None:
    (alone / "subject.py").write_text(ADAPTER.format(name=""), encoding="utf-8")
    outcome = judge(alone, "subject.py")
    assert outcome.code == 0, outcome.output
    assert "not checked: 13 of 317 cases are outside the planner's in_domain" in outcome.output


# Broken planners fail, each in the tests that its invariants name


@pytest.mark.parametrize("broken", BROKEN.values(), ids=list(BROKEN))
def test_a_broken_planner_fails(alone: Path, broken: BrokenPlanner) -> None:
    (alone / "subject.py").write_text(ADAPTER.format(name=broken.name), encoding="utf-8")
    outcome = judge(alone, "subject.py", messages=False)
    assert outcome.code == 1, outcome.output
    wanted = [SEEN_BY[invariant] for invariant in broken.invariants]
    for tests in wanted:
        assert outcome.failed_tests & tests
    assert outcome.failed_tests <= set().union(*wanted)
    if broken.reported is not None:
        sizes = "_h{}_p{}_d{}".format(*broken.reported)
        assert any(case.endswith(sizes) for _, case in outcome.failed)


def test_a_fault_is_told_with_its_source_and_who_wrote_what(alone: Path) -> None:
    name = "the_lowest_rank_alone_sends"
    (alone / "subject.py").write_text(ADAPTER.format(name=name), encoding="utf-8")
    outcome = judge(alone, "subject.py")
    assert (
        "H=4 heads, producer TP P=8, consumer TP D=1\n"
        "case fault_only_producer_rank_0_sends_h4_p8_d1: Only producer rank 0 sent 65,536 of "
        "262,144 bytes, and the request was marked ready. One replica of each head sends.\n"
        "reported: vLLM PR #52516\n"
        "consumer rank 0, which holds heads [0, 1, 2, 3]:\n"
        "  head 1 in slot 1 is missing: 65536 of 65536 bytes not written\n"
        "  head 2 in slot 2 is missing: 65536 of 65536 bytes not written\n"
        "  head 3 in slot 3 is missing: 65536 of 65536 bytes not written\n"
        "  65536 of 262144 bytes written\n"
    ) in outcome.output


# Planners that cannot be judged fail, and say why


@pytest.mark.parametrize(
    ("planner", "election", "message"),
    [
        (
            None,
            None,
            (
                "KV_PLANNER is not set; legal: module, module:attribute, path.py or "
                "path.py:attribute, as in KV_PLANNER=my_connector.plan"
            ),
        ),
        (
            "nowhere.plan",
            None,
            (
                "KV_PLANNER: nowhere.plan cannot be imported: "
                "ModuleNotFoundError: No module named 'nowhere'"
            ),
        ),
        ("own.py:nothing", None, "KV_PLANNER=own.py:nothing: own.py has no nothing"),
        (
            "own",
            "highest",
            (
                "KV_ELECTION=highest is not an election of the vectors; "
                "legal: lowest, spread, paired, or not set"
            ),
        ),
        (
            "own:heads_of",
            None,
            "KV_PLANNER=own:heads_of(H, T, r) takes neither total_num_kv_heads, ",
        ),
        ("json", None, "KV_PLANNER=json: it has neither plan_transfer nor "),
        ("builtins:dict", None, "KV_PLANNER=builtins:dict: its parameters cannot be read: "),
        ("own:SIZE", None, "KV_PLANNER=own:SIZE is a int, no function"),
        ("empty", None, "nothing was checked: of 77 cases no legal one is judged; 77 outside "),
        ("wild", None, "KV_PLANNER=wild: in_domain(1, 1, 1) raises ZeroDivisionError: "),
    ],
)
def test_a_planner_that_cannot_be_judged_fails(
    small: Path, planner: str | None, election: str | None, message: str
) -> None:
    (small / "own.py").write_text(BY_LISTING + "\nSIZE = 1\n", encoding="utf-8")
    for name, domain in (("empty", "False"), ("wild", "1 // 0")):
        text = f"from own import plan_transfer\ndef in_domain(H, P, D): return {domain}\n"
        (small / f"{name}.py").write_text(text, encoding="utf-8")
    outcome = judge(small, planner, election)
    assert outcome.code == 1
    assert outcome.failed_tests == {LOADED}
    assert message in outcome.output


@pytest.mark.parametrize(
    ("change", "failed", "message"),
    [
        (
            ('raise ValueError(f"{T} ranks, {H} heads")', "pass"),
            {REFUSED},
            "producer rank 0 to consumer rank 0: planned ",
        ),
        (
            ("H < 1 or T < 1 or ", ""),
            {REFUSED},
            "producer rank 0 to consumer rank 0: no refusal, ZeroDivisionError: ",
        ),
        (
            ('raise ValueError(f"{T} ranks, {H} heads")', "return heads_of(H, T, r)"),
            {REFUSED},
            "producer rank 0 to consumer rank 0: no refusal, RecursionError: ",
        ),
        (
            ("    if not 0 <= r < T:\n        raise", "    r %= T\n    if False:\n        raise"),
            {RANKS},
            (
                "case refused_rank_h4_p2_d4_rank_0_to_minus_1: A rank counts from 0 and is smaller "
                "than its group.\n"
                "producer rank 0 to consumer rank -1: planned None, where it should refuse\n"
            ),
        ),
        (
            ('raise ValueError(f"rank {r} of {T}")', "raise LookupError(r)"),
            {RANKS},
            "producer rank 2 to consumer rank 0: no refusal, LookupError: 2\n",
        ),
        (
            ("return False, 0, 0, 0", "return None"),
            {EFFECT},
            "TypeError: the planner returned None, not (sends, offset, offset, count)",
        ),
        (
            ("return False, 0, 0, 0", "return True, 0, 0, 0"),
            {EFFECT},
            "  producer rank 1, which holds heads [0], sends 0 bytes\n",
        ),
        (
            ("mine.index(shared[0]), theirs", "-1, theirs"),
            {EFFECT},
            (
                "  producer rank 0, which holds heads [0], reads bytes -24 to 0 of its block of "
                "24\n"
                "  head 0 in slot 0 is wrong: byte 0 of it is the first that differs, from ranks "
                "[0]\n"
                "  24 of 24 bytes written\n"
            ),
        ),
        (
            ("theirs.index(shared[0])", "theirs.index(shared[0]) + 1"),
            {EFFECT},
            (
                "  producer rank 0, which holds heads [0], writes bytes 24 to 48 of a block of 24\n"
                "  head 0 in slot 0 is missing: 24 of 24 bytes not written\n"
                "  0 of 24 bytes written\n"
            ),
        ),
        (
            ("or p != holders[-1]", ""),
            {EFFECT},
            (
                "consumer rank 0, which holds heads [0]:\n"
                "  head 0 in slot 0 is doubled: 24 bytes written by ranks [0, 1]\n"
                "  24 of 24 bytes written\n"
            ),
        ),
        (
            ("len(shared)", "len(shared) / 1"),
            {EFFECT},
            "TypeError: the planner returned (True, 0, 0, 1.0), not (sends, offset, ",
        ),
        (
            ("len(shared)", "1"),
            {EFFECT},
            (
                "consumer rank 0, which holds heads [0, 1]:\n"
                "  head 1 in slot 1 is missing: 24 of 24 bytes not written\n"
                "  24 of 48 bytes written\n"
            ),
        ),
        (
            ("mine.index(shared[0])", "0"),
            {EFFECT},
            "  head 1 in slot 0 is wrong: it holds head 0, from ranks [0]\n",
        ),
    ],
)
def test_each_way_to_be_wrong_is_told(
    small: Path, change: tuple[str, str], failed: set[str], message: str
) -> None:
    assert BY_LISTING.count(change[0]) == 1
    (small / "own.py").write_text(BY_LISTING.replace(*change), encoding="utf-8")
    outcome = judge(small, "own")
    assert outcome.code == 1
    assert outcome.failed_tests == failed
    assert message in outcome.output
    assert "another exception" not in outcome.output


# The functions of a planner, all there and all right, with a place to go wrong in each.
BESIDE_LISTING = """
import unittest
import pytest
from own import heads_of, plan_transfer as listed

def plan_transfer(
    *, total_num_kv_heads, producer_tp_size, producer_tp_rank, consumer_tp_size, consumer_tp_rank
):
    plan = listed(**locals())
    {plan_transfer}
    return plan

def expected_senders(*, producer_tp_size, **rest):
    ranks = [
        p for p in range(producer_tp_size)
        if listed(producer_tp_size=producer_tp_size, producer_tp_rank=p, **rest)[0]
    ]
    {expected_senders}
    return ranks

def expected_receivers(*, consumer_tp_size, **rest):
    ranks = [
        d for d in range(consumer_tp_size)
        if listed(consumer_tp_size=consumer_tp_size, consumer_tp_rank=d, **rest)[0]
    ]
    {expected_receivers}
    return ranks

def validate_region_lengths(
    *, total_num_kv_heads, producer_tp_size, consumer_tp_size, producer_region_bytes,
    consumer_region_bytes,
):
    {validate_region_lengths}
    mine = len(heads_of(total_num_kv_heads, producer_tp_size, 0))
    theirs = len(heads_of(total_num_kv_heads, consumer_tp_size, 0))
    per_head, rest = divmod(producer_region_bytes, mine)
    return per_head > 0 and rest == 0 and consumer_region_bytes == per_head * theirs

def in_domain(H, P, D):
    {in_domain}
    return True

{module}
"""
PLACES = (
    "plan_transfer",
    "expected_senders",
    "expected_receivers",
    "validate_region_lengths",
    "in_domain",
    "module",
)


def judge_beside_listing(folder: Path, **lines: str) -> Outcome:
    """Judge the planner above, with a line of its own in some places."""
    (folder / "own.py").write_text(BY_LISTING, encoding="utf-8")
    text = BESIDE_LISTING.format(**(dict.fromkeys(PLACES, "pass") | lines))
    (folder / "beside.py").write_text(text, encoding="utf-8")
    return judge(folder, "beside")


def test_the_functions_beside_a_planner_pass(small: Path) -> None:
    outcome = judge_beside_listing(small)
    assert outcome.code == 0, outcome.output
    assert re.findall(r"not checked: .*", outcome.output) == ["not checked: KV_ELECTION is not set"]


@pytest.mark.parametrize(
    ("name", "failed", "message"),
    [
        (
            "expected_senders",
            {SENDERS},
            "consumer rank 0: expected_senders: TypeError: [0.0] are not ranks\n",
        ),
        (
            "expected_receivers",
            {RECEIVERS},
            "producer rank 0: expected_receivers: TypeError: [0.0] are not ranks\n",
        ),
    ],
)
def test_peers_that_are_no_integers_fail(
    small: Path, name: str, failed: set[str], message: str
) -> None:
    outcome = judge_beside_listing(small, **{name: "ranks = [rank / 1 for rank in ranks]"})
    assert outcome.code == 1
    assert outcome.failed_tests == failed
    assert message in outcome.output


SKIP = "pytest.skip('no', allow_module_level=True)"


@pytest.mark.parametrize(
    ("place", "stop", "failed", "message"),
    [
        (
            "plan_transfer",
            SKIP,
            {EFFECT, SENDERS, RECEIVERS},
            "the planner raises NoAnswerError: Skipped: no",
        ),
        (
            "plan_transfer",
            "pytest.exit('no', returncode=0)",
            {EFFECT, SENDERS, RECEIVERS},
            "the planner raises NoAnswerError: Exit: no",
        ),
        (
            "plan_transfer",
            "raise SystemExit(0)",
            {EFFECT, SENDERS, RECEIVERS},
            "the planner raises NoAnswerError: SystemExit: 0",
        ),
        ("expected_senders", SKIP, {SENDERS}, "expected_senders: NoAnswerError: Skipped: no"),
        (
            "expected_senders",
            "raise unittest.SkipTest('no')",
            {SENDERS},
            "expected_senders: NoAnswerError: SkipTest: no",
        ),
        ("expected_receivers", SKIP, {RECEIVERS}, "expected_receivers: NoAnswerError: Skipped: no"),
        ("validate_region_lengths", SKIP, {LENGTHS}, " bytes: NoAnswerError: Skipped: no"),
        ("in_domain", SKIP, {LOADED}, "in_domain(1, 1, 1) raises NoAnswerError: Skipped: no"),
        ("module", SKIP, {LOADED}, "KV_PLANNER: beside cannot be imported: Skipped: no"),
    ],
)
def test_to_stop_or_to_skip_is_to_fail(
    small: Path, place: str, stop: str, failed: set[str], message: str
) -> None:
    outcome = judge_beside_listing(small, **{place: stop})
    assert outcome.code == 1
    assert outcome.failed_tests == failed
    assert message in outcome.output


def test_to_skip_is_not_to_refuse(small: Path) -> None:
    text = "import pytest\n" + BY_LISTING.replace("raise ValueError(", "pytest.skip(")
    (small / "own.py").write_text(text, encoding="utf-8")
    outcome = judge(small, "own")
    assert outcome.code == 1
    assert outcome.failed_tests == {REFUSED, RANKS}
    assert "no refusal, NoAnswerError: Skipped: rank 2 of 2\n" in outcome.output


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (
            "sends, src, dst, max(length - 1, 0)",
            (
                "consumer rank 0, which holds heads [0]:\n"
                "  head 0 in slot 0 is missing: 1 of 24 bytes not written\n"
                "  23 of 24 bytes written\n"
            ),
        ),
        (
            "sends, src // 2, dst, length",
            (
                "consumer rank 1, which holds heads [1]:\n"
                "  head 1 in slot 0 is wrong: byte 0 of it is the first that differs, "
                "from ranks [0]\n"
            ),
        ),
        (
            "sends, src, dst // 24, length",
            (
                "consumer rank 0, which holds heads [0, 1]:\n"
                "  head 0 in slot 0 is doubled: 23 bytes written by ranks [0, 1]\n"
            ),
        ),
    ],
)
def test_a_byte_planner_that_is_wrong_within_a_head_is_told(
    small: Path, answer: str, message: str
) -> None:
    text = f"""
import functools
from kvreshard.generated import planner

@functools.wraps(planner.compute_sender_transfer_plan)
def compute_sender_transfer_plan(**given):
    sends, src, dst, length = planner.compute_sender_transfer_plan(**given)
    return {answer}
"""
    (small / "own.py").write_text(text, encoding="utf-8")
    outcome = judge(small, "own", "paired")
    assert outcome.code == 1
    assert outcome.failed_tests == {EFFECT, EXACT}
    assert message in outcome.output


def test_a_byte_planner_without_the_head_count_can_be_judged(small: Path) -> None:
    # Such planners exist: the head count came into vLLM's with its pull request 52516.
    text = """
def compute_sender_transfer_plan(
    local_tp_rank, local_tp_size, remote_tp_rank, remote_tp_size, local_kv_block_len,
    remote_kv_block_len,
):
    if (local_tp_size, remote_tp_size) != (1, 1):
        raise ValueError("one rank to one rank")
    return True, 0, 0, local_kv_block_len

def in_domain(H, P, D):
    return H >= 1 and P == D == 1
"""
    (small / "one.py").write_text(text, encoding="utf-8")
    outcome = judge(small, "one")
    assert outcome.code == 0, outcome.output


def test_vectors_of_another_format_are_refused(small: Path) -> None:
    path = small / "vectors.json"
    text = path.read_text(encoding="utf-8").replace('"format": 1,', '"format": 2,')
    path.write_text(text, encoding="utf-8")
    outcome = judge(small, "kvreshard.generated.planner")
    assert outcome.code == 2
    assert "vectors.json has format 2, this file reads format 1" in outcome.output
