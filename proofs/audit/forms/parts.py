# SPDX-License-Identifier: Apache-2.0
"""The sentences and rows of an audit that its forms share: what was audited, how, what came of it.

They take reports whose texts are visible; escaping is left to the form.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kvreshard.proofs.audit.model import Reach, Verdict
from kvreshard.proofs.story.words import counted

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from kvreshard.proofs.audit.model import (
        AuditReport,
        ContractUsed,
        Finding,
        InvariantResult,
        Part,
        Place,
        Source,
        Sweep,
    )


@dataclass(frozen=True)
class Row:
    """One thing that is said of an audit.

    Attributes:
        label: what it is.
        said: the value, an entry each.
        code: whether the entries are names, paths or hashes, and not prose.
    """

    label: str
    said: tuple[str, ...]
    code: bool = False


def title(report: AuditReport) -> str:
    """Name the audited function."""
    return f"audit of {report.source.function.name}"


def word(verdict: Verdict) -> str:
    """Return a verdict as it is shown where it has to be seen without colour."""
    said: str = verdict.value
    return said if verdict is Verdict.HOLDS else said.upper()


def method_said(report: AuditReport) -> str:
    """Say by which method the verdict was reached, in a few words."""
    if report.method:
        return report.method.value
    return "a counterexample" if report.verdict is Verdict.FAILS else "none decided it"


def stopped_title(report: AuditReport) -> str:
    """Say what the constructs stopped: the audit, or only a proof."""
    undecided = report.verdict is Verdict.NOT_DECIDED
    return "What stopped it" if undecided else "What stopped a proof"


def required_said(report: AuditReport) -> str:
    """Say what the user demanded, or nothing."""
    return f"Demanded: {report.required.value}, or better." if report.required else ""


def lines_said(part: Part) -> str:
    """Say which lines of its file a part has."""
    if part.first_line == part.last_line:
        return f"line {part.first_line}"
    return f"lines {part.first_line} to {part.last_line}"


def audited_rows(report: AuditReport) -> tuple[Row, ...]:
    """Return what was audited: by name, place and hash."""
    return source_rows(report.source)


def source_rows(source: Source) -> tuple[Row, ...]:
    """Return a source by name, place and hash."""
    function = f"{source.function.name}, {lines_said(source.function)}"
    needs = tuple(f"{part.name}, {lines_said(part)}" for part in source.needs)
    return (
        Row("Target", (source.target,), code=True),
        Row("From", (source.origin,)),
        Row("File", (source.file,), code=True),
        Row("SHA-256", (source.sha256,), code=True),
        Row("Function", (function,), code=True),
        Row("It needs", needs, code=True) if needs else Row("It needs", ("nothing else",)),
    )


def contract_rows(report: AuditReport) -> tuple[Row, ...]:
    """Return how the planner was called, and what was not asked."""
    return contract_used_rows(report.contract)


def contract_used_rows(contract: ContractUsed) -> tuple[Row, ...]:
    """Return how a planner is called, and what is not asked."""
    guard = Row("Guard", (contract.guard,), code=True) if contract.guard else _NO_GUARD
    return (
        Row("Contract", (contract.name,), code=True),
        Row("It is for", (contract.sentence,)),
        Row("Domain", (contract.domain,)),
        Row("Outside", contract.outside or ("nothing",)),
        guard,
    )


_NO_GUARD = Row("Guard", ("none: nothing is asked before a plan is carried out",))


def how_said(result: InvariantResult) -> str:
    """Say how an invariant was decided, or what is known where it was not."""
    said = [result.method.value] if result.method else []
    if result.failing:
        said.append(f"broken by {result.failing:,} of the sizes tried")
    if result.detail:
        said.append(result.detail)
    return "; ".join(said) or ("see the counterexample" if _fails(result) else "no reason given")


def _fails(result: InvariantResult) -> bool:
    return result.verdict is Verdict.FAILS


def counts_said(report: AuditReport) -> str:
    """Say of how many invariants what is known, as in `1 fails, 5 hold, 2 out of scope`."""
    said = verdicts_said(result.verdict for result in report.invariants)
    left_out = len(report.out_of_scope)
    return f"{said}, {left_out} out of scope" if left_out else said


def verdicts_said(verdicts: Iterable[Verdict]) -> str:
    """Count verdicts, the worst first, as in `1 fails, 5 hold`."""
    counts = Counter(verdicts)
    return ", ".join(
        f"{counts[verdict]} {one if counts[verdict] == 1 else many}"
        for verdict, (one, many) in _COUNTED.items()
        if counts[verdict]
    )


_COUNTED = {
    Verdict.FAILS: ("fails", "fail"),
    Verdict.NOT_DECIDED: ("is not decided", "are not decided"),
    Verdict.HOLDS: ("holds", "hold"),
}


def place_said(place: Place) -> str:
    """Return a place as editors and terminals follow it."""
    return f"{place.file}:{place.line}"


def finding_title(report: AuditReport, finding: Finding) -> str:
    """Return the input of a counterexample, with its number where there are several."""
    of = len(report.findings)
    number = f" {report.findings.index(finding) + 1} of {of}" if of > 1 else ""
    return f"Counterexample{number}: {sizes_said(finding)}"


def sizes_said(finding: Finding) -> str:
    """Return the sizes of a counterexample in few letters."""
    return "H={}, P={}, D={}".format(*finding.story.sizes)


def paste_title(finding: Finding) -> str:
    """Say what the test is for."""
    return f"A test to paste, for {sizes_said(finding)}"


FILL_IN = "Put a call of your planner in place of each raise."


def branch_title(report: AuditReport) -> str:
    """Say which source the lines are of; the whole hash is in the rows of what was audited."""
    return f"What the source did, in order (SHA-256 {report.source.sha256[:12]}...)"


def reach_said(report: AuditReport, finding: Finding) -> str:
    """Say how far the wrong plan gets."""
    if finding.reach is None:
        return "The contract has no guard: nothing refuses this input before it is sent."
    guard = report.contract.guard or "the guard"
    if finding.reach is Reach.REFUSED:
        return f"{_capital(finding.reach.value)}: {guard} turns this input away."
    return f"{_capital(finding.reach.value)}: {guard} lets this input pass."


def smallest_said(finding: Finding) -> str:
    """Say what is known of smaller inputs."""
    return finding.smallest or finding.story.why_this_input or "Smaller inputs were not looked at."


def sweep_sentences(report: AuditReport) -> Iterator[str]:
    """Yield what came of trying the small sizes one by one."""
    sweep = report.sweep
    if sweep is None:
        yield "No sizes were tried one by one."
        return
    yield (
        f"All {counted(sweep.tried, 'input')} of the domain with H, P and D up to "
        f"{sweep.maximum} were tried."
    )
    yield _failing_said(sweep, guarded=report.contract.guard is not None)
    if report.contract.guard:
        yield f"Of the right ones the guard turns away {sweep.turned_away:,}."
    yield (
        "The target itself was run on them."
        if sweep.executed
        else "Its lifted meaning was evaluated on them."
    )


def _failing_said(sweep: Sweep, *, guarded: bool) -> str:
    if not sweep.failing:
        return "None of them breaks an invariant in scope."
    broken = f"{sweep.failing:,} of them break{'s' * (sweep.failing == 1)} an invariant in scope"
    if not guarded:
        return f"{broken}."
    return (
        f"{broken}: {sweep.refused:,} refused before sending, {sweep.reaching:,} reaching the "
        "engine."
    )


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def finding_for(report: AuditReport, result: InvariantResult) -> Finding | None:
    """Return the first counterexample that breaks an invariant, if there is one."""
    for finding in report.findings:
        if result.name in (finding.story.invariant, *finding.story.also_violated):
            return finding
    return None
