# SPDX-License-Identifier: Apache-2.0
"""Put every fault to every check, and keep what each says apart from what it takes.

What a check says is the same on every machine. What it takes is in seconds of the processor, so
that other work on the machine does not count.
"""

from __future__ import annotations

import time
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass, field
from statistics import median
from typing import TYPE_CHECKING, Any

from detection import beyond, emitted, enumeration, gate, peers, solver, vectorised
from detection import engine as engines
from kvreshard.codegen.validate import validate_translation
from kvreshard.proofs.broken import BROKEN
from kvreshard.proofs.counterexample import specified_layout
from kvreshard.proofs.judge import judge_layout
from kvreshard.proofs.mutation.examine import examine
from kvreshard.spec.election import POLICIES
from kvreshard.spec.formula import FORMULAS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from kvreshard.proofs.broken import BrokenPlanner
    from kvreshard.proofs.judge import Subject
    from kvreshard.proofs.mutation.mutants import Mutant

Row = dict[str, Any]
Sizes = tuple[int, int, int]

LAYOUT = "every_written_byte_holds_the_same_head_token_and_position"
# Plain Python looks this far for a mutant's first failure; arrays look for what is left.
# Beyond `ALL_ELECTIONS_TO` they do so with the default election alone.
PLAIN_TO, ALL_ELECTIONS_TO, ARRAYS_TO = 8, 32, 64
# The gate is asked at the sizes up to this that the planner fails at, the smallest first.
GATE_TO, GATE_SIZES = 6, 10
# Every so many mutants the bounded question is put anew, to see what it takes.
TIMED_EVERY = 20


@dataclass
class Clock:
    """Seconds of the processor, by check."""

    spent: dict[str, list[float]] = field(default_factory=dict)

    @contextmanager
    def __call__(self, check: str) -> Iterator[None]:
        """Count what happens inside as spent on a check."""
        started = time.process_time()
        yield
        self.spent.setdefault(check, []).append(time.process_time() - started)

    def summary(self) -> Row:
        """Return the median, the largest and the number of the times of each check."""
        return {
            check: {
                "median": round(median(times), 4),
                "largest": round(max(times), 4),
                "times": len(times),
            }
            for check, times in sorted(self.spent.items())
        }


def always(*_: int) -> bool:
    """Accept all sizes."""
    return True


# Broken planners.


def planner_row(planner: BrokenPlanner, clock: Clock) -> Row:
    """Return what each check says about a broken planner."""
    subjects = {"lowest": planner.subject}
    row: Row = {"seen_in": list(planner.seen_in)}
    with clock("peers"):
        row["peers"] = caught_by_peers(subjects, planner.in_domain)
    with clock("enumeration"):
        sizes = enumeration.up_to(PLAIN_TO)
        found = enumeration.first_failure(subjects, sizes, planner.in_domain)
    row |= _failure(found, PLAIN_TO)
    row["gate"] = _gates(subjects, planner.in_domain, clock, len(list(enumeration.up_to(GATE_TO))))
    return row


def caught_by_peers(
    subjects: Mapping[str, Subject], in_domain: Callable[[int, int, int], bool] = always
) -> list[str]:
    """Return the projects with a test at a size that the planner fails at."""
    return list(
        dict.fromkeys(
            tests.project
            for tests in peers.PEERS
            if enumeration.first_failure(subjects, tests.points, in_domain)
        )
    )


def _failure(found: tuple[Sizes, tuple[str, ...]] | None, passes_to: int) -> Row:
    if found is None:
        return {"first_failure": None, "passes_to": passes_to}
    sizes, violated = found
    return {"first_failure": list(sizes), "violates": list(violated)}


def _gates(
    subjects: Mapping[str, Subject],
    in_domain: Callable[[int, int, int], bool],
    clock: Clock,
    most: int,
) -> Row:
    """Return how many transfers end how, at sizes that the planner fails at."""
    failing: list[tuple[Sizes, Subject]] = []
    for sizes in enumeration.up_to(GATE_TO):
        if len(failing) < most and in_domain(*sizes):
            failing += _failing_subject(subjects, sizes)
    asked: dict[str, tuple[str, bool]] = {
        "both_sides": (gate.BOTH, False),
        "producers_only": (gate.PRODUCERS, False),
        "both_sides_with_digests": (gate.BOTH, True),
    }
    counts: Row = {}
    for name, (where, compare) in asked.items():
        outcomes: Counter[str] = Counter()
        for sizes, subject in failing:
            with clock("content" if compare else "gate"):
                outcomes[gate.run(gate.Case(sizes, compare), subject, where)] += 1
        counts[name] = dict(sorted(outcomes.items()))
    return counts


