# SPDX-License-Identifier: Apache-2.0
"""Tell a counterexample in the domain's words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kvreshard.proofs.judge import BYTES_PER_HEAD
from kvreshard.spec.invariants import INVARIANTS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kvreshard.proofs.counterexample import Counterexample


def tell(counterexample: Counterexample) -> str:
    """Return the story of a counterexample as text: input, head map, bytes, what was seen."""
    return "\n".join(_lines(counterexample))


def _lines(counterexample: Counterexample) -> Iterator[str]:
    violation = counterexample.violation
    yield f"{violation.invariant} does not hold"
    yield f"  {INVARIANTS[violation.invariant].sentence}"
    rank = violation.consumer_tp_rank
    yield (
        f"  smallest: H={violation.total_num_kv_heads} heads, producer TP "
        f"P={violation.producer_tp_size}, consumer TP D={violation.consumer_tp_size}"
        + ("" if rank is None else f", consumer rank d={rank}")
        + f", election {counterexample.election}"
    )
    yield f"  seen: {violation.seen}"
    if violation.heads:
        yield from _head_map(violation.heads)


def _head_map(heads: tuple[tuple[int, tuple[tuple[int, int], ...]], ...]) -> Iterator[str]:
    written = 0
    for slot, (head, writers) in enumerate(heads):
        right = len(writers) == 1 and writers[0][1] == head
        written += BYTES_PER_HEAD if writers else 0
        yield f"    slot {slot}, head {head}: {_writers(head, writers)}{'' if right else '  <--'}"
    expected = len(heads) * BYTES_PER_HEAD
    yield f"  bytes: {written} of {expected} written, at {BYTES_PER_HEAD} bytes per head"


def _writers(head: int, writers: tuple[tuple[int, int], ...]) -> str:
    if not writers:
        return "missing"
    told = [
        f"p{p}" + ("" if sent == head else f" with head {sent}" if sent >= 0 else " out of bounds")
        for p, sent in writers
    ]
    return " and ".join(told)
