# SPDX-License-Identifier: Apache-2.0
# DO NOT EDIT. Written by `make generate` of kvreshard, with the vectors beside it.
"""Judge a KV transfer planner against vectors.json, which lies beside this file.

    KV_PLANNER=my_connector.plan pytest test_planner_vectors.py

or, for a planner of the kind of vLLM's Mooncake connector,

    KV_PLANNER=my_connector.plan:compute_sender_transfer_plan \
        KV_ELECTION=paired pytest test_planner_vectors.py

pytest and the standard library only. KV_PLANNER names what is judged: `module`,
`module:attribute`, `path.py` or `path.py:attribute`. It is one of

    plan_transfer(*, total_num_kv_heads, producer_tp_size, producer_tp_rank,
                  consumer_tp_size, consumer_tp_rank[, election])
        -> (sends, src_head_offset, dst_head_offset, head_count)

    compute_sender_transfer_plan(local_tp_rank, local_tp_size, remote_tp_rank,
                                 remote_tp_size, local_kv_block_len,
                                 remote_kv_block_len[, producer_cache_replicated]
                                 [, total_num_kv_heads])
        -> (sends, src_byte_offset, dst_byte_offset, byte_count)

told apart by their parameters. A planner passes when every byte of every consumer
block is written once, with the right head, whichever replica sends it, and when it
refuses sizes and ranks that are not legal. KV_ELECTION asks for the very plan of an
election of the vectors, and leaves out the cases that it is not defined for. FORMAT.md
has the rest: the optional functions beside the planner, and what counts as refusing.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import inspect
import json
import operator
import os
import sys
import unittest
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

FORMAT = 1
VECTORS = Path(__file__).with_name("vectors.json")

HEAD_PARAMETERS = (
    "total_num_kv_heads",
    "producer_tp_size",
    "producer_tp_rank",
    "consumer_tp_size",
    "consumer_tp_rank",
)
BYTE_PARAMETERS = (
    "local_tp_rank",
    "local_tp_size",
    "remote_tp_rank",
    "remote_tp_size",
    "local_kv_block_len",
    "remote_kv_block_len",
)

Case = dict[str, Any]


class UnusableError(Exception):
    """The planner cannot be judged: it is not named, not found or not callable."""


class NoAnswerError(Exception):
    """The planner raised what would end the test or the run, such as pytest.skip."""


# What pytest obeys though it is an Exception; what is not one counts like these.
ORDERS = (pytest.exit.Exception, unittest.SkipTest)
# What a planner raises by accident: to fail so is not to refuse.
ACCIDENTS = (
    ArithmeticError,
    AttributeError,
    ImportError,
    LookupError,
    MemoryError,
    NameError,
    NoAnswerError,
    RecursionError,
    StopIteration,
    TypeError,
)


class Copy(NamedTuple):
    """What a producer rank copies into a consumer rank's block, in heads or bytes."""

    src_offset: int
    dst_offset: int
    length: int


@dataclass(frozen=True)
class Planner:
    """A planner and what its module has beside it; None for what it has not."""

    named: str
    plan: Callable[..., Any]
    in_bytes: bool
    election: str | None
    expected_senders: Callable[..., Any] | None
    expected_receivers: Callable[..., Any] | None
    validate_region_lengths: Callable[..., Any] | None
    in_domain: Callable[..., Any] | None


# Finding the planner.