def _failing_subject(subjects: Mapping[str, Subject], sizes: Sizes) -> list[tuple[Sizes, Subject]]:
    """Return the planner with the first election with which it fails, if there is one."""
    for election, subject in subjects.items():
        if enumeration.violated({election: subject}, sizes):
            return [(sizes, subject)]
    return []


def planners(clock: Clock) -> dict[str, Row]:
    """Return the rows of all broken planners."""
    return {name: planner_row(planner, clock) for name, planner in BROKEN.items()}


# Mutants.


def mutant_row(mutant: Mutant, clock: Clock) -> Row:
    """Return what each check says about a mutant, but for what the kill matrix says."""
    row: Row = {"formula": mutant.formula}
    speaking = solver.unbounded(mutant.formula)
    with clock("unbounded"), mutant.applied():
        failed = solver.first_failure(speaking)
        if failed is None:
            failed = solver.first_failure(solver.restated(mutant.formula))
    row["unbounded"] = None if failed is None else [failed.obligation, failed.result]
    if emitted.is_emitted(mutant.formula):
        return row | _emitted(mutant, clock)
    with clock("enumeration"), mutant.applied():
        row["layout_is_judged_wrong"] = _layout_is_wrong()
    return row


def _layout_is_wrong() -> bool:
    """Whether the layout's formulas, as they stand, place a byte wrongly or divide by zero."""
    try:
        return next(judge_layout(specified_layout()), None) is not None
    except ZeroDivisionError:
        return True


def _emitted(mutant: Mutant, clock: Clock) -> Row:
    """Return what the checks say that need the mutant as Python."""
    text = emitted.with_mutant(mutant, FORMULAS[mutant.formula])
    row: Row = {}
    with clock("translation"):
        verdicts = validate_translation(text)
    row["translation"] = next((one.verdict for one in verdicts if not one.ok), "proved")
    subjects = emitted.subjects_of(emitted.load(text))
    with clock("peers"):
        row["peers"] = caught_by_peers(subjects)
    with clock("enumeration"):
        found = enumeration.first_failure(subjects, enumeration.up_to(PLAIN_TO))
    if found is None:
        found = _found_by_arrays(mutant, subjects)
    row |= _failure(found, ARRAYS_TO)
    if found is not None:
        row["gate"] = _gates(subjects, always, clock, GATE_SIZES)
    return row


def _found_by_arrays(
    mutant: Mutant, subjects: Mapping[str, Subject]
) -> tuple[Sizes, tuple[str, ...]] | None:
    """Look on with arrays; plain Python has the last word."""
    module = vectorised.formulas_as_arrays(mutant)
    ranges = ((PLAIN_TO, ALL_ELECTIONS_TO, POLICIES), (ALL_ELECTIONS_TO, ARRAYS_TO, POLICIES[:1]))
    for low, high, policies in ranges:
        later = (sizes for sizes in enumeration.up_to(high) if max(sizes) > low)
        suspects = vectorised.suspects(module, later, policies)
        found = enumeration.first_failure(subjects, suspects)
        if found is not None:
            return found
    return None


def mutants(
    chosen: Iterable[Mutant], clock: Clock, tell: Callable[[str], None] = lambda _: None
) -> dict[str, Row]:
    """Return the rows of mutants.

    Args:
        chosen: the mutants.
        clock: counts what it takes.
        tell: told the name of each mutant before it is measured.
    """
    rows = {}
    for number, mutant in enumerate(chosen):
        tell(mutant.name)
        rows[mutant.name] = mutant_row(mutant, clock)
        if number % TIMED_EVERY == 0:
            with clock("bounded"):
                examine(mutant)
    return rows


# Faults that show late, and those outside the planner.


