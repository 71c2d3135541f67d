# SPDX-License-Identifier: Apache-2.0
"""The tables of docs/why-proof.md, from the record and the kill matrix.

The prose is written by hand and holds no measured number; each table stands between two marker
lines.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, Any

from detection import beyond, peers
from detection import engine as engines
from detection.gate import HELD, REFUSED, RIGHT, WAITS, WRONG
from kvreshard.proofs.mutation.matrix import KILLED, killed_elsewhere, killers

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

Record = dict[str, Any]
Row = dict[str, Any]

LAYOUT = "every_written_byte_holds_the_same_head_token_and_position"
_BEGIN, _END = "<!-- measured: {} -->", "<!-- end -->"
_SECTION = re.compile(r"<!-- measured: (\w+) -->\n.*?<!-- end -->\n", re.DOTALL)
_BOUNDS = (16, 64, 256)
_STOPPED = (REFUSED, WAITS)
_HARMLESS = (RIGHT, HELD)


def with_tables(text: str, record: Record, matrix: Record) -> str:
    """Return the document with each table as the record and the kill matrix give it.

    Raises:
        ValueError: a table has no place in the document, or more than one.
    """
    places = _SECTION.findall(text)
    if sorted(places) != sorted(_TABLES):
        raise ValueError(f"the document has places for {places}; legal is each of {list(_TABLES)}")

    def filled(place: re.Match[str]) -> str:
        lines = _TABLES[place[1]](record, matrix)
        return "\n".join([_BEGIN.format(place[1]), *lines, _END, ""])

    return _SECTION.sub(filled, text)


# Sentences with the main numbers.


def _headlines(record: Record, matrix: Record) -> Iterator[str]:
    public = [row for row in record["detections"]["planners"].values() if row["seen_in"]]
    every = list(record["detections"]["planners"].values())
    faults = [row for _, row, judged in _mutants(record, matrix) if _is_fault(judged)]
    seen = [row for row in faults if row.get("first_failure")]
    yield (
        f"- Public faults: {len(public)} of the {len(every)} broken planners restate one. "
        f"{_within(public, 16)} of {len(public)} fail within sizes up to 16, "
        f"{_within(public, 8)} within 8, the last at {_largest(public)}."
    )
    yield (
        f"- Unit tests of the project concerned touch a size at which the fault shows for "
        f"{sum(_own(row) for row in public)} of {len(public)}, those of any project listed below "
        f"for {sum(bool(row['peers']) for row in public)}."
    )
    yield (
        f"- Mutants: an obligation kills {len(faults)} of {len(matrix['mutants'])}. "
        f"Enumeration finds that {len(seen)} of these make a plan wrong, the last at a size of "
        f"{_largest(seen)}. The other {len(faults) - len(seen)} change no plan for sizes up to 64."
    )
    unbounded = sum(row["unbounded"] is not None for row in faults)
    yield (
        "- Killed means refuted on the bounded range. At least one obligation without bounds no "
        f"longer holds for {unbounded} of the {len(faults)}."
    )
    outcomes = _summed(row["gate"]["both_sides"] for row in public)
    yield (
        f"- The run-time gate, with the same public fault on both sides: of {outcomes.total()} "
        f"transfers at sizes up to 6 it stops {_count(outcomes, _STOPPED)} and marks "
        f"{outcomes[WRONG]} ready with wrong bytes. Digests of content change "
        f"{_changed(public)} of these."
    )


def _within(rows: Iterable[Row], bound: int) -> int:
    return sum(_shows_within(row, bound) for row in rows)


def _shows_within(row: Row, bound: int) -> bool:
    return bool(row.get("first_failure")) and max(row["first_failure"]) <= bound


def _largest(rows: Iterable[Row]) -> int:
    failures: list[list[int]] = [row["first_failure"] for row in rows if row.get("first_failure")]
    return max(max(sizes) for sizes in failures)


def _own(row: Row) -> bool:
    """Whether a project whose report is named has a test that touches the fault."""
    named = {report.split(" PR ")[0].split(" #")[0] for report in row["seen_in"]}
    return bool(named.intersection(row["peers"]))


def _summed(counts: Iterable[dict[str, int]]) -> Counter[str]:
    total: Counter[str] = Counter()
    for one in counts:
        total.update(one)
    return total


def _count(outcomes: Counter[str], wanted: Sequence[str]) -> int:
    return sum(outcomes[name] for name in wanted)


def _changed(rows: Iterable[Row]) -> int:
    without = _summed(row["gate"]["both_sides"] for row in rows)
    with_digests = _summed(row["gate"]["both_sides_with_digests"] for row in rows)
    return abs(without[WRONG] - with_digests[WRONG])


# Broken planners.


def _public(record: Record, _: Record) -> Iterator[str]:
    rows = record["detections"]["planners"]
    yield from _planner_table((name, row) for name, row in rows.items() if row["seen_in"])


def _made_up(record: Record, _: Record) -> Iterator[str]:
    rows = record["detections"]["planners"]
    yield from _planner_table((name, row) for name, row in rows.items() if not row["seen_in"])


def _planner_table(rows: Iterable[tuple[str, Row]]) -> Iterator[str]:
    rows = list(rows)
    seen = any(row["seen_in"] for _, row in rows)
    head = ["planner", *(["seen in", "own tests"] if seen else []), "any tests", "first fails at"]
    head += ["enumeration", "gate, both sides", "gate, producers only", "with digests"]
    lines = []
    for name, row in rows:
        cells = [f"`{name}`"]
        if seen:
            cells += [", ".join(row["seen_in"]), _yes(_own(row))]
        cells += [_yes(bool(row["peers"])), _sizes(row["first_failure"])]
        cells += [next(f"to {bound}" for bound in _BOUNDS if _shows_within(row, bound))]
        cells += [_outcomes(row["gate"][which]) for which in _GATES]
        lines.append(cells)
    yield from _table(head, lines)


_GATES = ("both_sides", "producers_only", "both_sides_with_digests")


def _outcomes(counts: dict[str, int]) -> str:
    """Return how many transfers are stopped, ready and wrong, and ready and right."""
    total = _summed([counts])
    return f"{_count(total, _STOPPED)} / {total[WRONG]} / {_count(total, _HARMLESS)}"


# Mutants.


def _mutants(record: Record, matrix: Record) -> Iterator[tuple[str, Row, Row]]:
    rows = record["detections"]["mutants"]
    for judged in matrix["mutants"]:
        yield judged["name"], rows[judged["name"]], judged


def _is_fault(judged: Row) -> bool:
    return bool(judged["outcome"] == KILLED)


def _bounded(judged: Row) -> bool:
    return bool(killers(judged) or killed_elsewhere(judged))


def _by_formula(record: Record, matrix: Record) -> Iterator[str]:
    head = ["formula", "mutants", "faults", "any tests", "to 16", "to 64", "bounded", "unbounded"]
    head += ["layout", "translation", "gate stops", "gate lets wrong through"]
    groups: dict[str, list[tuple[Row, Row]]] = {}
    for _, row, judged in _mutants(record, matrix):
        groups.setdefault(row["formula"], []).append((row, judged))
    lines = [[f"`{name}`", *_formula_cells(rows)] for name, rows in groups.items()]
    everything = [one for rows in groups.values() for one in rows]
    yield from _table(head, [*lines, ["all", *_formula_cells(everything)]])


def _formula_cells(rows: list[tuple[Row, Row]]) -> list[str]:
    faults = [(row, judged) for row, judged in rows if _is_fault(judged)]
    planned = [row for row, _ in faults if "translation" in row]
    gated = [row["gate"]["both_sides"] for row in planned if "gate" in row]

    def of_planned(count: int) -> str:
        return str(count) if planned else "-"

    return [
        str(len(rows)),
        str(len(faults)),
        of_planned(sum(bool(row["peers"]) for row in planned)),
        *(of_planned(_within(planned, bound)) for bound in (16, 64)),
        str(sum(_bounded(judged) for _, judged in faults)),
        str(sum(row["unbounded"] is not None for row, _ in faults)),
        str(sum(LAYOUT in killers(judged) for _, judged in faults)),
        of_planned(sum(row["translation"] != "proved" for row in planned)),
        of_planned(sum(set(counts) <= set(_STOPPED) for counts in gated)),
        of_planned(sum(WRONG in counts for counts in gated)),
    ]


def _harmless(record: Record, matrix: Record) -> Iterator[str]:
    rows = [row for _, row, judged in _mutants(record, matrix) if not _is_fault(judged)]
    planned = [row for row in rows if "translation" in row]
    differing = sum(row["translation"] != "proved" for row in planned)
    yield (
        f"{len(rows)} mutants are no fault. Enumeration objects to "
        f"{sum(bool(row.get('first_failure')) for row in rows)} of them, the unbounded obligations "
        f"to {sum(row['unbounded'] is not None for row in rows)}, and translation validation to "
        f"{differing} of the {len(planned)} that are in the emitted module."
    )


# Faults that show late, and those outside the planner.


def _late(record: Record, _: Record) -> Iterator[str]:
    head = ["fault", "wrong from", "any tests", *(f"to {bound}" for bound in _BOUNDS)]
    head += ["bounded to 256", "unbounded", "translation", "gate, both sides"]
    lines = []
    for fault in beyond.FAULTS:
        row = record["detections"]["late"][fault.name]
        within = [_yes(row["fails_at"] <= bound) for bound in _BOUNDS]
        gated = _WORDS[row["gate"]["both_sides"]] if "gate" in row else "too large to run"
        cells = [fault.sentence, f"{row['fails_at']:,}", _yes(bool(row["peers"])), *within]
        cells += [within[-1], row["unbounded"][1] if row["unbounded"] else "no"]
        lines.append([*cells, row["translation"], gated])
    yield from _table(head, lines)


_WORDS = {
    WRONG: "ready and wrong",
    HELD: "ready, never released",
    RIGHT: "ready and right",
    WAITS: "waits",
    REFUSED: "refused",
}


def _engine(record: Record, _: Record) -> Iterator[str]:
    lines = []
    for fault in engines.FAULTS:
        row = record["detections"]["engine"][fault.name]
        lines.append([fault.sentence, "no", _WORDS[row["gate"]], _WORDS[row["with_digests"]]])
    yield from _table(["fault", "any proof", "gate", "with digests"], lines)


# Costs.


def _costs(record: Record, _: Record) -> Iterator[str]:
    costs = record["costs"]
    right = costs["right_planner"]
    pairs = costs["pairs_of_ranks"]
    plain = right["plain Python to 16"]["median"] / pairs["to 16"]
    arrays = right["arrays to 64"]["median"] / pairs["to 64"]
    passes = {
        "unit tests' sizes, judged": (_median(right, "peers"), "peers"),
        "enumeration to 16": (_median(right, "plain Python to 16"), "enumeration"),
        "enumeration to 64": (f"about {_time(plain * pairs['to 64'])}", "enumeration"),
        "enumeration to 256": (f"about {_time(plain * pairs['to 256'])}", "enumeration"),
        "enumeration to 64, in arrays": (_median(right, "arrays to 64"), ""),
        "enumeration to 256, in arrays": (f"about {_time(arrays * pairs['to 256'])}", ""),
        "bounded obligations": ("", "bounded"),
        "unbounded obligations, one seed": (_median(right, "unbounded"), "unbounded"),
        "of these, the layout's": (_median(right, "layout"), ""),
        "translation validation": (_median(right, "translation"), "translation"),
        "run-time gate, one request": (_median(right, "gate"), "gate"),
        "the same with digests": (_median(right, "content"), "content"),
    }
    lines = [
        [name, whole, _median(costs["broken_planners"], check), _median(costs["mutants"], check)]
        for name, (whole, check) in passes.items()
    ]
    yield from _table(
        ["check", "right planner, whole pass", "broken planner, median", "mutant, median"], lines
    )
    yield ""
    yield f'Seconds of the processor on {costs["machine"]}; "about" is extrapolated.'


def _median(costs: Row, check: str) -> str:
    return _time(costs[check]["median"]) if check in costs else ""


def _time(seconds: float) -> str:
    if seconds >= 5400:
        return f"{seconds / 3600:.0f} h"
    if seconds >= 90:
        return f"{seconds / 60:.0f} min"
    return f"{seconds:.2g} s" if seconds < 10 else f"{seconds:.0f} s"


def _sources(_record: Record, _matrix: Record) -> Iterator[str]:
    lines = []
    for tests in peers.PEERS:
        where = f"`{tests.repository}` `{tests.path}` at `{tests.commit[:12]}`"
        sizes = " ".join(_sizes(point) for point in sorted(tests.points))
        lines.append([tests.project, where, sizes, tests.note])
    yield from _table(["project", "file", "(H, P, D)", "note"], lines)


_TABLES: dict[str, Callable[[Record, Record], Iterator[str]]] = {
    "headlines": _headlines,
    "public": _public,
    "made_up": _made_up,
    "mutants": _by_formula,
    "harmless": _harmless,
    "late": _late,
    "engine": _engine,
    "costs": _costs,
    "sources": _sources,
}


def _yes(answer: bool) -> str:
    return "yes" if answer else "no"


def _sizes(sizes: Sequence[int] | None) -> str:
    return f"({', '.join(map(str, sizes))})" if sizes else "none"


def _table(head: Sequence[str], lines: Iterable[Sequence[str]]) -> Iterator[str]:
    yield f"| {' | '.join(head)} |"
    yield f"|{'---|' * len(head)}"
    for cells in lines:
        yield f"| {' | '.join(cells)} |"