def load_planner(named: str | None, election: str | None, legal: list[str]) -> Planner:
    """Return the planner that KV_PLANNER names.

    Raises:
        UnusableError: there is none; the message says what is legal.
    """
    if not named:
        raise UnusableError(
            "KV_PLANNER is not set; legal: module, module:attribute, path.py or "
            "path.py:attribute, as in KV_PLANNER=my_connector.plan"
        )
    if election is not None and election not in legal:
        raise UnusableError(
            f"KV_ELECTION={election} is not an election of the vectors; "
            f"legal: {', '.join(legal)}, or not set"
        )
    place, _, attribute = named.partition(":")
    owner: Any = import_from(place)
    plan: Any = None
    if attribute:
        found: Any = owner
        for part in attribute.split("."):
            if not hasattr(found, part):
                raise UnusableError(f"KV_PLANNER={named}: {place} has no {attribute}")
            found = getattr(found, part)
        if planner_of(found) is not None:
            owner = found
        else:
            plan = found
    plan = plan or planner_of(owner)
    if plan is None:
        raise UnusableError(
            f"KV_PLANNER={named}: it has neither plan_transfer nor "
            "compute_sender_transfer_plan; name the function, as in module:function"
        )
    return Planner(
        named=named,
        plan=plan,
        in_bytes=counts_bytes(named, plan),
        election=election,
        **{
            name: getattr(owner, name, None)
            for name in (
                "expected_senders",
                "expected_receivers",
                "validate_region_lengths",
                "in_domain",
            )
        },
    )


def import_from(place: str) -> Any:
    """Return the module with that name or in that file."""
    try:
        if not place.endswith(".py"):
            return importlib.import_module(place)
        path = Path(place).resolve()
        spec = importlib.util.spec_from_file_location(f"judged_{path.stem}", path)
        if spec is None or spec.loader is None:
            raise ImportError(f"{place} is no Python file")
        module = importlib.util.module_from_spec(spec)
        sys.modules[module.__name__] = module
        sys.path.insert(0, str(path.parent))
        spec.loader.exec_module(module)
    except KeyboardInterrupt:
        raise
    # A module that calls sys.exit or pytest.skip is not to end or to skip this run.
    except BaseException as error:
        raise UnusableError(
            f"KV_PLANNER: {place} cannot be imported: {type(error).__name__}: {error}"
        ) from error
    return module


def planner_of(owner: Any) -> Any:
    """Return the planner among the attributes of a module or an object, or None."""
    plan = getattr(owner, "plan_transfer", None)
    return plan or getattr(owner, "compute_sender_transfer_plan", None)


def counts_bytes(named: str, plan: Any) -> bool:
    """Whether a planner takes lengths and answers in bytes, by its parameters."""
    if not callable(plan):
        raise UnusableError(
            f"KV_PLANNER={named} is a {type(plan).__name__}, no function"
        )
    try:
        inspect.signature(plan)
    except (TypeError, ValueError) as error:
        raise UnusableError(
            f"KV_PLANNER={named}: its parameters cannot be read: {error}"
        ) from error
    for in_bytes, parameters in ((False, HEAD_PARAMETERS), (True, BYTE_PARAMETERS)):
        if all(takes(plan, name) for name in parameters):
            return in_bytes
    raise UnusableError(
        f"KV_PLANNER={named}{inspect.signature(plan)} takes neither "
        f"{', '.join(HEAD_PARAMETERS)} nor {', '.join(BYTE_PARAMETERS)}"
    )


def takes(function: Callable[..., Any], name: str) -> bool:
    """Whether a function can be given an argument by that name."""
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.VAR_POSITIONAL)
    try:
        parameter = inspect.signature(function).parameters.get(name)
    except (TypeError, ValueError):
        return False
    return parameter is not None and parameter.kind not in kinds


# Asking the planner.


def sizes_of(case: Case) -> dict[str, int]:
    """Return the head count and both group sizes, by the names of the parameters."""
    names = ("total_num_kv_heads", "producer_tp_size", "consumer_tp_size")
    return {name: case[name] for name in names}


def call(planner: Planner, function: Callable[..., Any], **arguments: Any) -> Any:
    """Call a function of the planner, with the election where it takes one."""
    if planner.election is not None and takes(function, "election"):
        arguments["election"] = planner.election
    return answer_of(function, **arguments)


