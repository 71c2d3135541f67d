# SPDX-License-Identifier: Apache-2.0
"""Reports of audits to write in each form: made by hand round stories of real runs."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

from kvreshard.proofs.audit.model import (
    AuditReport,
    ContractUsed,
    Finding,
    InvariantResult,
    Method,
    Part,
    Place,
    Reach,
    Source,
    Sweep,
    Verdict,
)
from kvreshard.proofs.broken import BROKEN
from kvreshard.proofs.broken.names import CONTENT, COVERED, HOLDER, LENGTHS, OVERLAP, PEERS, READ
from kvreshard.proofs.broken.names import WRITE as INSIDE
from kvreshard.proofs.smallest import search
from kvreshard.proofs.story.build import story_of
from kvreshard.proofs.story.model import Origin, Story
from kvreshard.spec.invariants import INVARIANTS

FILE = "example_planner/kv_transfer/connector.py"
TARGET = f"example-planner==1.4.0:{FILE}::sender_plan"
COMMAND = f"kvreshard audit '{TARGET}' --contract generic"
SCOPE = (COVERED, OVERLAP, READ, INSIDE, CONTENT, HOLDER)

SOURCE = Source(
    target=TARGET,
    origin="the distribution example-planner, version 1.4.0",
    file=FILE,
    sha256="6a30f1b2" * 8,
    function=Part("sender_plan", 112, 161),
    needs=(Part("heads_per_rank", 40, 52), Part("TransferPlan", 18, 31), Part("MAX_PEERS", 12, 12)),
)
CONTRACT = ContractUsed(
    name="generic",
    sentence="A function that returns, for one pair of ranks, what the first copies to the second.",
    domain="P divides D, or D divides P",
    outside=(
        "Pairs where neither TP size divides the other are not asked about.",
        "The bytes of a head are taken to be the same on both sides.",
    ),
    guard="lengths_fit",
)
OUT_OF_SCOPE = (
    (PEERS, "The contract has no function that says whom a rank waits for."),
    (LENGTHS, "The contract has no function that says which lengths fit."),
)
ASSUMPTIONS = (
    "The file that runs is the file with this hash.",
    "Integers are Python's: no overflow.",
)


def results(
    verdict: Verdict, method: Method | None = None, detail: str = ""
) -> tuple[InvariantResult, ...]:
    """The same of each invariant in scope."""
    return tuple(
        InvariantResult(name, INVARIANTS[name].sentence, verdict, method, detail) for name in SCOPE
    )


@cache
def story(
    name: str = "the_lowest_rank_alone_sends", sizes: tuple[int, int, int] | None = (4, 8, 1)
) -> Story:
    """The story of a broken planner, told of the audited function."""
    told = story_of(BROKEN[name], sizes)
    if told is None:
        raise ValueError(f"{name} breaks nothing at {sizes}")
    H, P, D = told.sizes
    command = f"{COMMAND} --at {H} {P} {D}"
    test = told.test.replace(told.command, command)
    origin = Origin("sender_plan", CONTRACT.sentence)
    return replace(told, origin=origin, command=command, test=test, reported=None)


def holds() -> AuditReport:
    """Proved for all sizes."""
    return AuditReport(
        source=SOURCE,
        contract=CONTRACT,
        verdict=Verdict.HOLDS,
        sentence="All 6 invariants in scope of sender_plan hold for all sizes of its domain.",
        method=Method.ALL_SIZES,
        required=Method.RANGE,
        invariants=results(Verdict.HOLDS, Method.ALL_SIZES, "each of 4 regimes"),
        out_of_scope=OUT_OF_SCOPE,
        findings=(),
        sweep=Sweep(12, 152, 0, 0, 3, executed=False),
        stopped_by=(),
        assumptions=ASSUMPTIONS,
        solver="Z3 5.4.1",
        command=COMMAND,
    )


def fails() -> AuditReport:
    """One counterexample, which reaches the engine."""
    told = story()
    tried = search(BROKEN["the_lowest_rank_alone_sends"])
    failing = InvariantResult(
        COVERED, INVARIANTS[COVERED].sentence, Verdict.FAILS, None, "", len(tried.failing)
    )
    others = results(Verdict.HOLDS, Method.RANGE, "H, P and D up to 64")
    return replace(
        holds(),
        verdict=Verdict.FAILS,
        sentence="sender_plan loses heads: it fails for 16 of the 152 sizes tried, and each of "
        "them reaches the engine.",
        method=None,
        required=None,
        invariants=(failing, *others[1:]),
        findings=(
            Finding(
                story=told,
                reach=Reach.ENGINE,
                branch=(
                    Place(FILE, 128, "the test that P is at least D holds"),
                    Place(FILE, 134, "only the lowest of the P // D ranks is kept"),
                ),
                smallest="No input with fewer heads than H=4 fails that the guard lets through.",
                replayed="sender_plan of that file, run on this input, returns the same copies.",
            ),
        ),
        sweep=Sweep(tried.maximum, tried.tried, len(tried.failing), 0, 3, executed=True),
        command=f"{COMMAND} --at 4 8 1",
    )


def refused() -> AuditReport:
    """One counterexample, which the guard refuses before anything is sent."""
    told = story("the_source_offset_follows_the_tp_ratio", None)
    failing = {told.invariant, *told.also_violated}
    return replace(
        fails(),
        sentence="sender_plan is wrong for 4 of the 152 sizes tried; the guard refuses each.",
        invariants=tuple(
            replace(one, verdict=Verdict.FAILS, method=None, detail="", failing=4)
            if one.name in failing
            else one
            for one in results(Verdict.HOLDS, Method.FINITE, "H, P and D up to 12")
        ),
        findings=(
            Finding(told, Reach.REFUSED, (Place(FILE, 140, "the offset by the TP ratio"),), "", ""),
        ),
        sweep=Sweep(12, 152, 4, 4, 0, executed=False),
        command=f"{COMMAND} --range 12",
    )


def two_findings() -> AuditReport:
    """The smallest counterexample, and the one asked for."""
    one = fails().findings[0]
    first = replace(one, story=story(sizes=None), smallest="This is the smallest input that fails.")
    return replace(fails(), findings=(first, one))


def not_decided() -> AuditReport:
    """Stopped by two constructs before anything could be said."""
    return replace(
        holds(),
        verdict=Verdict.NOT_DECIDED,
        sentence="Nothing is known of sender_plan: the audit stops at a while loop.",
        method=None,
        required=Method.ALL_SIZES,
        invariants=results(Verdict.NOT_DECIDED, None, "the function could not be read"),
        sweep=None,
        stopped_by=(
            Place(FILE, 119, "a while loop"),
            Place(FILE, 147, "a division of floats"),
        ),
    )


HOSTILE = "</title><script>alert(1)</script>|`a``b`\n]]>[x](//e.example)\x1b[31m\u202e@all #1 {0}"


def hostile(text: str = HOSTILE) -> AuditReport:
    """Every text that a target can choose is this one: by default one that breaks out of forms."""
    base = fails()
    part = Part(text, 3, 9)
    place = Place(text, 7, text)
    told = replace(
        base.findings[0].story,
        origin=Origin(text, text, (text,)),
        election=text,
        command=text,
        test=f"# {text}\n",
    )
    return replace(
        base,
        source=Source(text, text, text, "0" * 64, part, (part, part)),
        contract=ContractUsed(text, text, text, (text,), text),
        sentence=text,
        invariants=tuple(replace(one, detail=text) for one in base.invariants),
        out_of_scope=((PEERS, text),),
        findings=(Finding(told, Reach.ENGINE, (place,), text, text),),
        stopped_by=(place,),
        assumptions=(text,),
        solver=text,
        command=text,
    )


REPORTS = {
    "holds": holds,
    "fails": fails,
    "refused": refused,
    "two_findings": two_findings,
    "not_decided": not_decided,
    "hostile": hostile,
}
