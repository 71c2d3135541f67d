# SPDX-License-Identifier: Apache-2.0
"""Compare two planners: where do they differ, smallest input first; if nowhere, by which proof.

They differ where, for some pair of ranks that meet, they make other copies, or one raises where the
other does not. The order of copies is no difference, nor is what an exception says. What the guards
refuse is told beside it.
"""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, TypeVar

from kvreshard.proofs.audit.all_sizes import EVERYWHERE, Attempt
from kvreshard.proofs.audit.comparing import Compared, answers_at, compare, difference_at
from kvreshard.proofs.audit.contract import ContractError, read_contract
from kvreshard.proofs.audit.decide import METHODS, RANGE_TO
from kvreshard.proofs.audit.difference_model import (
    Difference,
    DiffReport,
    Equality,
    Guards,
    WhichIsRight,
)
from kvreshard.proofs.audit.execute import Executed, ExecutionStopped, Limits
from kvreshard.proofs.audit.model import ContractUsed, Method, Place, Sizes
from kvreshard.proofs.audit.opening import Opened, opened
from kvreshard.proofs.audit.running import Running
from kvreshard.proofs.audit.same_copies import (
    CommonDomain,
    prove_guards_same_for_all_sizes,
    prove_same_for_all_sizes,
    prove_same_in_range,
)
from kvreshard.proofs.audit.sweep import SWEPT_TO, Lifted, Subject
from kvreshard.proofs.audit.target import locate
from kvreshard.proofs.judge import BYTES_PER_HEAD
from kvreshard.proofs.lifting.unsupported import UnsupportedError
from kvreshard.proofs.solve import solver_version

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from kvreshard.proofs.audit.judging import Plans

Answered = TypeVar("Answered")
Subjects = tuple[Subject, Subject]
NOT_AS_LIFTED = "a target, when it is run, is not seen to do what was lifted"


@dataclass(frozen=True)
class DiffRequest:
    """What the user asks for.

    Attributes:
        old, new, contract, old_contract: as on the command line; without an old contract both
            planners are called by the same.
        command: the command line, for the report.
        where: narrows the domain; empty for all of it.
        at: H, P and D of a difference to tell, or None.
        bytes_per_head: of what is told.
        required: the weakest method that counts, or None for any.
        swept_to, range_to: bounds of what is tried and of what is proved by value.
        execute: whether the targets may be run.
        limits: what each may use then.
    """

    old: str
    new: str
    contract: str
    command: str
    old_contract: str = ""
    where: str = ""
    at: Sizes | None = None
    bytes_per_head: int = 65_536
    required: Method | None = None
    swept_to: int = SWEPT_TO
    range_to: int = RANGE_TO
    execute: bool = False
    limits: Limits = field(default_factory=Limits)


def diff(request: DiffRequest) -> DiffReport:
    """Compare two planners.

    Raises:
        TargetError: there is no such target.
        ContractError, ContractMismatchError, WhereError: a contract or the domain is not right.
        AtError: `at` is not legal, or not in the domain.
    """
    contract = read_contract(request.contract)
    other = read_contract(request.old_contract) if request.old_contract else contract
    old, new = opened(locate(request.old), other), opened(locate(request.new), contract)
    domain = CommonDomain.of_both(old.asking, new.asking, request.where)
    with ExitStack() as stack:
        return _Diff(request, old, new, domain).report(stack)


class _StoppedError(Exception):
    """One of the planners does not answer.

    Attributes:
        place: where, and why.
    """

    def __init__(self, place: Place) -> None:
        super().__init__(place.what)
        self.place = place