def answer_of(function: Callable[..., Any], *given: Any, **arguments: Any) -> Any:
    """Call a function that is judged.

    Raises:
        NoAnswerError: it raised what pytest or Python take for an order to stop or to
            skip. Other errors are passed on.
    """
    try:
        return function(*given, **arguments)
    except KeyboardInterrupt:
        raise
    except BaseException as raised:
        if isinstance(raised, Exception) and not isinstance(raised, ORDERS):
            raise
        raise NoAnswerError(f"{type(raised).__name__}: {raised}") from None


def ask(planner: Planner, case: Case, producer: int, consumer: int) -> Copy | None:
    """Return what the planner copies from one rank to the other, or None for nothing.

    In heads or in bytes, as the planner counts.
    """
    if planner.in_bytes:
        arguments = {
            "local_tp_rank": producer,
            "local_tp_size": case["producer_tp_size"],
            "remote_tp_rank": consumer,
            "remote_tp_size": case["consumer_tp_size"],
            "local_kv_block_len": case["producer_block_bytes"],
            "remote_kv_block_len": case["consumer_block_bytes"],
            "producer_cache_replicated": case["producer_tp_size"]
            > case["total_num_kv_heads"],
            "total_num_kv_heads": case["total_num_kv_heads"],
        }
        given = {
            name: value
            for name, value in arguments.items()
            if takes(planner.plan, name)
        }
    else:
        given = {
            **sizes_of(case),
            "producer_tp_rank": producer,
            "consumer_tp_rank": consumer,
        }
    answer = call(planner, planner.plan, **given)
    try:
        sends, *numbers = answer
        src_offset, dst_offset, length = (operator.index(number) for number in numbers)
    except (TypeError, ValueError):
        raise TypeError(
            f"the planner returned {answer!r}, not (sends, offset, offset, count)"
        ) from None
    return Copy(src_offset, dst_offset, length) if sends else None


@cache
def copies_of(name: str) -> dict[tuple[int, int], Copy]:
    """Return the copies that the planner makes in a case, by producer and consumer."""
    case, planner = BY_NAME[name], the_planner()
    found = {}
    for consumer in range(case["consumer_tp_size"]):
        for producer in range(case["producer_tp_size"]):
            copy, problem = None, None
            try:
                copy = ask(planner, case, producer, consumer)
            except Exception as error:
                problem = f"the planner raises {type(error).__name__}: {error}"
            # Out here, or pytest tells the planner's error first and the case last.
            if problem is not None:
                pair = f"producer rank {producer} to consumer rank {consumer}"
                fail_if(case, [f"{pair}: {problem}"])
            if copy is not None:
                found[producer, consumer] = copy
    return found


def told(case: Case) -> str:
    """Return the case in words."""
    fault, models = case.get("fault"), case.get("models")
    heads, producers, consumers = sizes_of(case).values()
    lines = [
        f"H={heads} heads, producer TP P={producers}, consumer TP D={consumers}",
        f"case {case['name']}: {case['why']}",
    ]
    lines += [f"reported: {fault['source']}"] if fault else []
    lines += [f"models: {'; '.join(models)}"] if models else []
    lines += [
        f"election {name} is not defined for these sizes: for a planner of that kind "
        f"set KV_ELECTION={name}; for any other that is not meant for them, in_domain "
        "returns False"
        for name in DOCUMENT["elections"]
        if "plans" in case and not has_plan(case, name)
    ]
    return "\n".join(lines)


def fail_if(case: Case, faults: Iterable[str]) -> None:
    """Fail with the case and its faults, if there are any."""
    lines = list(faults)
    if lines:
        pytest.fail("\n".join([told(case), *lines]), pytrace=False)


# The effect of a plan on buffers of bytes.


@cache
def head_bytes(head: int, size: int) -> bytes:
    """Return what a head's bytes hold: other content at every place of every head."""
    return hashlib.shake_128(f"head {head}".encode()).digest(size)


