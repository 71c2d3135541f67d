# SPDX-License-Identifier: Apache-2.0
"""What a person reads after a proof run: the funnel, the invariants, and what failed."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from rich.table import Table

from kvreshard.proofs.counterexample import SEARCHED_TO, Counterexample
from kvreshard.proofs.question import text_hash
from kvreshard.proofs.story.tell import tell
from kvreshard.spec.election import POLICIES
from kvreshard.spec.invariants import INVARIANTS, NOT_YET_STATED
from kvreshard.spec.regimes import IMPOSSIBLE_REGIMES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console

    from kvreshard.proofs.run import Verdict


def print_invariants(console: Console, verdicts: Sequence[Verdict]) -> None:
    """Print, for each invariant, how many of its obligations are proved in each scope."""
    table = Table(box=None, pad_edge=False)
    table.add_column("invariant")
    table.add_column("unbounded", justify="right")
    table.add_column("bounded", justify="right")
    for name in INVARIANTS:
        rows = [verdict for verdict in verdicts if verdict.obligation.invariant == name]
        if rows:
            table.add_row(name, _share(rows, "unbounded"), _share(rows, "bounded"))
    if table.row_count:
        console.print(table)


def print_funnel(console: Console, declared: int, verdicts: Sequence[Verdict]) -> None:
    """Print exclusions first, then how many obligations got how far."""
    console.print("excluded", style="bold")
    for regime in IMPOSSIBLE_REGIMES:
        console.print(f"  regime {regime.name}: cannot occur, which is proved")
    for policy in POLICIES:
        if policy.needs_divisible_pair:
            console.print(f"  election {policy.name}: where no TP size divides the other")
    for name in NOT_YET_STATED:
        console.print(f"  invariant {name}: not stated yet")
    console.print("funnel", style="bold")
    statements = len({text_hash(verdict.obligation) for verdict in verdicts})
    steps = [
        ("declared", declared),
        ("in scope", len(verdicts)),
        ("non-vacuous", sum(verdict.result != "vacuous" for verdict in verdicts)),
        ("proved unbounded", _count(verdicts, "proved", "unbounded")),
        ("proved bounded", _count(verdicts, "proved", "bounded")),
        ("scenarios satisfied", sum(verdict.result == "satisfied" for verdict in verdicts)),
        ("refuted or vacuous", sum(v.result in {"refuted", "vacuous"} for v in verdicts)),
        ("unknown", sum(verdict.result == "unknown" for verdict in verdicts)),
        ("distinct statements", statements),
    ]
    for label, count in steps:
        console.print(f"  {label:<20}{count:>5}")


def print_second_solver(console: Console, ledger: dict[str, Any]) -> None:
    """Print how many distinct statements the second solver confirmed, as recorded."""
    console.print("second solver, as recorded", style="bold")
    for group, results in ledger["summary"]["second_solver"].items():
        told = ", ".join(f"{count} {result.replace('_', ' ')}" for result, count in results.items())
        console.print(f"  {group.replace('_', ' '):<20}{told or 'nothing'}")


def print_failures(console: Console, verdicts: Sequence[Verdict]) -> None:
    """Print what is not shown: by sentence, each obligation with its result and reason.

    What is unproved only for want of a lemma is counted, not listed.
    """
    failed = [verdict for verdict in verdicts if not verdict.holds]
    own = [verdict for verdict in failed if not verdict.rests_on]
    for sentence in dict.fromkeys(verdict.obligation.sentence for verdict in own):
        console.print(f"not shown: {sentence}", style="bold red")
        for verdict in own:
            if verdict.obligation.sentence == sentence:
                console.print(f"  {verdict.result} ({verdict.reason}): {verdict.obligation.name}")
    for name, count in Counter(verdict.rests_on for verdict in failed if verdict.rests_on).items():
        console.print(f"not shown: {count} obligations that rest on lemma {name}", style="bold red")
    broken = {v.obligation.invariant for v in failed if v.obligation.invariant}
    if broken:
        console.print(f"invariants not shown: {', '.join(sorted(broken))}", style="bold red")


def print_counterexamples(console: Console, found: Sequence[Counterexample]) -> None:
    """Print the smallest failing input of each invariant, or that there is none that small."""
    if not found:
        console.print(
            f"no counterexample with H, P, D up to {SEARCHED_TO}: the formulas may be right and "
            "the proof not, or they fail only for larger sizes"
        )
    for counterexample in found:
        console.print()
        console.print(tell(counterexample))


def _count(verdicts: Sequence[Verdict], result: str, scope: str) -> int:
    wanted = Counter((verdict.result, verdict.obligation.scope) for verdict in verdicts)
    return wanted[result, scope]


def _share(verdicts: Sequence[Verdict], scope: str) -> str:
    rows = [verdict for verdict in verdicts if verdict.obligation.scope == scope]
    return f"{sum(verdict.holds for verdict in rows)} of {len(rows)}" if rows else "-"
