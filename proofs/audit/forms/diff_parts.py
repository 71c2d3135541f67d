# SPDX-License-Identifier: Apache-2.0
"""The sentences and rows of a comparison that its forms share.

They take reports whose texts are visible; escaping is left to the form.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import zip_longest
from typing import TYPE_CHECKING

from kvreshard.proofs.audit.difference_model import Equality, WhichIsRight
from kvreshard.proofs.audit.forms.parts import Row, contract_used_rows, source_rows
from kvreshard.proofs.story.words import counted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kvreshard.proofs.audit.difference_model import (
        Counted,
        Difference,
        DiffReport,
        Judged,
        Pair,
    )
    from kvreshard.proofs.audit.judging import ByteCopy

COLUMNS = (
    "producer",
    "consumer",
    "old source",
    "old target",
    "old length",
    "new source",
    "new target",
    "new length",
    "",
)
DIFFERS = "<--"
# Longer tables show what differs alone, and of that no more.
MOST_ROWS = 40


@dataclass(frozen=True)
class SideBySide:
    """The copies of two planners at one input, as a table.

    Attributes:
        rows: a cell for each of COLUMNS.
        left_out: what is not shown, in words; may be empty.
    """

    rows: tuple[tuple[str, ...], ...]
    left_out: str


def title(report: DiffReport) -> str:
    """Name the two functions."""
    old, new = report.old.function.name, report.new.function.name
    return f"{old}, old and new" if old == new else f"{old} (old) and {new} (new)"


def word(verdict: Equality) -> str:
    """Return a verdict as it is shown where it has to be seen without colour."""
    said: str = verdict.value
    return said if verdict is Equality.EQUAL else said.upper()


def method_said(report: DiffReport) -> str:
    """Say by which method the verdict was reached, and what was demanded."""
    if report.method is not None:
        said = f"Method: {report.method.value}."
    elif report.verdict is Equality.DIFFERENT:
        said = "Method: inputs at which they differ."
    else:
        said = "Method: none decided it."
    demanded = f" Demanded: {report.required.value}, or better." if report.required else ""
    return f"{said}{demanded}"


def difference_title(report: DiffReport, difference: Difference) -> str:
    """Return the input of a difference, with its number where there are several."""
    of = len(report.differences)
    number = f" {report.differences.index(difference) + 1} of {of}" if of > 1 else ""
    return f"Difference{number}: {sizes_said(difference.sizes)}"


def sizes_said(sizes: tuple[int, int, int]) -> str:
    """Return sizes in few letters."""
    return "H={}, P={}, D={}".format(*sizes)


def difference_sentences(difference: Difference) -> Iterator[str]:
    """Yield which of the two is right at an input, and what the guards do there."""
    H, P, D = difference.sizes
    yield (
        f"{counted(H, 'KV head')}, producer TP {P}, consumer TP {D}, "
        f"{difference.bytes_per_head:,} bytes per head."
    )
    choice = f", {difference.choice}" if difference.choice else ""
    yield f"{_capital(difference.right.value)}{choice}."
    yield _judged_said("old", difference.old)
    yield _judged_said("new", difference.new)


def _judged_said(name: str, judged: Judged) -> str:
    if judged.broken:
        said = f"The {name} one breaks {', '.join(judged.broken)}: {judged.seen}."
    else:
        said = f"The {name} one breaks nothing."
    if judged.refused is None:
        return said
    return f"{said} Its guard {'refuses this input' if judged.refused else 'lets it pass'}."


def side_by_side(difference: Difference) -> SideBySide:
    """Return the copies of both planners at an input, those of one pair of ranks together."""
    rows = [row for pair in difference.pairs for row in _rows(pair)]
    shown, left_out = rows, ""
    if len(rows) > MOST_ROWS:
        shown = [row for row in rows if row[-1]][:MOST_ROWS]
        left_out = (
            f"{counted(len(rows) - len(shown), 'row')} left out; the JSON form has all of them."
        )
    return SideBySide(tuple(shown), left_out)


def _rows(pair: Pair) -> Iterator[tuple[str, ...]]:
    ranks = (f"p{pair.producer_tp_rank}", f"d{pair.consumer_tp_rank}")
    if pair.old_raises or pair.new_raises:
        mark = DIFFERS if pair.differs else ""
        old = [("raises", pair.old_raises, "")] if pair.old_raises else list(map(_cells, pair.old))
        new = [("raises", pair.new_raises, "")] if pair.new_raises else list(map(_cells, pair.new))
        for one, other in zip_longest(old, new, fillvalue=_NOTHING):
            yield (*ranks, *one, *other, mark)
        return
    common = Counter(pair.old) & Counter(pair.new)
    for copy in sorted(common.elements()):
        yield (*ranks, *_cells(copy), *_cells(copy), "")
    alone = [sorted((Counter(one) - common).elements()) for one in (pair.old, pair.new)]
    cells = ([_cells(copy) for copy in copies] for copies in alone)
    for one, other in zip_longest(*cells, fillvalue=_NOTHING):
        yield (*ranks, *one, *other, DIFFERS)


_NOTHING = ("-", "-", "-")


def _cells(copy: ByteCopy) -> tuple[str, str, str]:
    src, dst, count = copy
    return f"{src:,}", f"{dst:,}", f"{count:,}"


def sweep_sentences(report: DiffReport) -> Iterator[str]:
    """Yield what came of trying the small sizes one by one, and what is known of the guards."""
    sweep = report.sweep
    if sweep is None:
        yield "No sizes were tried one by one."
        return
    yield (
        f"All {counted(sweep.tried, 'input')} of the domain with H, P and D up to {sweep.maximum} "
        f"were tried, with {sweep.bytes_per_head} bytes per head: {sweep.differing:,} differ."
    )
    for one in sweep.counted:
        if one.sizes:
            yield f"{_capital(one.right.value)}: {one.sizes:,}.{_refused_said(report, one)}"
    yield from _guards_said(report)
    yield (
        "The targets themselves were run on them."
        if sweep.executed
        else "Their lifted meaning was evaluated on them."
    )


def _refused_said(report: DiffReport, one: Counted) -> str:
    """Say how many of a kind the guards refuse: of wrong plans first, which is what counts."""
    if report.guards is None:
        return ""
    said = []
    if report.old_contract.guard:
        said.append(f"the old guard refuses {one.old_refused:,}")
    if report.contract.guard:
        said.append(f"the new guard refuses {one.new_refused:,}")
    passing = {
        WhichIsRight.NEW: one.sizes - one.old_refused,
        WhichIsRight.OLD: one.sizes - one.new_refused,
    }.get(one.right)
    wrong = "" if passing is None else f"; {passing:,} of the wrong plans reach the engine"
    return f" Of these {' and '.join(said)}{wrong}."


def _guards_said(report: DiffReport) -> Iterator[str]:
    guards = report.guards
    if guards is None:
        return
    if guards.detail:
        yield guards.detail
    one_alone = bool(guards.detail)
    if guards.verdict is Equality.EQUAL and guards.method is not None:
        said = "It refuses nothing" if one_alone else "The guards refuse the same inputs"
        yield f"{said}: {guards.method.value} of the domain."
    elif guards.first is not None:
        equal = report.verdict is Equality.EQUAL
        alone = " The copies are the same all the same." if equal else ""
        what = "it refuses" if one_alone else "one guard refuses and the other does not"
        yield (
            f"At {counted(guards.differing, 'input')} {what}, first at "
            f"{sizes_said(guards.first)}.{alone}"
        )
    else:
        said = "It refuses none" if one_alone else "The guards refuse the same"
        yield f"{said} of these inputs; that this is so throughout is not proved."


def compared_rows(report: DiffReport) -> Iterator[tuple[str, tuple[Row, ...]]]:
    """Yield what was compared and how it was called, under headings."""
    yield "The old planner", source_rows(report.old)
    yield "The new planner", source_rows(report.new)
    domain = Row("Domain", (report.domain,))
    if report.old_contract == report.contract:
        yield "How both were called", _called(report, domain)
        return
    old, new = contract_used_rows(report.old_contract), contract_used_rows(report.contract)
    yield "How the old one was called", old
    yield "How the new one was called", new
    yield "Compared on", (domain,)


def _called(report: DiffReport, domain: Row) -> tuple[Row, ...]:
    rows = contract_used_rows(report.contract)
    return tuple(domain if row.label == "Domain" else row for row in rows)


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