PLUS_ONE = bytes([*range(1, 256), 255])


class Block:
    """A consumer rank's block: its bytes, and how often each was written."""

    def __init__(self, heads: list[int], size: int, total: int) -> None:
        """Start with nothing written; `size` is the bytes of one of `total` heads."""
        self.heads = heads
        self.total = total
        self.size = size
        self.content = bytearray(len(heads) * size)
        self.writes = bytearray(len(heads) * size)
        self.writers: list[tuple[int, int, int]] = []

    def write(self, producer: int, start: int, data: bytes) -> None:
        """Write what lies inside the block."""
        data = data[max(-start, 0) :]
        start = max(start, 0)
        end = min(start + len(data), len(self.content))
        if start < end:
            self.content[start:end] = data[: end - start]
            self.writes[start:end] = self.writes[start:end].translate(PLUS_ONE)
            self.writers.append((producer, start, end))

    def faults(self) -> Iterator[str]:
        """Say for each head whether it is missing, doubled or wrong."""
        for slot, head in enumerate(self.heads):
            start, end = slot * self.size, (slot + 1) * self.size
            writes, content = self.writes[start:end], self.content[start:end]
            missing, once = writes.count(0), writes.count(1)
            by = [p for p, first, last in self.writers if first < end and start < last]
            said = f"  head {head} in slot {slot}"
            if missing:
                yield f"{said} is missing: {missing} of {self.size} bytes not written"
            if missing + once < self.size:
                doubled = self.size - missing - once
                yield f"{said} is doubled: {doubled} bytes written by ranks {by}"
            if not missing and content != head_bytes(head, self.size):
                yield f"{said} is wrong: {self.found(content, head)}, from ranks {by}"

    def found(self, content: bytearray, head: int) -> str:
        """Say what lies where a head should."""
        for other in range(self.total):
            if content == head_bytes(other, self.size):
                return f"it holds head {other}"
        right = head_bytes(head, self.size)
        first = next(at for at in range(self.size) if content[at] != right[at])
        return f"byte {first} of it is the first that differs"


def faults_of_consumer(
    case: Case, copies: dict[tuple[int, int], Copy], unit: int, consumer: int
) -> Iterator[str]:
    """Run the copies into one consumer rank and yield what is wrong, in words.

    `unit` is the bytes of what the copies count.
    """
    size = case["bytes_per_head"]
    heads = case["consumer_blocks"][consumer]
    block = Block(heads, size, case["total_num_kv_heads"])
    found = []
    for (producer, to), copy in copies.items():
        if to != consumer:
            continue
        held = case["producer_blocks"][producer]
        src, dst, length = (number * unit for number in copy)
        here = f"  producer rank {producer}, which holds heads {held},"
        if length < 1:
            found.append(f"{here} sends {length} bytes")
        if src < 0 or src + length > len(held) * size:
            found.append(
                f"{here} reads bytes {src} to {src + length} of its block of "
                f"{len(held) * size}"
            )
        if dst < 0 or dst + length > len(block.content):
            found.append(
                f"{here} writes bytes {dst} to {dst + length} of a block of "
                f"{len(block.content)}"
            )
        source = b"".join(head_bytes(head, size) for head in held)
        # What is read before or after the block is filled up, so that it is wrong.
        before = bytes(min(max(-src, 0), max(length, 0)))
        data = before + source[max(src, 0) : max(src + length, 0)]
        block.write(producer, dst, data + bytes(max(length - len(data), 0)))
    found += block.faults()
    if found:
        written = len(block.writes) - block.writes.count(0)
        yield f"consumer rank {consumer}, which holds heads {heads}:"
        yield from found
        yield f"  {written} of {len(block.content)} bytes written"


# Which cases the planner is judged on.