def late_row(fault: beyond.LateFault, clock: Clock) -> Row:
    """Return what each check says about a fault that shows late."""
    mutant = fault.mutant
    text = emitted.with_mutant(mutant, FORMULAS[mutant.formula])
    subjects = emitted.subjects_of(emitted.load(text))
    row: Row = {"formula": mutant.formula, "fails_at": fault.fails_at}
    row["peers"] = caught_by_peers(subjects)
    row["same_formula_up_to"] = beyond.unchanged_up_to(fault)
    row["first_failure"] = _first_late_failure(fault, subjects, clock)
    row["replayed"] = beyond.replayed(fault)
    speaking = solver.unbounded(mutant.formula)
    with clock("unbounded"), mutant.applied():
        failed = solver.first_failure(speaking)
    row["unbounded"] = None if failed is None else [failed.obligation, failed.result]
    with clock("translation"):
        verdicts = validate_translation(text)
    row["translation"] = next((one.verdict for one in verdicts if not one.ok), "proved")
    if row["first_failure"]:
        sizes = tuple(row["first_failure"])
        row["gate"] = {
            "both_sides": gate.run(gate.Case(sizes), subjects["lowest"]),
            "producers_only": gate.run(gate.Case(sizes), subjects["lowest"], gate.PRODUCERS),
            "both_sides_with_digests": gate.run(gate.Case(sizes, True), subjects["lowest"]),
        }
    return row


def _first_late_failure(
    fault: beyond.LateFault, subjects: Mapping[str, Subject], clock: Clock
) -> list[int] | None:
    """Return the first sizes at which judging every pair of ranks finds the fault.

    None where that takes too long: such a fault is replayed at one pair instead.
    """
    if fault.fails_at > 4 * ARRAYS_TO + 1:
        return None
    with clock("enumeration"):
        if fault.fails_at <= ARRAYS_TO + 1:
            module = vectorised.formulas_as_arrays(fault.mutant)
            suspects = vectorised.suspects(module, enumeration.up_to(fault.fails_at))
            found = enumeration.first_failure(subjects, suspects)
        else:
            # With fewer heads nothing is changed.
            found = enumeration.first_failure(subjects, ((fault.fails_at, 1, 1),))
    return None if found is None else list(found[0])


def late(clock: Clock) -> dict[str, Row]:
    """Return the rows of the faults that show late."""
    return {fault.name: late_row(fault, clock) for fault in beyond.FAULTS}


def engine() -> dict[str, Row]:
    """Return what the gate and the digests say about faults outside the planner."""
    return {
        fault.name: {
            "gate": gate.run(fault.case(False)),
            "with_digests": gate.run(fault.case(True)),
        }
        for fault in engines.FAULTS
    }


# The right planner.


def clean_passes(clock: Clock) -> None:
    """Let every check pass the right planner, so that its cost is known.

    Raises:
        RuntimeError: a check does not pass it.
    """
    subjects = emitted.subjects_of(emitted.load(emitted.TEXT))
    with clock("peers"):
        _demand("peers", not caught_by_peers(subjects))
    with clock("plain Python to 16"):
        found = enumeration.first_failure(subjects, enumeration.up_to(16))
    _demand("enumeration to 16", found is None)
    for bound in (16, 64):
        with clock(f"arrays to {bound}"):
            suspects = vectorised.suspects(
                vectorised.formulas_as_arrays(), enumeration.up_to(bound)
            )
            suspect = next(suspects, None)
        _demand(f"arrays to {bound}", suspect is None)
    every = solver.unbounded()
    with clock("unbounded"):
        failed = solver.first_failure(every)
    _demand("unbounded", failed is None)
    items = [item for item in every if item.invariant == LAYOUT]
    with clock("layout"):
        failed = solver.first_failure(items)
    _demand("layout", bool(items) and failed is None)
    with clock("translation"):
        verdicts = validate_translation(emitted.TEXT)
    _demand("translation", all(one.ok for one in verdicts))
    for compare in (False, True):
        with clock("content" if compare else "gate"):
            outcome = gate.run(gate.Case((4, 8, 1), compare))
        _demand("gate", outcome == gate.RIGHT)


def _demand(check: str, passed: bool) -> None:
    if not passed:
        raise RuntimeError(f"{check} does not pass the right planner")
