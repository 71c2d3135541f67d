# SPDX-License-Identifier: Apache-2.0
"""The copies of a head map's picture: a band from heads to slots, with an arrow in its middle."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kvreshard.proofs.story.picture_sides import LEFT_EDGE, RIGHT_EDGE
from kvreshard.proofs.story.svg import element, text
from kvreshard.proofs.story.words import heads

if TYPE_CHECKING:
    from kvreshard.proofs.story.head_map import Run
    from kvreshard.proofs.story.picture_sides import Side

    Span = tuple[float, float]

_START, _END, _TIP = LEFT_EDGE + 5, RIGHT_EDGE - 5, 8
# Arrows that end in one slot end so far from each other, or nearer where it is too low for that.
_APART = 9


def copy_of(run: Run, left: Side, right: Side, lowered: Span) -> str:
    """Return a copy as an element.

    `lowered` says by how much the left and the right side are lowered in the picture.
    """
    source, target = _source(run, left), _target(run, right)
    y, z = (source[0] + source[1]) / 2 + lowered[0], (target[0] + target[1]) / 2 + lowered[1]
    at, of = run.place
    z += (at - (of - 1) / 2) * min(_APART, (target[1] - target[0] - _TIP) / max(of, 1))
    half, bend = (source[1] - source[0]) / 2 - 5, (_START + _END) / 2
    other = (target[1] - target[0]) / 2 - 5
    band = (
        f"M{_START} {y - half:.10g}C{bend:g} {y - half:.10g} {bend:g} {z - other:.10g} "
        f"{_END} {z - other:.10g}V{z + other:.10g}C{bend:g} {z + other:.10g} {bend:g} "
        f"{y + half:.10g} {_START} {y + half:.10g}Z"
    )
    stop = _END - _TIP
    line = f"M{_START} {y:.10g}C{bend:g} {y:.10g} {bend:g} {z:.10g} {stop} {z:.10g}"
    tip = f"M{stop} {z - 5:.10g}L{_END} {z:.10g}L{stop} {z + 5:.10g}Z"
    return element(
        "g",
        {
            "class": f"copy {run.kind.value}",
            "data-producer": run.producer_tp_rank,
            "data-consumer": run.consumer_tp_rank,
            "data-kind": run.kind.value,
            "data-heads": " ".join("none" if head is None else str(head) for head in run.heads),
            "data-slots": " ".join(map(str, run.slots)),
        },
        element("title", {}, text(_said(run))),
        element("path", {"class": "band", "d": band}) if len(run.slots) > 1 else "",
        element("path", {"class": "line", "stroke": "currentColor", "d": line}),
        element("path", {"class": "tip", "fill": "currentColor", "d": tip}),
    )


def _said(run: Run) -> str:
    what = [head for head in run.heads if head is not None]
    told = heads(what) if what else "what is not its head" if run.heads else "no head"
    return f"p{run.producer_tp_rank} copies {told} to d{run.consumer_tp_rank}"


def _source(run: Run, left: Side) -> Span:
    p = run.producer_tp_rank
    if not run.heads:
        return left.spans["rank", p]
    outside = left.spans.get(("outside", p))
    spans = [left.spans.get(("head", p, head), outside) for head in run.heads]
    return _around([span for span in spans if span is not None])


def _target(run: Run, right: Side) -> Span:
    d = run.consumer_tp_rank
    if not run.slots:
        return right.spans["empty", d, run.producer_tp_rank]
    return _around([right.spans["slot", d, slot] for slot in run.slots])


def _around(spans: list[Span]) -> Span:
    return min(top for top, _ in spans), max(bottom for _, bottom in spans)
