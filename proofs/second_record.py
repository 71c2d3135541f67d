# SPDX-License-Identifier: Apache-2.0
"""The record of what the second solver said: read, counted, and held against what is demanded.

Standard library only, so that the record can be read where no solver is installed.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

Record = dict[str, Any]

RECORD_PATH = Path(__file__).parent / "second_solver.json"

# How many distinct statements may be undecided. Lowered when fewer are; never raised.
UNDECIDED_AT_MOST = {"as_proved": 1, "bounded": 28}
# Of these invariants every obligation as proved has to be confirmed,
ALWAYS_CONFIRMED = (
    "every_consumer_head_is_covered_exactly_once",
    "no_two_writes_overlap",
    "every_written_byte_holds_the_same_head_token_and_position",
)
# and of all obligations as proved this share.
CONFIRMED_SHARE = 0.9


def load(path: Path = RECORD_PATH) -> Record:
    """Return the checked-in record; an empty one where there is none."""
    if not path.exists():
        return {"statements": [], "uncut": {"statements": []}}
    record: Record = json.loads(path.read_text(encoding="utf-8"))
    return record


def write(record: Record, path: Path = RECORD_PATH) -> None:
    """Write a record."""
    path.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8", newline="\n")


def opinions(record: Record) -> dict[str, str]:
    """Return the result of each statement, by the hash of its text."""
    return {row["smt2_sha256"]: row["result"] for row in record["statements"]}


def counts(record: Record, group: str) -> Counter[str]:
    """Return how many distinct statements of "as_proved" or "bounded" have which result."""
    return Counter(row["result"] for row in record["statements"] if row["group"] == group)


def settled_alone(record: Record, solver: str) -> tuple[int, int]:
    """Return how many uncut statements "z3" or "cvc5" settles, and how many there are."""
    rows = record["uncut"]["statements"]
    return sum(row[solver] == "settled" for row in rows), len(rows)


def undecided(record: Record, group: str) -> list[str]:
    """Return the names of the statements of a group that are undecided."""
    return [
        row["name"]
        for row in record["statements"]
        if row["group"] == group and row["result"] == "undecided"
    ]


def complaints(record: Record) -> list[str]:
    """Return, in words, what of a record is a failure."""
    return [*_contradictions(record), *_shortfalls(record)]


def _contradictions(record: Record) -> list[str]:
    found = [
        f"{row['name']}: cvc5 contradicts the proof"
        for row in record["statements"]
        if row["result"] == "contradicted"
    ]
    return found + [
        f"{row['name']}, uncut: {solver} has a counterexample"
        for row in record["uncut"]["statements"]
        for solver in ("z3", "cvc5")
        if row[solver] == "contradicted"
    ]


def _shortfalls(record: Record) -> list[str]:
    found = []
    for group, limit in UNDECIDED_AT_MOST.items():
        results = counts(record, group)
        if not results:
            found.append(f"{group}: nothing was asked")
        if results["undecided"] > limit:
            found.append(f"{group}: {results['undecided']} are undecided; at most {limit} may be")
    proved = counts(record, "as_proved")
    if proved["confirmed"] < CONFIRMED_SHARE * proved.total():
        found.append(
            f"as_proved: {proved['confirmed']} of {proved.total()} are confirmed; "
            f"at least {CONFIRMED_SHARE:.0%} have to be"
        )
    names = [row["name"] for row in record["statements"] if row["group"] == "as_proved"]
    found += [
        f"{invariant}: no obligation as proved was asked"
        for invariant in ALWAYS_CONFIRMED
        if not any(name.startswith(invariant) for name in names)
    ]
    return found + [
        f"{name}: undecided, and has to be confirmed"
        for name in undecided(record, "as_proved")
        if name.startswith(ALWAYS_CONFIRMED)
    ]
