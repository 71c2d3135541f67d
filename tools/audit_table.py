# SPDX-License-Identifier: Apache-2.0
"""docs/audits/README.md, from the list of audits and what their JSON files say."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from audit_list import Listed

Document = dict[str, Any]

_METHODS = {
    "proved for all sizes": "all sizes",
    "proved in a range": "range",
    "checked exhaustively on a finite domain": "finite",
}

_HEAD = """\
<!-- Written by `make audits` from the JSON files beside it. Do not edit. -->
# Audits of released planners

Each row is one run of `kvreshard audit` on unmodified code of a release, and is written by
`tools/write_audits.py`. A verdict is about one function, called as its contract says, and about
nothing else of the system; what was left out stands below and in each report. Any of it can be
repeated with the command given there.

## Invariants

The columns are, in this order:
"""

_LEGEND = """\
In a cell: **all sizes** is proved for every size of the domain; **range** is proved for each size
up to a bound, which the report names; **finite** was run on every size up to 16; **FAILS n** is
broken by n of the sizes tried. H is the number of KV heads, P and D the TP sizes of producer and
consumer.
"""

_TRIED = """\
## What was tried

Every size of the domain up to 16. A guard is a check that the system makes before it sends: what it
refuses fails aloud, what it lets pass reaches the engine.
"""


def readme(audits: Sequence[Listed], documents: Mapping[str, Document]) -> str:
    """Return the page's text.

    Args:
        audits: what is listed.
        documents: by the name of an audit what its JSON file says.
    """
    return "\n".join(_lines([(one, documents[one.name]) for one in audits])) + "\n"


def cell(result: Document) -> str:
    """Return what is known of one invariant, in a word or two."""
    if result["verdict"] == "fails":
        return f"**FAILS {result['failing']}**"
    return _METHODS[result["method"]] if result["verdict"] == "holds" else "not decided"


def _lines(rows: Sequence[tuple[Listed, Document]]) -> Iterator[str]:
    invariants = [result["name"] for result in rows[0][1]["invariants"]]
    yield _HEAD
    yield from (f"{number}. `{name}`" for number, name in enumerate(invariants, start=1))
    yield ""
    yield _LEGEND
    numbers = [str(number + 1) for number in range(len(invariants))]
    yield from _table(
        ["planner", "domain", "verdict", *numbers],
        [
            [one.system, said["contract"]["domain"], _verdict(said)]
            + [f"[{cell(result)}]({one.name}.md)" for result in said["invariants"]]
            for one, said in rows
        ],
    )
    yield ""
    yield _TRIED
    yield from _table(
        ["planner", "tried", "fail", "refused by a guard", "reach the engine", "run"],
        [[one.system, *_tried(said)] for one, said in rows],
    )
    yield from ("", "## Each audit")
    for one, said in rows:
        yield from _one(one, said)


def _verdict(said: Document) -> str:
    return str(said["verdict"]) if said["verdict"] == "holds" else f"**{said['verdict']}**"


def _tried(said: Document) -> list[str]:
    sweep = said["sweep"]
    guarded = said["contract"]["guard"] is not None
    return [
        str(sweep["tried"]),
        str(sweep["failing"]),
        str(sweep["refused"]) if guarded else "no guard",
        str(sweep["reaching"]),
        "yes" if "--exec" in shlex.split(said["command"]) else "no",
    ]


def _one(one: Listed, said: Document) -> Iterator[str]:
    source = said["source"]
    forms = ["md", "json", *(["html"] if one.page else [])]
    links = ", ".join(f"[{form}]({one.name}.{form})" for form in forms)
    yield from ("", f"### {one.system}", "", f"{said['sentence']} ({links})")
    for finding in said["findings"]:
        sizes = _sizes(finding["story"]["input"])
        reach = f", {finding['reach']}" if finding["reach"] else ""
        yield from ("", f"- {sizes}{reach}: {finding['story']['verdict']} {finding['replayed']}")
    if one.note:
        yield from ("", one.note)
    yield from ("", "```console", f"$ {said['command']}", "```", "")
    function = source["function"]
    lines = f"lines {function['first_line']} to {function['last_line']}"
    yield f"- Source: {source['origin']}; `{source['file']}`, {lines}, SHA-256 `{source['sha256']}`"
    yield from (f"- Left out: {sentence}" for sentence in said["contract"]["outside"])


def _sizes(given: Document) -> str:
    names = ("total_num_kv_heads", "producer_tp_size", "consumer_tp_size")
    return ", ".join(f"{letter}={given[name]}" for letter, name in zip("HPD", names, strict=True))


def _table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    for row in (columns, ["---"] * len(columns), *rows):
        yield f"| {' | '.join(row)} |"
