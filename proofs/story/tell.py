# SPDX-License-Identifier: Apache-2.0
"""Tell a counterexample to the formulas, or to what was emitted from them, in a few lines."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kvreshard.proofs.judge import BYTES_PER_HEAD
from kvreshard.proofs.story.build import story_of_violation
from kvreshard.proofs.story.model import Origin
from kvreshard.proofs.story.parts import byte_sentences
from kvreshard.proofs.story.table import head_map
from kvreshard.proofs.story.terminal import table_lines

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kvreshard.proofs.counterexample import Counterexample
    from kvreshard.proofs.story.model import Story

SPECIFIED = Origin("the specified planner", "The formulas of the specification, as they stand.")


def tell(counterexample: Counterexample) -> str:
    """Return the story of a counterexample as text: input, head map, bytes, what was seen."""
    violation, election = counterexample.violation, counterexample.election
    story = story_of_violation(violation, SPECIFIED, election, BYTES_PER_HEAD)
    return "\n".join(_lines(story))


def _lines(story: Story) -> Iterator[str]:
    H, P, D = story.sizes
    yield f"{story.invariant} does not hold"
    yield f"  {story.invariant_sentence}"
    rank = story.consumer_tp_rank
    yield (
        f"  smallest: H={H} heads, producer TP P={P}, consumer TP D={D}"
        + ("" if rank is None else f", consumer rank d={rank}")
        + f", election {story.election}"
    )
    yield f"  seen: {story.seen}"
    if story.block is not None and not story.block.is_right:
        yield from (f"  {line}" for line in table_lines(head_map(story)))
        yield from (f"  {sentence}" for sentence in byte_sentences(story))
        yield f"  One head has {story.bytes_per_head} bytes here."