def read_vectors() -> dict[str, Any]:
    """Return the vectors, if they are of the format that this file reads."""
    document: dict[str, Any] = json.loads(VECTORS.read_text(encoding="utf-8"))
    if document["format"] != FORMAT:
        raise ValueError(
            f"{VECTORS.name} has format {document['format']}, "
            f"this file reads format {FORMAT}"
        )
    return document


DOCUMENT = read_vectors()
CASES: list[Case] = DOCUMENT["cases"]
BY_NAME = {case["name"]: case for case in CASES}


@cache
def the_planner() -> Planner:
    """Return the planner that the environment names."""
    return load_planner(
        os.environ.get("KV_PLANNER"),
        os.environ.get("KV_ELECTION") or None,
        DOCUMENT["elections"],
    )


def is_judged(planner: Planner, case: Case) -> bool:
    """Whether the planner's own domain has the case."""
    if planner.in_domain is None:
        return True
    sizes = tuple(sizes_of(case).values())
    try:
        return bool(answer_of(planner.in_domain, *sizes))
    except Exception as error:
        raise UnusableError(
            f"KV_PLANNER={planner.named}: in_domain{sizes} raises "
            f"{type(error).__name__}: {error}"
        ) from error


def has_plan(case: Case, election: str | None) -> bool:
    """Whether the election is defined for the case."""
    return election is None or any(
        election in plan["elections"] for plan in case["plans"]
    )


class Selection:
    """The cases of this run, and what is left out for which reason."""

    def __init__(self) -> None:
        """Load the planner and ask it for its domain."""
        self.planned: list[Case] = []
        self.refused: list[Case] = []
        self.refused_ranks: list[Case] = []
        self.left_out: dict[str, int] = {}
        self.planner: Planner | None = None
        self.problem: str | None = None
        try:
            self.planner = the_planner()
            for case in CASES:
                self.sort(self.planner, case)
        except UnusableError as unusable:
            self.problem = str(unusable)
            self.planned, self.refused, self.refused_ranks = [], [], []
            self.left_out = {}

    def sort(self, planner: Planner, case: Case) -> None:
        """Put one case where it belongs."""
        if not is_judged(planner, case):
            self.leave_out("outside the planner's in_domain")
        elif case.get("refused"):
            of_ranks = "producer_tp_rank" in case
            (self.refused_ranks if of_ranks else self.refused).append(case)
        elif not has_plan(case, planner.election):
            self.leave_out(f"without a plan of election {planner.election}")
        else:
            self.planned.append(case)

    def leave_out(self, reason: str) -> None:
        """Count a case that is not judged."""
        self.left_out[reason] = self.left_out.get(reason, 0) + 1

    def lacks(self, name: str) -> str | None:
        """Return why a check is left out, where its function is not there."""
        there = getattr(self.planner, name, None) is not None
        return None if there else f"not checked: the planner has no {name}"

    def cannot_compare(self, name: str) -> str | None:
        """Return why the ranks of a peer function are not those of the planner.

        It may take an election where the planner has one of its own.
        """
        planner, lacking = self.planner, self.lacks(name)
        if planner is None or lacking is not None or planner.election is not None:
            return lacking
        by_election = takes(getattr(planner, name), "election")
        if not by_election or takes(planner.plan, "election"):
            return None
        return (
            f"not checked: {name} takes election and the planner does not, so that "
            "KV_ELECTION has to name the planner's"
        )


NO_PLANNER = "no planner, see test_the_planner_can_be_judged"
SELECTED = Selection()


def over(cases: list[Case], missing: str | None = None) -> pytest.MarkDecorator:
    """Run a test for each case, or skip it once with the reason."""
    parameters = [pytest.param(case, id=case["name"]) for case in cases]
    if SELECTED.problem is not None:
        missing = NO_PLANNER
    elif missing is None and not cases:
        missing = "no case of this kind is judged"
    if missing is not None:
        mark = pytest.mark.skip(reason=missing)
        parameters = [pytest.param(None, id="none", marks=mark)]
    return pytest.mark.parametrize("case", parameters)