@dataclass(frozen=True)
class _Stopping:
    """A planner that says which of two it is, and where, when it does not answer.

    Attributes:
        subject: what is asked.
        name: "old" or "new".
        target: where it is from.
    """

    subject: Subject
    name: str
    target: Opened

    @property
    def executed(self) -> bool:
        return self.subject.executed

    def in_domain(self, sizes: Sizes) -> bool:
        return self._asked(lambda: self.subject.in_domain(sizes))

    def plans(self, sizes: Sizes, bytes_per_head: int) -> Plans:
        return self._asked(lambda: self.subject.plans(sizes, bytes_per_head))

    def refused(self, sizes: Sizes, bytes_per_head: int) -> bool | None:
        return self._asked(lambda: self.subject.refused(sizes, bytes_per_head))

    def _asked(self, ask: Callable[[], Answered]) -> Answered:
        try:
            return ask()
        except UnsupportedError as error:
            place = self.target.place(error)
            what = f"{place.what}, for the {self.name} planner"
            raise _StoppedError(replace(place, what=what)) from error
        except ExecutionStopped as stop:
            place = self.target.own_line(_execution_stopped(self.name, stop))
            raise _StoppedError(place) from stop


def _execution_stopped(name: str, stop: ExecutionStopped) -> str:
    return f"execution of the {name} planner stopped: {stop}"


@dataclass(frozen=True)
class _Known:
    """What is known of the copies of two planners.

    Attributes:
        verdict: whether they are equal.
        method: how that is known.
        detail: what else is to be said.
    """

    verdict: Equality
    method: Method | None = None
    detail: str = ""


