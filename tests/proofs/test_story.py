# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pytest
from spec_mutants import MUTANTS

from kvreshard.proofs.counterexample import smallest_counterexamples
from kvreshard.proofs.story import tell

BY_NAME = {mutant.name: mutant for mutant in MUTANTS}

STORIES = {
    ("every_replica_sends", "every_consumer_head_is_covered_exactly_once"): (
        "every_consumer_head_is_covered_exactly_once does not hold\n"
        "  Every head that a consumer rank holds is written to its slot by exactly one "
        "producer rank.\n"
        "  smallest: H=1 heads, producer TP P=2, consumer TP D=1, consumer rank d=0, "
        "election lowest\n"
        "  seen: head 0 of consumer rank 0 is written by producer ranks [0, 1]\n"
        "    slot 0, head 0: p0 and p1  <--\n"
        "  bytes: 6 of 6 written, at 6 bytes per head"
    ),
    ("overlap_end_is_the_larger", "every_write_is_inside_the_consumer_block"): (
        "every_write_is_inside_the_consumer_block does not hold\n"
        "  Every byte that a producer rank writes for a copy lies inside the consumer's "
        "block.\n"
        "  smallest: H=2 heads, producer TP P=1, consumer TP D=2, consumer rank d=0, "
        "election lowest\n"
        "  seen: producer rank 0 writes heads 0 to 2 of a block of 1\n"
        "    slot 0, head 0: p0\n"
        "  bytes: 6 of 6 written, at 6 bytes per head"
    ),
    ("lengths_by_product_alone", "the_length_check_accepts_exactly_the_plannable_regions"): (
        "the_length_check_accepts_exactly_the_plannable_regions does not hold\n"
        "  The length check accepts two regions exactly where each is a whole number of "
        "bytes per head, at least one, and the number is the same on both sides.\n"
        "  smallest: H=2 heads, producer TP P=1, consumer TP D=1, election lowest\n"
        "  seen: lengths of 1 and 1 bytes are accepted; the ranks hold 2 and 2 heads"
    ),
    ("last_sender_is_the_first", "producers_and_consumers_agree_on_their_peers"): (
        "producers_and_consumers_agree_on_their_peers does not hold\n"
        "  The ranks that a consumer waits for are exactly the ranks that send to it, "
        "and every rank that a producer sends to is among those it looks at.\n"
        "  smallest: H=2 heads, producer TP P=2, consumer TP D=1, consumer rank d=0, "
        "election lowest\n"
        "  seen: consumer rank 0 waits for [0], but [0, 1] send to it"
    ),
}


@pytest.mark.parametrize(("mutant", "invariant"), STORIES)
def test_the_story_of_a_counterexample(mutant: str, invariant: str) -> None:
    with BY_NAME[mutant].applied():
        found = {one.violation.invariant: one for one in smallest_counterexamples(maximum=2)}
    assert tell(found[invariant]) == STORIES[mutant, invariant]
