# SPDX-License-Identifier: Apache-2.0
"""Broken planners, written out as source, fail at the sizes at which the originals fail."""

from __future__ import annotations

import pytest
from asked import heads, swept
from source_mutants import LOWEST

from kvreshard.proofs.audit.judging import IN_SCOPE
from kvreshard.proofs.broken import BROKEN
from kvreshard.proofs.judge import judge
from kvreshard.proofs.smallest import search

TRIED_TO = 8
NO_MORE = "    if start >= end or p % max(P // H, 1) != 0:\n"
LAST = "    return [(start - mine, start - theirs, end - start)]\n"
BY_RATIO = heads("""\
    mine, theirs = max(H // P, 1), max(H // D, 1)
    if P >= D:
        ratio = P // D
        place = p % ratio
        if p // ratio != d or (P > H and place):
            return []
        return [(0, place * mine, mine)]
    ratio = D // P
    if d // ratio != p:
        return []
    return [(0 if P > H else d % ratio * theirs, 0, theirs)]
""")


def with_last(copy: str) -> str:
    """Return the right planner with another copy than the right one."""
    return LOWEST.replace(LAST, f"    return [{copy}]\n")


# By the name of the original: the source, and the domain as a condition.
SOURCES = {
    "the_source_offset_is_one_too_far": (
        with_last("(start - mine + 1, start - theirs, end - start)"),
        "",
    ),
    "the_source_offset_is_one_too_near": (
        with_last("(start - mine - 1, start - theirs, end - start)"),
        "",
    ),
    "the_source_offset_is_forgotten": (with_last("(0, start - theirs, end - start)"), ""),
    "the_target_offset_is_one_too_far": (
        with_last("(start - mine, start - theirs + 1, end - start)"),
        "",
    ),
    "the_target_offset_is_forgotten": (with_last("(start - mine, 0, end - start)"), ""),
    "one_head_too_many_is_copied": (
        with_last("(start - mine, start - theirs, end - start + 1)"),
        "",
    ),
    "every_replica_sends": (LOWEST.replace(NO_MORE, "    if start >= end:\n"), ""),
    "only_one_consumer_of_a_head_is_served": (
        LOWEST.replace(NO_MORE, NO_MORE.replace(":", " or d % max(D // H, 1):")),
        "",
    ),
    "the_rank_before_the_right_one_sends": (
        LOWEST.replace("    mine =", "    p = (p + 1) % P\n    mine ="),
        "",
    ),
    "ranks_with_nothing_to_give_send_no_heads": (LOWEST.replace("[]", "[(0, 0, 0)]"), ""),
    "the_lowest_rank_alone_sends": (BY_RATIO, "P % D == 0"),
    "the_source_offset_follows_the_tp_ratio": (BY_RATIO, "D % P == 0"),
    "an_indivisible_ratio_is_rounded_down": (
        heads("""\
    ratio = P // D
    mine = max(H // P, 1)
    return [(0, p % ratio * mine, mine)] if p // ratio == d else []
"""),
        "H >= P > D and P % D != 0",
    ),
    "an_indivisible_ratio_is_rounded_up": (
        heads("""\
    ratio = -(-P // D)
    mine, theirs = max(H // P, 1), max(H // D, 1)
    return [(0, p % ratio * theirs // ratio, mine)] if p // ratio == d else []
"""),
        "H >= P > D and P % D != 0",
    ),
    "consumer_heads_are_taken_modulo": (
        heads("""\
    first, head = p * H // P, d % H
    return [(head - first, 0, 1)] if D > H and first <= head < first + max(H // P, 1) else []
"""),
        "P <= H < D",
    ),
    "producer_heads_are_taken_modulo": (
        heads("""\
    first = d * H // D
    return [(0, p - first, 1)] if P > H > p and first <= p < first + max(H // D, 1) else []
"""),
        "P > H",
    ),
}


@pytest.mark.parametrize("name", SOURCES)
def test_a_broken_planner_fails_where_the_original_fails(name: str) -> None:
    source, where = SOURCES[name]
    broken = BROKEN[name]
    found, wanted = swept(source, TRIED_TO, where=where), search(broken, TRIED_TO)
    assert found.sweep.tried == wanted.tried
    assert tuple(sizes for sizes, _ in found.failing) == wanted.failing
    for sizes, violations in found.failing:
        charged = {one.invariant for one in judge(broken.subject, *sizes)} & set(IN_SCOPE)
        assert {one.invariant for one in violations} == charged, sizes