@dataclass
class _Diff:
    """One comparison under way: what is known so far."""

    request: DiffRequest
    old: Opened
    new: Opened
    domain: CommonDomain
    stopped: list[Place] = field(default_factory=list)
    without_effect: set[tuple[str, int, str]] = field(default_factory=set)
    same_at: list[int] = field(default_factory=list)

    def report(self, stack: ExitStack) -> DiffReport:
        if self.request.at is not None:
            self.domain.check(self.request.at)
        lifted, tried = self._lifted()
        running, executed = self._executed(stack)
        subjects, compared = (lifted, tried) if tried is not None else (running, executed)
        differences = self._told(subjects, compared)
        if not self._as_lifted(lifted, tried, running, executed, differences):
            self.stopped.insert(0, self.new.own_line(NOT_AS_LIFTED))
            known = _Known(Equality.NOT_DECIDED, None, NOT_AS_LIFTED)
        elif compared is None:
            known = _Known(Equality.NOT_DECIDED)
        else:
            known = self._known(compared, executed, differences, proving=tried is not None)
        guards = self._guards(compared, proving=tried is not None)
        return self._report(known, differences, compared, guards, executed)

    # What is tried

    def _lifted(self) -> tuple[Subjects | None, Compared | None]:
        for name, target in self._sides():
            if target.contract.executed_only:
                what = f"the contract of the {name} planner asks for execution"
                self.stopped.append(target.own_line(what))
                return None, None
        old, new = (Lifted(target.asking, self.domain.has) for target in (self.old, self.new))
        compared = self._compared((old, new))
        self.without_effect |= old.without_effect | new.without_effect
        return (old, new), compared

    def _executed(self, stack: ExitStack) -> tuple[Subjects | None, Compared | None]:
        if not self.request.execute:
            return None, None
        started = []
        for name, target in self._sides():
            try:
                process = stack.enter_context(
                    Executed(target.located, target.contract, self.request.limits)
                )
            except ExecutionStopped as stop:
                self.stopped.append(target.own_line(_execution_stopped(name, stop)))
                return None, None
            started.append(Running(process, target.contract.unit, self.domain.has))
        subjects = (started[0], started[1])
        return subjects, self._compared(subjects)

    def _sides(self) -> tuple[tuple[str, Opened], tuple[str, Opened]]:
        return ("old", self.old), ("new", self.new)

    def _compared(self, subjects: Subjects) -> Compared | None:
        """Ask both at all small sizes; None, and where it stopped, if one does not answer."""
        (old, new), sides = subjects, self._sides()
        try:
            compared = compare(
                _Stopping(old, *sides[0]), _Stopping(new, *sides[1]), self.request.swept_to
            )
        except _StoppedError as stop:
            self.stopped.append(stop.place)
            return None
        if not compared.answers:
            raise ContractError(
                f"where={self.request.where!r}: no sizes up to {self.request.swept_to} are in the "
                f"domain ({self.domain.in_words}); legal: a domain with sizes"
            )
        return compared

    def _told(self, subjects: Subjects | None, compared: Compared | None) -> tuple[Difference, ...]:
        if subjects is None or compared is None:
            return ()
        wanted: dict[Sizes, str] = {}
        for sizes, why in self._wanted(compared):
            wanted.setdefault(sizes, why)
        if self.request.at is not None:
            wanted.setdefault(self.request.at, "The input that was asked for.")
        found = (self._difference(subjects, sizes, why) for sizes, why in wanted.items())
        return tuple(one for one in found if one is not None)

    def _wanted(self, compared: Compared) -> Iterator[tuple[Sizes, str]]:
        """Yield the smallest sizes that differ, then the smallest of each other kind."""
        sweep = compared.sweep
        for number, (right, sizes) in enumerate(compared.first.items()):
            if number == 0:
                why = (
                    f"Of the {sweep.tried:,} inputs of the domain with H, P and D up to "
                    f"{sweep.maximum}, this is the first at which the planners differ: none has a "
                    "smaller H, with this H none a smaller P, with this P none a smaller D."
                )
            else:
                why = f"The first input of this kind ({right.value})."
            yield sizes, why
        if compared.reaching is not None:
            yield (
                compared.reaching,
                "The first input at which a planner is wrong and its own guard lets that pass.",
            )

    def _difference(self, subjects: Subjects, sizes: Sizes, why: str) -> Difference | None:
        (old, new), sides = subjects, self._sides()
        # A difference that depends on the bytes of a head may show at those of the sweep alone.
        for bytes_per_head in dict.fromkeys((self.request.bytes_per_head, BYTES_PER_HEAD)):
            try:
                found = difference_at(
                    _Stopping(old, *sides[0]), _Stopping(new, *sides[1]), sizes, bytes_per_head, why
                )
            except _StoppedError as stop:
                self.stopped.append(stop.place)
                continue
            if found is not None:
                return found
            if sizes == self.request.at:
                self.same_at.append(bytes_per_head)
        return None

    def _as_lifted(
        self,
        lifted: Subjects | None,
        tried: Compared | None,
        running: Subjects | None,
        executed: Compared | None,
        differences: tuple[Difference, ...],
    ) -> bool:
        """Return whether the targets, if they were run, did what was lifted, told inputs too."""
        if lifted is None or running is None or tried is None or executed is None:
            return True
        if tried.answers != executed.answers:
            return False
        told = {one.sizes: one.bytes_per_head for one in differences}
        if self.request.at is not None and self.same_at:
            told.setdefault(self.request.at, self.same_at[0])
        try:
            return all(
                answers_at(*lifted, *asked) == answers_at(*running, *asked)
                for asked in told.items()
            )
        except ExecutionStopped as stop:
            self.stopped.append(self.new.own_line(f"execution stopped: {stop}"))
            return False

    # What is proved

    def _known(
        self,
        compared: Compared,
        executed: Compared | None,
        differences: tuple[Difference, ...],
        *,
        proving: bool,
    ) -> _Known:
        prove = self._proved_for_all_sizes
        unbounded = self._attempted(prove) if proving else None
        if compared.sweep.differing or differences:
            return _Known(Equality.DIFFERENT, None, _where_equal(unbounded))
        if unbounded is not None and not unbounded.open:
            return _Known(Equality.EQUAL, Method.ALL_SIZES)
        bounded = self._attempted(self._proved_in_range) if proving else None
        if bounded is not None and not bounded.open:
            detail = f"Sizes up to {self.request.range_to} by value, all ranks and byte counts."
            return _Known(Equality.EQUAL, Method.RANGE, f"{detail} {_why_open(unbounded)}".rstrip())
        if executed is not None:
            detail = (
                f"{executed.sweep.tried:,} sizes up to {executed.sweep.maximum}, with "
                f"{executed.sweep.bytes_per_head} bytes per head."
            )
            return _Known(Equality.EQUAL, Method.FINITE, detail)
        tried = f"They differ at none of {compared.sweep.tried:,} sizes up to "
        detail = f"{tried}{compared.sweep.maximum}, and there is no proof."
        return _Known(Equality.NOT_DECIDED, None, f"{detail} {_why_open(unbounded)}".rstrip())

    def _proved_for_all_sizes(self) -> Attempt:
        return prove_same_for_all_sizes(self.old.asking, self.new.asking, self.domain)

    def _proved_in_range(self) -> Attempt:
        range_to = self.request.range_to
        return prove_same_in_range(self.old.asking, self.new.asking, self.domain, range_to)

    def _attempted(self, prove: Callable[[], Attempt]) -> Attempt | None:
        try:
            attempt = prove()
        except UnsupportedError as error:
            self.stopped.append(self.new.place(error))
            return None
        self.without_effect |= attempt.without_effect
        return attempt

    # What the guards refuse

    def _guards(self, compared: Compared | None, *, proving: bool) -> Guards | None:
        old, new = (target.asking.guard is not None for target in (self.old, self.new))
        if not (old or new) or compared is None:
            return None
        alone = "" if old and new else f"Only the {'old' if old else 'new'} target has a guard."
        differing = compared.guards_differ
        if differing:
            return Guards(Equality.DIFFERENT, None, len(differing), differing[0], alone)
        if proving:
            attempt = self._guards_proved()
            if attempt is not None and not attempt.open:
                return Guards(Equality.EQUAL, Method.ALL_SIZES, 0, None, alone)
        return Guards(Equality.NOT_DECIDED, None, 0, None, alone)

    def _guards_proved(self) -> Attempt | None:
        """Try to prove them equal; a guard that cannot be lifted stops nothing else."""
        try:
            return prove_guards_same_for_all_sizes(self.old.asking, self.new.asking, self.domain)
        except UnsupportedError:
            return None

    # What is said

    def _report(
        self,
        known: _Known,
        differences: tuple[Difference, ...],
        compared: Compared | None,
        guards: Guards | None,
        executed: Compared | None,
    ) -> DiffReport:
        verdict, method = self._demanded(known)
        alone = compared is not None and compared.sweep.executed
        return DiffReport(
            old=self.old.source,
            new=self.new.source,
            contract=_used(self.new),
            old_contract=_used(self.old),
            domain=self.domain.in_words,
            verdict=verdict,
            sentence=self._sentence(verdict, known, differences, compared),
            method=method,
            required=self.request.required,
            detail=" ".join(part for part in (known.detail, self._same_at()) if part),
            differences=differences if verdict is Equality.DIFFERENT else (),
            sweep=compared.sweep if compared else None,
            guards=guards,
            stopped_by=tuple(dict.fromkeys(self.stopped)),
            assumptions=self._assumptions(compared, executed),
            solver="execution alone, no solver" if alone else f"z3 {solver_version()}",
            command=self.request.command,
        )

    def _demanded(self, known: _Known) -> tuple[Equality, Method | None]:
        """Return the verdict and the method, none where what is known is less than demanded."""
        required = self.request.required
        if known.method is None or required is None:
            return known.verdict, known.method
        if METHODS.index(known.method) > METHODS.index(required):
            return Equality.NOT_DECIDED, None
        return known.verdict, known.method

    def _sentence(
        self,
        verdict: Equality,
        known: _Known,
        differences: tuple[Difference, ...],
        compared: Compared | None,
    ) -> str:
        if verdict is Equality.DIFFERENT and compared is not None:
            return _differing_said(differences, compared)
        if verdict is Equality.EQUAL and known.method is not None:
            return self._equal_said(known.method, compared)
        if known.method is not None and self.request.required is not None:
            return (
                f"Both planners make the same copies, {known.method.value}. That this is "
                f"{self.request.required.value}, which is demanded, is not decided."
            )
        stopped = next(iter(self.stopped), None)
        why = f": {stopped.file}:{stopped.line} has {stopped.what}" if stopped else ""
        if known.detail == NOT_AS_LIFTED:
            why = f": {NOT_AS_LIFTED}"
        return f"Whether both planners make the same copies is not decided{why}."

    def _equal_said(self, method: Method, compared: Compared | None) -> str:
        said = "Both planners make the same copies"
        if method is Method.ALL_SIZES:
            return f"{said}: {method.value} of the domain."
        if method is Method.RANGE:
            return (
                f"{said} at all sizes of the domain up to {self.request.range_to}: {method.value}."
            )
        bound = compared.sweep.maximum if compared else 0
        return f"{said} at all sizes of the domain up to {bound}: {method.value}."

    def _same_at(self) -> str:
        """Say of the input that was asked for that the planners do not differ there."""
        if self.request.at is None or not self.same_at:
            return ""
        at = "H={}, P={}, D={}".format(*self.request.at)
        said = " and with ".join(f"{number:,}" for number in self.same_at)
        return f"At {at}, with {said} bytes per head, they make the same copies."

    def _assumptions(self, compared: Compared | None, executed: Compared | None) -> tuple[str, ...]:
        if compared is None:
            return ()
        if compared.sweep.executed:
            return (_BLOCKS, _EXECUTED)
        run = _NOT_RUN if executed is None else _COMPARED
        ignored = sorted(self.without_effect)
        lines = (f"{file}:{line}: {what} has no effect." for file, line, what in ignored)
        return (_BLOCKS, _LIFTED, run, *lines)


