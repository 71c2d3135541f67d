# SPDX-License-Identifier: Apache-2.0
"""A plan as a picture, and as one HTML page that stands alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kvreshard.plan_words import (
    PROVED,
    copied_heads,
    group_title,
    offsets,
    sizes,
    totals,
    verdict,
    waiting,
)
from kvreshard.proofs.story.picture import head_map_svg
from kvreshard.proofs.story.svg import element, text
from kvreshard.proofs.story.words import who_holds_what

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from kvreshard.plan_request import GroupPlan, Planned

_STYLE = """
:root { color-scheme: light dark; }
body { font: 16px/1.5 system-ui, "DejaVu Sans", sans-serif; max-width: 46rem; margin: 1rem auto;
  padding: 0 1rem; }
h1 { font-size: 1.4rem; } h2 { font-size: 1.1rem; margin-top: 2rem; } h3 { font-size: 1rem; }
.verdict { font-weight: 700; border-left: 4px solid #1a7f37; padding-left: .75rem; }
.verdict.bad { border-color: #cf222e; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-size: .9rem; }
th, td { border: 1px solid #818b98; padding: .2rem .5rem; text-align: left; vertical-align: top; }
td.number { text-align: right; white-space: nowrap; }
code { overflow-wrap: anywhere; }
@media print { h2 { break-before: auto; } svg, table { break-inside: avoid; } }
"""


def plan_svg(planned: Planned, group: GroupPlan) -> str:
    """Return the picture of one group's plan."""
    return head_map_svg(
        group.plan.producer_heads,
        group.plan.consumer_heads,
        group.plan.blocks,
        title=f"Head map of {group_title(planned, group)}",
        description=" ".join((verdict(planned), *(f"{who} {what}." for who, what in _few(group)))),
        key=group.layers.name,
    )


_SAID = 12


def _few(group: GroupPlan) -> list[tuple[str, str]]:
    said = list(waiting(group.plan))
    if len(said) <= _SAID:
        return said
    return [*said[:_SAID], (f"{len(said) - _SAID} more such lines", "are not said here")]


def plan_page(planned: Planned) -> str:
    """Return the page, without a newline at its end."""
    title = f"Transfer plan of {planned.shape.name}"
    head = element(
        "head",
        {},
        element("meta", {"charset": "utf-8"}),
        element("meta", {"name": "viewport", "content": "width=device-width, initial-scale=1"}),
        element("title", {}, text(title)),
        element("style", {}, _STYLE),
    )
    said = {"class": "verdict bad" if planned.faults else "verdict"}
    body = element(
        "body",
        {},
        element("h1", {}, text(title)),
        element("p", {**said}, text(verdict(planned))),
        _list(
            [
                PROVED,
                f"Shape: {planned.shape.name}, from {planned.shape.source}",
                *(f"Note: {one}" for one in planned.shape.notes),
                *(f"Not checked: {one}" for one in planned.warnings),
            ]
        ),
        *(part for group in planned.groups for part in _group(planned, group)),
        element("p", {}, text("To see this again: "), element("code", {}, text(planned.command))),
    )
    return f"<!DOCTYPE html>\n{element('html', {'lang': 'en'}, head, body)}"


def _group(planned: Planned, group: GroupPlan) -> Iterator[str]:
    plan = group.plan
    yield element("h2", {}, text(group_title(planned, group)))
    yield _list(
        [
            f"prefill: {who_holds_what(plan.producer_heads, 'p')}",
            f"decode: {who_holds_what(plan.consumer_heads, 'd')}",
            *totals(group),
            *sizes(group),
        ]
    )
    yield plan_svg(planned, group)
    yield element("h3", {}, text("Copies of each block"))
    yield element("div", {"class": "scroll"}, _copies(group))
    yield element("h3", {}, text("Who waits for whom"))
    yield _list(f"{who} {what}" for who, what in waiting(plan))


def _list(lines: Iterable[str]) -> str:
    return element("ul", {}, *(element("li", {}, text(line)) for line in lines))


def _copies(group: GroupPlan) -> str:
    names = ("from", "to", "heads", "source offset", "target offset", "length")
    header = element("tr", {}, *(element("th", {"scope": "col"}, text(one)) for one in names))
    rows = []
    for copy in group.plan.copies:
        words = f"p{copy.producer_tp_rank}", f"d{copy.consumer_tp_rank}", copied_heads(copy)
        numbers = copy.src_head_offset, copy.dst_head_offset, copy.head_count
        cells = [element("td", {}, text(one)) for one in words]
        cells += [
            element("td", {"class": "number"}, element("br", {}).join(map(text, offsets(n, group))))
            for n in numbers
        ]
        rows.append(element("tr", {}, *cells))
    return element("table", {}, element("thead", {}, header), element("tbody", {}, *rows))
