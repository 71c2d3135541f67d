# SPDX-License-Identifier: Apache-2.0
"""What is said of two planners that are compared, as data. It is made once and written in forms."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kvreshard.proofs.audit.judging import ByteCopy
    from kvreshard.proofs.audit.model import ContractUsed, Method, Place, Sizes, Source


class Equality(str, Enum):
    """What is known of two planners. The values are shown to people."""

    EQUAL = "equal"
    DIFFERENT = "different"
    NOT_DECIDED = "not decided"


class WhichIsRight(str, Enum):
    """Which of two planners is right where they differ. The values are shown to people."""

    NEW = "old wrong, new right"
    OLD = "old right, new wrong"
    BOTH = "both right"
    NEITHER = "both wrong"


@dataclass(frozen=True)
class Pair:
    """What two planners copy from one producer rank to one consumer rank.

    Attributes:
        producer_tp_rank, consumer_tp_rank: the ranks.
        old, new: the copies in bytes: source offset, target offset, length.
        old_raises, new_raises: what the planner raises instead, in words; empty if it does not.
    """

    producer_tp_rank: int
    consumer_tp_rank: int
    old: tuple[ByteCopy, ...]
    new: tuple[ByteCopy, ...]
    old_raises: str = ""
    new_raises: str = ""

    @property
    def differs(self) -> bool:
        """Whether the copies differ, in whatever order, or one raises where the other does not."""
        if bool(self.old_raises) != bool(self.new_raises):
            return True
        return not self.old_raises and sorted(self.old) != sorted(self.new)


@dataclass(frozen=True)
class Judged:
    """What the judge says of one planner at one input.

    Attributes:
        broken: the invariants that it breaks there; empty where it is right.
        seen: what was seen first; empty where it is right.
        refused: whether its guard refuses the input; None where it has no guard.
    """

    broken: tuple[str, ...]
    seen: str
    refused: bool | None


@dataclass(frozen=True)
class Difference:
    """One input at which two planners differ.

    Attributes:
        sizes: H, P and D.
        bytes_per_head: of one head in one block.
        pairs: every pair of ranks for which one of them copies something or raises.
        old, new: what the judge says.
        right: which of them is right.
        choice: where both are, how they differ all the same; else empty.
        why: why this input is told.
    """

    sizes: Sizes
    bytes_per_head: int
    pairs: tuple[Pair, ...]
    old: Judged
    new: Judged
    right: WhichIsRight
    choice: str
    why: str


@dataclass(frozen=True)
class Counted:
    """How many of the sizes tried are of one kind.

    Attributes:
        right: the kind.
        sizes: how many.
        old_refused, new_refused: how many of those the guard of each planner refuses.
    """

    right: WhichIsRight
    sizes: int
    old_refused: int
    new_refused: int


@dataclass(frozen=True)
class DiffSweep:
    """What came of trying all sizes of the domain up to a bound, one by one.

    Attributes:
        maximum: the largest H, P and D that were tried.
        tried: how many (H, P, D), all legal and in the domain.
        bytes_per_head: with which they were tried.
        differing: how many of them differ.
        counted: the same by kind, each kind once.
        executed: whether the targets themselves were run; else their lifted meaning was.
    """

    maximum: int
    tried: int
    bytes_per_head: int
    differing: int
    counted: tuple[Counted, ...]
    executed: bool


@dataclass(frozen=True)
class Guards:
    """What is known of the two guards, which the verdict does not speak of.

    Attributes:
        verdict: whether they refuse the same inputs.
        method: how that is known; None where it is not, or where they differ.
        differing: of the sizes tried, at how many one refuses and the other does not.
        first: the smallest of those, or None.
        detail: what else is to be said; may be empty.
    """

    verdict: Equality
    method: Method | None
    differing: int
    first: Sizes | None
    detail: str = ""


@dataclass(frozen=True)
class DiffReport:
    """The outcome of comparing two planners.

    Attributes:
        old, new: what was compared.
        contract, old_contract: how each was called; the same unless the user named two.
        domain: the sizes in question, in words.
        verdict, sentence: what is known, and that in one sentence.
        method: how it is known that they are equal; None where they are not.
        required: what the user demanded with --require, if anything.
        detail: sizes for which they are proved equal, or what is not proved; may be empty.
        differences: the smallest first, then the first of each other kind, then the one asked for.
        sweep: of the small sizes; None where nothing could be asked.
        guards: None where neither planner has one.
        stopped_by: the constructs that stopped a proof, or the whole comparison.
        assumptions: what the verdict rests on, a sentence each.
        solver: the solver and its version.
        command: gives this report again.
    """

    old: Source
    new: Source
    contract: ContractUsed
    old_contract: ContractUsed
    domain: str
    verdict: Equality
    sentence: str
    method: Method | None
    required: Method | None
    detail: str
    differences: tuple[Difference, ...]
    sweep: DiffSweep | None
    guards: Guards | None
    stopped_by: tuple[Place, ...]
    assumptions: tuple[str, ...]
    solver: str
    command: str
