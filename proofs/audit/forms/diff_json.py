# SPDX-License-Identifier: Apache-2.0
"""A comparison of two planners as JSON.

The object has these keys, all of them always there. Lines count from 1, ranks from 0; offsets and
lengths are bytes.

schema
    "kvreshard.diff/1". The number goes up when a key goes away or changes its meaning; a new key
    may come without that.
verdict, sentence, detail
    "equal", "different" or "not decided"; that in one sentence; and what else is known, may be
    empty: for which sizes they are proved equal all the same, or what is not proved.
method, required
    "proved for all sizes", "proved in a range", "checked exhaustively on a finite domain", or
    null: how it is known that they are equal, and what the user demanded.
old, new
    The planners, each an object as the key source of "kvreshard.audit/1".
old_contract, new_contract
    How each was called, an object as the key contract of "kvreshard.audit/1".
domain
    The sizes in question, in words.
differences
    Inputs at which they differ, the smallest first, then the smallest of each other kind, then
    the smallest at which a wrong plan is not refused, then the one that was asked for. Each has
    input: total_num_kv_heads, producer_tp_size, consumer_tp_size, bytes_per_head; right: "old
    wrong, new right", "old right, new wrong", "both right" or "both wrong"; choice: how two right
    plans differ, else empty; old and new: broken (names of invariants), seen (what was seen
    first), refused (by its guard; null without one); why: why this input is told; and pairs:
    every pair of ranks for which one planner copies or raises, each with producer_tp_rank,
    consumer_tp_rank, differs, old and new: raises (in words, or empty) and copies, each with
    source_offset, target_offset, length.
sweep
    null where nothing could be asked, or what came of trying the small sizes: maximum (of H, P
    and D), tried, bytes_per_head, differing, executed (whether the targets were run), and
    counted: for each kind of difference right, sizes, old_refused and new_refused (how many of
    them each guard refuses).
guards
    null where neither planner has one, or verdict (as above, of the guards alone), method,
    differing (of the sizes tried), first (the smallest of those, as input above without bytes, or
    null) and detail. A difference of the guards alone leaves the verdict "equal".
stopped_by
    The constructs that stopped a proof, or the comparison: file, line, what.
assumptions, solver, command
    What the verdict rests on, a sentence each; the solver and its version; what to run to get
    this report again.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from kvreshard.proofs.audit.forms.json_form import (
    contract_object,
    method_word,
    place_object,
    source_object,
)

if TYPE_CHECKING:
    from kvreshard.proofs.audit.difference_model import (
        Difference,
        DiffReport,
        DiffSweep,
        Guards,
        Judged,
        Pair,
    )
    from kvreshard.proofs.audit.judging import ByteCopy

SCHEMA = "kvreshard.diff/1"


def as_json(report: DiffReport) -> str:
    """Return a comparison as JSON, indented, without a newline at its end."""
    return json.dumps(document(report), indent=1)


def document(report: DiffReport) -> dict[str, Any]:
    """Return a comparison as the object that is written."""
    return {
        "schema": SCHEMA,
        "verdict": report.verdict.value,
        "sentence": report.sentence,
        "detail": report.detail,
        "method": method_word(report.method),
        "required": method_word(report.required),
        "old": source_object(report.old),
        "new": source_object(report.new),
        "old_contract": contract_object(report.old_contract),
        "new_contract": contract_object(report.contract),
        "domain": report.domain,
        "differences": [_difference(one) for one in report.differences],
        "sweep": report.sweep and _sweep(report.sweep),
        "guards": report.guards and _guards(report.guards),
        "stopped_by": [place_object(place) for place in report.stopped_by],
        "assumptions": list(report.assumptions),
        "solver": report.solver,
        "command": report.command,
    }


def _difference(difference: Difference) -> dict[str, Any]:
    return {
        "input": {**_sizes(difference.sizes), "bytes_per_head": difference.bytes_per_head},
        "right": difference.right.value,
        "choice": difference.choice,
        "old": _judged(difference.old),
        "new": _judged(difference.new),
        "why": difference.why,
        "pairs": [_pair(pair) for pair in difference.pairs],
    }


def _sizes(sizes: tuple[int, int, int]) -> dict[str, int]:
    names = ("total_num_kv_heads", "producer_tp_size", "consumer_tp_size")
    return dict(zip(names, sizes, strict=True))


def _judged(judged: Judged) -> dict[str, Any]:
    return {"broken": list(judged.broken), "seen": judged.seen, "refused": judged.refused}


def _pair(pair: Pair) -> dict[str, Any]:
    return {
        "producer_tp_rank": pair.producer_tp_rank,
        "consumer_tp_rank": pair.consumer_tp_rank,
        "differs": pair.differs,
        "old": {"raises": pair.old_raises, "copies": [_copy(copy) for copy in pair.old]},
        "new": {"raises": pair.new_raises, "copies": [_copy(copy) for copy in pair.new]},
    }


def _copy(copy: ByteCopy) -> dict[str, int]:
    return dict(zip(("source_offset", "target_offset", "length"), copy, strict=True))


def _sweep(sweep: DiffSweep) -> dict[str, Any]:
    return {
        "maximum": sweep.maximum,
        "tried": sweep.tried,
        "bytes_per_head": sweep.bytes_per_head,
        "differing": sweep.differing,
        "executed": sweep.executed,
        "counted": [
            {
                "right": one.right.value,
                "sizes": one.sizes,
                "old_refused": one.old_refused,
                "new_refused": one.new_refused,
            }
            for one in sweep.counted
        ],
    }


def _guards(guards: Guards) -> dict[str, Any]:
    return {
        "verdict": guards.verdict.value,
        "method": method_word(guards.method),
        "differing": guards.differing,
        "first": guards.first and _sizes(guards.first),
        "detail": guards.detail,
    }