def _differing_said(differences: tuple[Difference, ...], compared: Compared) -> str:
    sweep, where = compared.sweep, ""
    if compared.first:
        right, at = next(iter(compared.first.items()))
        where = f"at {sweep.differing:,} of {sweep.tried:,} sizes tried, first "
    else:
        right, at = differences[0].right, differences[0].sizes
    return f"The planners differ {where}at {'H={}, P={}, D={}'.format(*at)}: {_THERE[right]}."


def _used(target: Opened) -> ContractUsed:
    contract = target.contract
    outside = contract.outside
    if contract.guard and target.asking.guard is None:
        outside = (*outside, f"The target has no {contract.guard}: no guard is asked.")
    guard = contract.guard if target.asking.guard else None
    return ContractUsed(contract.name, contract.sentence, contract.domain, outside, guard)


def _where_equal(unbounded: Attempt | None) -> str:
    """Say for which orders of sizes they are proved equal, though they differ somewhere."""
    cases = _cases(unbounded)
    if not cases or EVERYWHERE in cases:
        return ""
    return f"They are proved equal for all sizes but those with {' or '.join(cases)}."


def _why_open(unbounded: Attempt | None) -> str:
    """Say what of a proof for all sizes is not done, where something was tried."""
    if unbounded is None:
        return ""
    first = next((one for opened in unbounded.open.values() for one in opened), None)
    if first is None:
        return ""
    case, what = first
    where = "" if case == EVERYWHERE else f"where {case}, "
    return f"Not proved for all sizes: {where}{what}."


def _cases(attempt: Attempt | None) -> list[str]:
    if attempt is None:
        return []
    return list(dict.fromkeys(case for opened in attempt.open.values() for case, _ in opened))


_THERE = {
    WhichIsRight.NEW: "there the old one is wrong and the new one right",
    WhichIsRight.OLD: "there the old one is right and the new one wrong",
    WhichIsRight.BOTH: "there both are right",
    WhichIsRight.NEITHER: "there both are wrong",
}
_BLOCKS = (
    "Which of two plans is right is judged for blocks that are head-major and without padding, "
    "with the same bytes per head on both sides."
)
_LIFTED = "The lifter gives Python its meaning: it is tested against CPython, not proved."
_NOT_RUN = "Nothing of the targets was executed."
_COMPARED = (
    "The targets were run as well, on every small input, and their copies compared with those of "
    "their lifted meaning."
)
_EXECUTED = (
    "The targets answer honestly: a hostile one can send well-formed answers that are made up."
)