# The tests.


def test_the_planner_can_be_judged() -> None:
    """A planner is named, can be imported, and its domain has a case."""
    if SELECTED.problem is not None:
        pytest.fail(SELECTED.problem, pytrace=False)
    if not SELECTED.planned:
        pytest.fail(
            f"nothing was checked: of {len(CASES)} cases no legal one is judged; "
            + "; ".join(f"{n} {reason}" for reason, n in SELECTED.left_out.items()),
            pytrace=False,
        )


def left_out_cases() -> list[Any]:
    """Return a parameter for each reason, or one for none at all."""
    return [
        pytest.param(reason, count, id=reason.replace(" ", "_"))
        for reason, count in SELECTED.left_out.items()
    ] or [pytest.param("", 0, id="none")]


@pytest.mark.parametrize(("reason", "count"), left_out_cases())
def test_every_case_is_judged(reason: str, count: int) -> None:
    """Tell what is left out, as a skip with its count."""
    if SELECTED.problem is not None:
        pytest.skip(NO_PLANNER)
    if count:
        pytest.skip(f"not checked: {count} of {len(CASES)} cases are {reason}")
    judged = (SELECTED.planned, SELECTED.refused, SELECTED.refused_ranks)
    assert sum(map(len, judged)) == len(CASES)


@over(SELECTED.planned)
def test_every_consumer_byte_is_written_once_with_the_right_head(case: Case) -> None:
    """Run the planner for every pair of ranks and compare the consumers' blocks."""
    copies = copies_of(case["name"])
    unit = 1 if the_planner().in_bytes else case["bytes_per_head"]
    fail_if(
        case,
        [
            line
            for consumer in range(case["consumer_tp_size"])
            for line in faults_of_consumer(case, copies, unit, consumer)
        ],
    )


@over(
    SELECTED.planned,
    None if os.environ.get("KV_ELECTION") else "not checked: KV_ELECTION is not set",
)
def test_the_plan_is_that_of_the_election(case: Case) -> None:
    """Compare with the very copies that the vectors have for KV_ELECTION."""
    planner = the_planner()
    first = 5 if planner.in_bytes else 2
    right = {
        (row[0], row[1]): Copy(*row[first : first + 3])
        for plan in case["plans"]
        if planner.election in plan["elections"]
        for row in plan["copies"]
    }
    made = copies_of(case["name"])
    unit = "bytes" if planner.in_bytes else "heads"
    fail_if(
        case,
        [
            f"producer rank {pair[0]} to consumer rank {pair[1]}, in {unit}: planned "
            f"{made.get(pair)}, election {planner.election} has {right.get(pair)}"
            for pair in sorted({*made, *right})
            if made.get(pair) != right.get(pair)
        ],
    )


@over(SELECTED.planned, SELECTED.cannot_compare("expected_senders"))
def test_a_consumer_waits_for_those_who_send(case: Case) -> None:
    """Compare expected_senders with who sends to each consumer rank."""
    planner, faults = the_planner(), []
    assert planner.expected_senders is not None
    for consumer in range(case["consumer_tp_size"]):
        try:
            waits_for = peers(
                planner, planner.expected_senders, case, {"consumer_tp_rank": consumer}
            )
        except Exception as error:
            raised = f"expected_senders: {type(error).__name__}: {error}"
            faults.append(f"consumer rank {consumer}: {raised}")
            continue
        sending = sorted(p for p, d in copies_of(case["name"]) if d == consumer)
        if waits_for != sending:
            faults.append(
                f"consumer rank {consumer} waits for {waits_for}, "
                f"but producer ranks {sending} send to it"
            )
    fail_if(case, faults)


