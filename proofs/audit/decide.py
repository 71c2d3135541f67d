# SPDX-License-Identifier: Apache-2.0
"""Audit a planner: try small sizes, prove what does not fail, and say how far it is known."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import cached_property

from kvreshard.proofs.audit.all_sizes import EVERYWHERE, Attempt, prove_for_all_sizes
from kvreshard.proofs.audit.asking import ContractMismatchError
from kvreshard.proofs.audit.contract import ContractError, read_contract
from kvreshard.proofs.audit.domain import AtError, Domain, WhereError
from kvreshard.proofs.audit.execute import Executed, ExecutionStopped, Limits
from kvreshard.proofs.audit.findings import REPLAYED_OTHERWISE, Findings
from kvreshard.proofs.audit.in_range import prove_in_range
from kvreshard.proofs.audit.judging import IN_SCOPE
from kvreshard.proofs.audit.model import (
    AuditReport,
    ContractUsed,
    Finding,
    InvariantResult,
    Method,
    Place,
    Sizes,
    Verdict,
)
from kvreshard.proofs.audit.opening import Opened, opened
from kvreshard.proofs.audit.running import Running
from kvreshard.proofs.audit.sweep import SWEPT_TO, Lifted, Subject, Swept, sweep
from kvreshard.proofs.audit.target import TargetError, locate
from kvreshard.proofs.broken.names import LENGTHS, PEERS
from kvreshard.proofs.judge import BYTES_PER_HEAD
from kvreshard.proofs.lifting.unsupported import UnsupportedError
from kvreshard.proofs.solve import solver_version
from kvreshard.spec.invariants import INVARIANTS

# What is wrong with the question, and not with the planner.
USAGE_ERRORS = (TargetError, ContractError, ContractMismatchError, WhereError, AtError)

# The strongest first.
METHODS = (Method.ALL_SIZES, Method.RANGE, Method.FINITE)
# Sizes that are proved by value where there is no proof for all sizes.
RANGE_TO = 12


@dataclass(frozen=True)
class Request:
    """What the user asks for.

    Attributes:
        target, contract: as on the command line.
        command: the command line, for the report.
        where: narrows the domain; empty for all of it.
        at: H, P and D that a story is wanted of, or None.
        bytes_per_head: of the stories.
        required: the weakest method that counts, or None for any.
        swept_to, range_to: bounds of what is tried and of what is proved by value.
        execute: whether the target may be run.
        limits: what it may use then.
    """

    target: str
    contract: str
    command: str
    where: str = ""
    at: Sizes | None = None
    bytes_per_head: int = 65_536
    required: Method | None = None
    swept_to: int = SWEPT_TO
    range_to: int = RANGE_TO
    execute: bool = False
    limits: Limits = field(default_factory=Limits)


def audit(request: Request) -> AuditReport:
    """Audit a planner.

    Raises:
        TargetError: there is no such target.
        ContractError, ContractMismatchError, WhereError: the contract or the domain is not right.
        AtError: `at` is not legal, or not in the domain.
    """
    target = opened(locate(request.target), read_contract(request.contract))
    audited = _Audit(request, target, Domain.of(target.asking, request.where))
    with ExitStack() as stack:
        return audited.report(stack)


@dataclass
class _Audit:
    """One audit under way: what is known so far."""

    request: Request
    target: Opened
    domain: Domain
    stopped: list[Place] = field(default_factory=list)
    disagreement: str = ""
    without_effect: set[tuple[str, int, str]] = field(default_factory=set)

    def report(self, stack: ExitStack) -> AuditReport:
        subject, swept = self._lifted()
        running = self._running(stack)
        executed = self._executed(running)
        if swept is None:
            subject, swept = running, executed
        findings = self._findings(subject, swept, running, executed)
        self._compare(swept, executed, findings)
        if swept is not None:
            for finding in findings:
                for name in (finding.story.invariant, *finding.story.also_violated):
                    swept.by_invariant[name] = max(swept.by_invariant[name], 1)
        results = self._results(swept, executed, subject)
        return self._report(results, findings, swept, subject, executed)

    def _compare(
        self, swept: Swept | None, executed: Swept | None, findings: tuple[Finding, ...]
    ) -> None:
        """Take nothing for known where the target, when it is run, is not what was lifted."""
        if swept is None or executed is None:
            return
        otherwise = any(finding.replayed == REPLAYED_OTHERWISE for finding in findings)
        if otherwise or swept.answers != executed.answers:
            self.disagreement = "the target, when it is run, does not do what was lifted"
            self.stopped.insert(0, self.target.own_line(self.disagreement))

    # What is tried

    def _lifted(self) -> tuple[Subject | None, Swept | None]:
        if self.target.contract.executed_only:
            where = self.target.own_line("the contract asks for execution")
            self.stopped.append(where)
            return None, None
        lifted = Lifted(self.target.asking, self.domain.has)
        try:
            return lifted, sweep(lifted, self.request.swept_to)
        except UnsupportedError as error:
            self.stopped.append(self.target.place(error))
            return None, None

    def _running(self, stack: ExitStack) -> Running | None:
        if not self.request.execute:
            return None
        try:
            process = stack.enter_context(
                Executed(self.target.located, self.target.contract, self.request.limits)
            )
        except ExecutionStopped as stop:
            self.stopped.append(self.target.own_line(f"execution stopped: {stop}"))
            return None
        return Running(process, self.target.contract.unit, self.domain.has)

    def _executed(self, running: Running | None) -> Swept | None:
        if running is None:
            return None
        try:
            return sweep(running, self.request.swept_to)
        except UnsupportedError as error:
            # The contract's domain is lifted even where its target is run.
            self.stopped.append(self.target.place(error))
            return None
        except ExecutionStopped as stop:
            self.stopped.append(self.target.own_line(f"execution stopped: {stop}"))
            return None

    def _findings(
        self,
        subject: Subject | None,
        swept: Swept | None,
        running: Running | None,
        executed: Swept | None,
    ) -> tuple[Finding, ...]:
        if subject is None or swept is None:
            return ()
        findings = Findings(
            subject=subject,
            swept=swept,
            asking=None if subject.executed else self.target.asking,
            replay=running if executed is not None else None,
            domain=self.domain,
            file=self.target.located.shown,
            function=self.target.located.function,
            command=self.request.command,
        )
        return findings.told(self.request.at, self.request.bytes_per_head)

    # What is proved

    def _results(
        self, swept: Swept | None, executed: Swept | None, subject: Subject | None
    ) -> tuple[InvariantResult, ...]:
        if swept is None or subject is None:
            return tuple(_result(name, Verdict.NOT_DECIDED) for name in IN_SCOPE)
        if not swept.sweep.tried:
            raise ContractError(
                f"where={self.request.where!r}: no sizes up to {self.request.swept_to} are in the "
                f"domain ({self.domain.in_words}); legal: a domain with sizes"
            )
        unbounded = None if subject.executed else self._proved_for_all_sizes()
        if unbounded is not None:
            self.without_effect |= unbounded.without_effect
        lifted = not subject.executed
        return tuple(self._of_one(name, swept, executed, unbounded, lifted) for name in IN_SCOPE)

    def _proved_for_all_sizes(self) -> Attempt | None:
        try:
            return prove_for_all_sizes(self.target.asking, self.domain)
        except UnsupportedError as error:
            self.stopped.append(self.target.place(error))
            return None

    def _of_one(
        self,
        name: str,
        swept: Swept,
        executed: Swept | None,
        unbounded: Attempt | None,
        lifted: bool,
    ) -> InvariantResult:
        if self.disagreement:
            return _result(name, Verdict.NOT_DECIDED, None, self.disagreement)
        failing = swept.by_invariant[name]
        if failing:
            return _result(name, Verdict.FAILS, None, _where_it_fails(name, unbounded), failing)
        if unbounded is not None and name not in unbounded.open:
            return _result(name, Verdict.HOLDS, Method.ALL_SIZES)
        if lifted and self._bounded is not None and name not in self._bounded.open:
            detail = f"sizes up to {self.request.range_to} by value, all ranks and byte counts"
            return _result(name, Verdict.HOLDS, Method.RANGE, detail)
        if executed is not None and not executed.by_invariant[name]:
            detail = (
                f"{executed.sweep.tried:,} sizes up to {executed.sweep.maximum}, with "
                f"{BYTES_PER_HEAD} bytes per head"
            )
            return _result(name, Verdict.HOLDS, Method.FINITE, detail)
        return _result(name, Verdict.NOT_DECIDED, None, self._why_open(name, swept, unbounded))

    @cached_property
    def _bounded(self) -> Attempt | None:
        """The proof in a range, which is tried once, and only if it is wanted."""
        try:
            return prove_in_range(self.target.asking, self.domain, self.request.range_to)
        except UnsupportedError as error:
            self.stopped.append(self.target.place(error))
            return None

    def _why_open(self, name: str, swept: Swept, unbounded: Attempt | None) -> str:
        tried = f"none of {swept.sweep.tried:,} sizes up to {swept.sweep.maximum} breaks it"
        if unbounded is None or name not in unbounded.open:
            return f"{tried}, and there is no proof"
        case, what = unbounded.open[name][0]
        return f"{tried}, and there is no proof: {_of_case(case)}{what}"

    # What is said

    def _report(
        self,
        results: tuple[InvariantResult, ...],
        findings: tuple[Finding, ...],
        swept: Swept | None,
        subject: Subject | None,
        executed: Swept | None,
    ) -> AuditReport:
        verdict, method = _verdict(results, self.request.required)
        alone = subject is not None and subject.executed
        return AuditReport(
            source=self.target.source,
            contract=ContractUsed(
                self.target.contract.name,
                self.target.contract.sentence,
                self.domain.in_words,
                self._outside(),
                self.target.contract.guard if self.target.asking.guard else None,
            ),
            verdict=verdict,
            sentence=self._sentence(verdict, method, results, findings),
            method=method,
            required=self.request.required,
            invariants=results,
            out_of_scope=_OUT_OF_SCOPE,
            findings=findings if verdict is Verdict.FAILS else (),
            sweep=swept.sweep if swept else None,
            stopped_by=tuple(dict.fromkeys(self.stopped)),
            assumptions=self._assumptions(subject, executed),
            solver="execution alone, no solver" if alone else f"z3 {solver_version()}",
            command=self.request.command,
        )

    def _outside(self) -> tuple[str, ...]:
        if self.target.contract.guard and self.target.asking.guard is None:
            missing = f"The target has no {self.target.contract.guard}: no guard is asked."
            return (*self.target.contract.outside, missing)
        return self.target.contract.outside

    def _sentence(
        self,
        verdict: Verdict,
        method: Method | None,
        results: tuple[InvariantResult, ...],
        findings: tuple[Finding, ...],
    ) -> str:
        if verdict is Verdict.FAILS:
            return findings[0].story.verdict
        name = self.target.located.function
        if verdict is Verdict.HOLDS and method is not None:
            return f"{name} puts every head where it belongs, once: {_KNOWN_BY[method]}."
        weaker = {r.method for r in results if r.verdict is Verdict.HOLDS and r.method}
        if self.request.required and len(weaker) and all(r.method for r in results):
            reached = max(weaker, key=METHODS.index)
            return (
                f"{name} is {reached.value}. That it is {self.request.required.value}, which is "
                "demanded, is not decided."
            )
        if self.stopped:
            first = self.stopped[0]
            return (
                f"Whether {name} puts every head where it belongs is not decided: "
                f"{first.file}:{first.line} has {first.what}."
            )
        return f"Whether {name} puts every head where it belongs is not decided."

    def _assumptions(self, subject: Subject | None, executed: Swept | None) -> tuple[str, ...]:
        said = [_BLOCKS]
        if isinstance(subject, Lifted):
            said.append(_LIFTED)
            said.append(_NOT_RUN if executed is None else _COMPARED)
            ignored = sorted(subject.without_effect | self.without_effect)
            said += [f"{file}:{line}: {what} has no effect." for file, line, what in ignored]
        elif subject is not None:
            said.append(_EXECUTED)
        return tuple(said)


_BLOCKS = (
    "A rank's block is head-major and without padding: its heads follow one another, and each has "
    "the same number of bytes on both sides."
)
_LIFTED = "The lifter gives Python its meaning: it is tested against CPython, not proved."
_NOT_RUN = "Nothing of the target was executed."
_COMPARED = (
    "The target was run as well, on every small input, and its copies compared with those of its "
    "lifted meaning."
)
_EXECUTED = (
    "The target answers honestly: a hostile one can send well-formed answers that are made up."
)

_KNOWN_BY = {
    Method.ALL_SIZES: "proved for all sizes of its domain",
    Method.RANGE: "proved in a range of its domain",
    Method.FINITE: "checked exhaustively on a finite part of its domain",
}

_OUT_OF_SCOPE = (
    (PEERS, "A contract says who meets, not whom a rank waits for."),
    ("replicas_share_the_load_evenly", "It is a property of the policy, not of one plan."),
    (LENGTHS, "A guard is asked with lengths that are right, and not with others."),
)


def _result(
    name: str, verdict: Verdict, method: Method | None = None, detail: str = "", failing: int = 0
) -> InvariantResult:
    return InvariantResult(name, INVARIANTS[name].sentence, verdict, method, detail, failing)


def _of_case(case: str) -> str:
    return "" if case == EVERYWHERE else f"where {case}, "


def _where_it_fails(name: str, unbounded: Attempt | None) -> str:
    """Say in which orders of sizes there is no proof, if there is one in all others."""
    cases = (
        [] if unbounded is None else list(dict.fromkeys(c for c, _ in unbounded.open.get(name, ())))
    )
    if not cases or EVERYWHERE in cases:
        return ""
    return f"it is proved for all sizes but those with {' or '.join(cases)}"


def _verdict(
    results: tuple[InvariantResult, ...], required: Method | None
) -> tuple[Verdict, Method | None]:
    verdicts = {result.verdict for result in results}
    if Verdict.FAILS in verdicts:
        return Verdict.FAILS, None
    if Verdict.NOT_DECIDED in verdicts:
        return Verdict.NOT_DECIDED, None
    methods = [result.method for result in results if result.method]
    weakest = max(methods, key=METHODS.index)
    if required is not None and METHODS.index(weakest) > METHODS.index(required):
        return Verdict.NOT_DECIDED, None
    return Verdict.HOLDS, weakest
