# SPDX-License-Identifier: Apache-2.0
"""Counterexamples of an audit: the smallest, the smallest that is silent, the one asked for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from kvreshard.proofs.audit.asking import plain_path
from kvreshard.proofs.audit.judging import judge_plans
from kvreshard.proofs.audit.model import Finding, Place, Reach, Sizes
from kvreshard.proofs.audit.sweep import named
from kvreshard.proofs.audit.telling import piece_of, story_of_plans
from kvreshard.proofs.judge import BYTES_PER_HEAD, held_heads

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kvreshard.proofs.audit.asking import Asking
    from kvreshard.proofs.audit.domain import Domain
    from kvreshard.proofs.audit.judging import Plans
    from kvreshard.proofs.audit.running import Running
    from kvreshard.proofs.audit.sweep import Subject, Swept
    from kvreshard.proofs.story.model import Story

# More pieces of a head than this are not told, if the same is seen with fewer.
MOST_PIECES = 64
REPLAYED_OTHERWISE = "The target itself was run on this input, and did NOT make the same copies."


@dataclass(frozen=True)
class Findings:
    """What counterexamples are told with.

    Attributes:
        subject: what was asked.
        swept: what came of it.
        asking: the lifted planner; None where it was executed.
        replay: the running target, on which counterexamples are seen again; None if it is not run.
        domain: the sizes in question.
        file, function: the audited function.
        command: the command line of the audit.
    """

    subject: Subject
    swept: Swept
    asking: Asking | None
    replay: Running | None
    domain: Domain
    file: str
    function: str
    command: str

    def told(self, at: Sizes | None, bytes_per_head: int) -> tuple[Finding, ...]:
        """Return the findings, the smallest first.

        Raises:
            AtError: `at` is not legal, or not in the domain.
        """
        wanted: dict[Sizes, str] = {}
        if self.swept.failing:
            wanted[self.swept.failing[0][0]] = self._smallest()
            silent = self._smallest_silent()
            if silent is not None:
                wanted.setdefault(silent, self._why_silent())
        if at is not None:
            self.domain.check(at)
            wanted.setdefault(at, "The input that was asked for.")
        found = (self._finding(sizes, why, bytes_per_head) for sizes, why in wanted.items())
        return tuple(one for one in found if one is not None)

    def _smallest(self) -> str:
        sweep = self.swept.sweep
        only = " It is the only one of them that fails." if sweep.failing == 1 else ""
        return (
            f"Of the {sweep.tried:,} inputs of the domain with H, P and D up to {sweep.maximum}, "
            f"{sweep.failing:,} fail, and this is the first of them: none has a smaller H, with "
            f"this H none a smaller P, with this P none a smaller D.{only}"
        )

    def _smallest_silent(self) -> Sizes | None:
        """Return the smallest failing sizes that the guard lets pass, where the first are not."""
        if not self.swept.sweep.refused:
            return None
        for sizes, _ in self.swept.failing:
            if not self.subject.refused(sizes, BYTES_PER_HEAD):
                return sizes
        return None

    def _why_silent(self) -> str:
        sweep = self.swept.sweep
        return (
            f"The guard refuses {sweep.refused:,} of the {sweep.failing:,} inputs that fail. This "
            f"is the smallest of the {sweep.reaching:,} that it lets pass."
        )

    def _finding(self, sizes: Sizes, why: str, bytes_per_head: int) -> Finding | None:
        plans = self._failing_plans(sizes, bytes_per_head)
        if plans is None:
            return None
        if plans.bytes_per_head != bytes_per_head:
            why = f"{why} It is told with {plans.bytes_per_head} bytes per head."
        bytes_per_head = plans.bytes_per_head
        story = story_of_plans(plans, self.function, self._command(sizes, bytes_per_head), why)
        if story is None:
            return None
        refused = self.subject.refused(sizes, bytes_per_head)
        reach = None if refused is None else Reach.REFUSED if refused else Reach.ENGINE
        return Finding(
            story=story,
            reach=reach,
            branch=tuple(self._branch(story, plans)),
            smallest=why,
            replayed=self._replayed(plans),
        )

    def _failing_plans(self, sizes: Sizes, bytes_per_head: int) -> Plans | None:
        """Return a plan that breaks an invariant, for so many bytes per head or for a few.

        A few are told where the plan breaks nothing for so many, and where a copy that starts
        within a head leaves more pieces than anybody looks at.
        """
        numbers = dict.fromkeys((bytes_per_head, BYTES_PER_HEAD))
        plans = [self.subject.plans(sizes, number) for number in numbers]
        failing = [one for one in plans if next(judge_plans(one), None) is not None]
        few = [one for one in failing if one.bytes_per_head // piece_of(one) <= MOST_PIECES]
        return next(iter((*few, *failing)), None)

    def _command(self, sizes: Sizes, bytes_per_head: int) -> str:
        if " --at " in self.command:
            return self.command
        return f"{self.command} --at {' '.join(map(str, sizes))} --bytes-per-head {bytes_per_head}"

    def _replayed(self, plans: Plans) -> str:
        if self.replay is None:
            return ""
        again = self.replay.plans(plans.sizes, plans.bytes_per_head)
        if again.copies == plans.copies and set(again.raised) == set(plans.raised):
            return "The target itself was run on this input, and made the same copies."
        return REPLAYED_OTHERWISE

    def _branch(self, story: Story, plans: Plans) -> Iterator[Place]:
        """Yield the lines that decided what happened to the slot that the story is about."""
        if self.asking is None:
            return
        pair = self._pair(story, plans)
        path = plain_path()
        if pair is None:
            return
        self.asking.plan(path, named(plans.sizes, *pair, plans.bytes_per_head))
        seen = set()
        for file, line, what in path.taken:
            if file == self.file and (line, what) not in seen:
                seen.add((line, what))
                yield Place(file, line, what)

    def _pair(self, story: Story, plans: Plans) -> tuple[int, int] | None:
        """Return the producer and consumer rank whose copy is at fault, or is missing."""
        block = story.block
        if plans.raised:
            return next(iter(plans.raised))
        if block is None or self.asking is None:
            return None
        d, slot = block.consumer_tp_rank, block.first_bad_slot
        if slot is not None and slot.writers:
            return slot.writers[-1].producer_tp_rank, d
        H, P, _ = plans.sizes
        head = None if slot is None or slot.wanted is None else slot.wanted
        many = plans.bytes_per_head // block.bytes_per_head
        for p in range(P):
            holds = head is not None and head // many in held_heads(H, P, p)
            if holds and self.asking.pairs(plain_path(), named(plans.sizes, p, d)):
                return p, d
        return None