@over(SELECTED.planned, SELECTED.cannot_compare("expected_receivers"))
def test_a_producer_counts_those_it_sends_to(case: Case) -> None:
    """Compare expected_receivers with whom each producer rank sends to."""
    planner, faults = the_planner(), []
    assert planner.expected_receivers is not None
    for producer in range(case["producer_tp_size"]):
        try:
            counts = peers(
                planner,
                planner.expected_receivers,
                case,
                {"producer_tp_rank": producer},
            )
        except Exception as error:
            raised = f"expected_receivers: {type(error).__name__}: {error}"
            faults.append(f"producer rank {producer}: {raised}")
            continue
        receiving = sorted(d for p, d in copies_of(case["name"]) if p == producer)
        if counts != receiving:
            faults.append(
                f"producer rank {producer} counts on {counts}, "
                f"but it sends to consumer ranks {receiving}"
            )
    fail_if(case, faults)


def peers(
    planner: Planner, function: Callable[..., Any], case: Case, rank: dict[str, int]
) -> list[int]:
    """Return the ranks that a function of the planner names, sorted.

    Raises:
        TypeError: it names something that is no integer. Other errors are its own.
    """
    named = list(call(planner, function, **sizes_of(case), **rank))
    try:
        return sorted(operator.index(number) for number in named)
    except TypeError:
        raise TypeError(f"{named!r} are not ranks") from None


@over(SELECTED.planned, SELECTED.lacks("validate_region_lengths"))
def test_lengths_are_accepted_exactly_where_a_plan_fits(case: Case) -> None:
    """Give the length check what fits and what does not."""
    planner, faults = the_planner(), []
    assert planner.validate_region_lengths is not None
    for producer_bytes, consumer_bytes, right in case["lengths"]:
        lengths = f"lengths of {producer_bytes} and {consumer_bytes} bytes"
        try:
            answer = call(
                planner,
                planner.validate_region_lengths,
                **sizes_of(case),
                producer_region_bytes=producer_bytes,
                consumer_region_bytes=consumer_bytes,
            )
            accepted = answer is None or bool(answer)
        except ACCIDENTS as error:
            faults.append(f"{lengths}: {type(error).__name__}: {error}")
            continue
        except Exception:
            accepted = False
        if accepted is not right:
            faults.append(
                f"{lengths} are {'accepted' if accepted else 'refused'}; a producer "
                f"rank holds {len(case['producer_blocks'][0])} heads, a consumer rank "
                f"{len(case['consumer_blocks'][0])}"
            )
    fail_if(case, faults)


@over(SELECTED.refused)
def test_sizes_that_are_not_legal_are_refused(case: Case) -> None:
    """The planner raises for every pair of ranks, and not by accident."""
    fail_if(
        case,
        [
            fault
            for producer in range(max(case["producer_tp_size"], 1))
            for consumer in range(max(case["consumer_tp_size"], 1))
            for fault in not_refused(case, producer, consumer)
        ],
    )


@over(SELECTED.refused_ranks)
def test_ranks_that_are_not_of_the_group_are_refused(case: Case) -> None:
    """The planner raises for a rank that is not of its group, and not by accident."""
    ranks = (case["producer_tp_rank"], case["consumer_tp_rank"])
    fail_if(case, not_refused(case, *ranks))


def not_refused(case: Case, producer: int, consumer: int) -> Iterator[str]:
    """Say what the planner does for a pair of ranks, unless it refuses."""
    # Lengths that a planner which rounds down would find right.
    held = {
        side: max(case["total_num_kv_heads"] // max(case[f"{side}_tp_size"], 1), 1)
        for side in ("producer", "consumer")
    }
    asked = case | {f"{side}_block_bytes": 24 * count for side, count in held.items()}
    pair = f"producer rank {producer} to consumer rank {consumer}"
    try:
        made = ask(the_planner(), asked, producer, consumer)
        yield f"{pair}: planned {made}, where it should refuse"
    except ACCIDENTS as error:
        yield f"{pair}: no refusal, {type(error).__name__}: {error}"
    except Exception:
        return
