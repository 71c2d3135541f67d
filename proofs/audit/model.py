# SPDX-License-Identifier: Apache-2.0
"""What an audit says, as data. It is made once and written in several forms."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kvreshard.proofs.story.model import Story

# H, P and D: KV heads, producer TP size, consumer TP size.
Sizes = tuple[int, int, int]


class Verdict(str, Enum):
    """What is known of a planner, or of one invariant of it. The values are shown to people."""

    HOLDS = "holds"
    FAILS = "fails"
    NOT_DECIDED = "not decided"


class Method(str, Enum):
    """How it is known. The values are shown to people; the strongest comes first."""

    ALL_SIZES = "proved for all sizes"
    RANGE = "proved in a range"
    FINITE = "checked exhaustively on a finite domain"


class Reach(str, Enum):
    """How far a wrong plan gets. The values are shown to people."""

    REFUSED = "refused before sending"
    ENGINE = "reaches the engine"


@dataclass(frozen=True)
class Place:
    """A line of the audited source, and what is to be said of it; never the line itself.

    Attributes:
        file: the path as reports show it.
        line: from 1.
        what: what it is, in words.
    """

    file: str
    line: int
    what: str


@dataclass(frozen=True)
class Part:
    """A function, class or constant of the audited file that the planner needs.

    Attributes:
        name: as the file calls it.
        first_line, last_line: from 1, both included.
    """

    name: str
    first_line: int
    last_line: int


@dataclass(frozen=True)
class Source:
    """The code that was audited, by reference.

    Attributes:
        target: what the user named.
        origin: where it came from, in words: a file, or a distribution and its version.
        file: the path as reports show it: as given, or the path inside the distribution.
        sha256: of the file's bytes.
        function: the audited function, with its lines.
        needs: the helpers, classes and constants of the same file that it needs.
    """

    target: str
    origin: str
    file: str
    sha256: str
    function: Part
    needs: tuple[Part, ...] = ()


@dataclass(frozen=True)
class ContractUsed:
    """How the planner was called and read.

    Attributes:
        name: of a contract that ships with kvreshard, or the path of the user's own.
        sentence: what planner it is for.
        domain: the sizes that the planner is meant for, in words.
        outside: what the contract leaves out, a sentence each.
        guard: the function that is asked before anything is sent; None if there is none.
    """

    name: str
    sentence: str
    domain: str
    outside: tuple[str, ...] = ()
    guard: str | None = None


@dataclass(frozen=True)
class InvariantResult:
    """What is known of one invariant.

    Attributes:
        name, sentence: the invariant, spelled as in the specification.
        verdict: what is known.
        method: how; None where it is not decided, or where it fails.
        detail: the sizes that were covered, or what stopped the decision; may be empty.
        failing: of the inputs that were tried, how many break it.
    """

    name: str
    sentence: str
    verdict: Verdict
    method: Method | None = None
    detail: str = ""
    failing: int = 0


@dataclass(frozen=True)
class Sweep:
    """What came of trying all sizes of the domain up to a bound, one by one.

    Attributes:
        maximum: the largest H, P and D that were tried.
        tried: how many (H, P, D), all legal and in the domain.
        failing: how many of them break an invariant.
        refused: how many of those the guard refuses before anything is sent.
        turned_away: how many right ones the guard refuses.
        executed: whether the target itself was run; else its lifted meaning was.
    """

    maximum: int
    tried: int
    failing: int
    refused: int
    turned_away: int
    executed: bool

    @property
    def reaching(self) -> int:
        """How many wrong ones reach the engine."""
        return self.failing - self.refused


@dataclass(frozen=True)
class Finding:
    """One counterexample.

    Attributes:
        story: input, head map, bytes, broken invariant, test to paste, command.
        reach: how far it gets; None where the contract has no guard.
        branch: the lines of the audited source that decided what happened, in order.
        smallest: the sentence on what is known of smaller inputs.
        replayed: what running the target itself on this input gave; empty if it was not run.
    """

    story: Story
    reach: Reach | None
    branch: tuple[Place, ...]
    smallest: str
    replayed: str = ""


@dataclass(frozen=True)
class AuditReport:
    """The outcome of one audit.

    Attributes:
        source, contract: what was audited, and how it was called.
        verdict: what is known.
        sentence: the verdict in one sentence.
        method: the strongest method that decided every invariant in scope, where it holds.
        required: what the user demanded with --require, if anything.
        invariants: each invariant in scope.
        out_of_scope: the other invariants, each with the reason why the audit cannot speak of it.
        findings: where it fails: the smallest counterexample first, then the one asked for.
        sweep: of the small sizes; None where nothing could be run.
        stopped_by: the constructs that stopped a proof, or the whole audit.
        assumptions: what the verdict rests on, a sentence each.
        solver: the solver and its version.
        command: gives this report again.
    """

    source: Source
    contract: ContractUsed
    verdict: Verdict
    sentence: str
    method: Method | None
    required: Method | None
    invariants: tuple[InvariantResult, ...]
    out_of_scope: tuple[tuple[str, str], ...]
    findings: tuple[Finding, ...]
    sweep: Sweep | None
    stopped_by: tuple[Place, ...]
    assumptions: tuple[str, ...]
    solver: str
    command: str
