# SPDX-License-Identifier: Apache-2.0
"""Judge test vectors before they are written: sets of heads, and no formula of the plan.

The length check of the specification is asked only where the judge of planners asks for one; the
lengths in the vectors are judged by listing heads.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from kvreshard.proofs.counterexample import specified
from kvreshard.proofs.judge import Copy, Subject, held_heads, is_legal, judge
from kvreshard.spec.election import POLICIES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

Case = dict[str, Any]
Document = dict[str, Any]


def complaints(document: Document) -> list[str]:
    """Return what is wrong with the vectors, in words: case, election, what was seen.

    Every plan is read back from the rows as they will be written.
    """
    names = Counter(case["name"] for case in document["cases"])
    found = [
        f"vectors: {name} is there {count} times" for name, count in names.items() if count > 1
    ]
    accepts = specified(POLICIES[0]).accepts
    for case in document["cases"]:
        faults = _wrong_refusal(case) if case.get("refused") else _wrong_case(case, accepts)
        found += [f"vectors: {case['name']}: {fault}" for fault in faults]
    return found


def _sizes(case: Case) -> tuple[int, int, int]:
    return case["total_num_kv_heads"], case["producer_tp_size"], case["consumer_tp_size"]


def _wrong_refusal(case: Case) -> Iterator[str]:
    heads, *groups = _sizes(case)
    legal = heads >= 1 and all(size >= 1 and is_legal(heads, size) for size in groups)
    ranks = [case[name] for name in ("producer_tp_rank", "consumer_tp_rank") if name in case]
    if not ranks and legal:
        yield "legal sizes are refused"
    if ranks and not legal:
        yield "it is about ranks, and its sizes are not legal either"
    if ranks and all(rank in range(size) for rank, size in zip(ranks, groups, strict=True)):
        yield "ranks of their groups are refused"


def _wrong_case(case: Case, accepts: Callable[..., bool]) -> Iterator[str]:
    heads, producers, consumers = _sizes(case)
    size = case["bytes_per_head"]
    if case["regime"] != _regime_by_sets(heads, producers, consumers):
        yield f"regime {case['regime']} is not what the sets of holders say"
    for side, ranks in (("producer", producers), ("consumer", consumers)):
        blocks = [list(held_heads(heads, ranks, rank)) for rank in range(ranks)]
        if case[f"{side}_blocks"] != blocks:
            yield f"{side}_blocks are not the heads that the ranks hold"
        if any(len(block) * size != case[f"{side}_block_bytes"] for block in blocks):
            yield f"{side}_block_bytes are not those of the heads that a rank holds"
    defined = {policy.name for policy in POLICIES if not policy.needs_divisible_pair}
    if not producers % consumers or not consumers % producers:
        defined = {policy.name for policy in POLICIES}
    if sorted(name for plan in case["plans"] for name in plan["elections"]) != sorted(defined):
        yield "not every election that is defined has one plan"
    for plan in case["plans"]:
        if len({(row[0], row[1]) for row in plan["copies"]}) != len(plan["copies"]):
            yield "two copies for one pair of ranks"
        for violation in judge(_read_back(plan, accepts), heads, producers, consumers):
            yield f"{' and '.join(plan['elections'])}: {violation.invariant}: {violation.seen}"
        for row in plan["copies"]:
            if row[5:] != [number * size for number in row[2:5]]:
                yield f"copy {row}: the bytes are not those of the heads"
    yield from _wrong_lengths(case)


def _read_back(plan: dict[str, Any], accepts: Callable[..., bool]) -> Subject:
    """Return a planner that answers with what the rows say, whatever the sizes (so ARG005)."""
    copies = {(row[0], row[1]): Copy(True, *row[2:5]) for row in plan["copies"]}
    nothing = Copy(False, 0, 0, 0)
    return Subject(
        plan=lambda heads, producers, p, consumers, d: copies.get((p, d), nothing),  # noqa: ARG005
        senders=lambda heads, producers, consumers, d: plan["senders"][d],  # noqa: ARG005
        receivers=lambda heads, producers, p, consumers: plan["receivers"][p],  # noqa: ARG005
        accepts=accepts,
    )


def _wrong_lengths(case: Case) -> Iterator[str]:
    heads, producers, consumers = _sizes(case)
    mine = len(held_heads(heads, producers, 0))
    theirs = len(held_heads(heads, consumers, 0))
    for a, b, accepted in case["lengths"]:
        per_head, rest = divmod(a, mine)
        right = rest == 0 and per_head >= 1 and b == per_head * theirs
        if accepted is not right:
            yield f"lengths {a} and {b} are {'accepted' if accepted else 'refused'}"
    if {accepted for *_, accepted in case["lengths"]} != {True, False}:
        yield "the lengths are all accepted or all refused"


def _regime_by_sets(heads: int, producers: int, consumers: int) -> str:
    def sharding(size: int) -> str:
        holders = sum(0 in held_heads(heads, size, rank) for rank in range(size))
        return "replicated" if holders > 1 else "split"

    larger, smaller = max(producers, consumers), min(producers, consumers)
    divides = "divisible" if larger in range(smaller, larger + 1, smaller) else "indivisible"
    return f"{sharding(producers)}_to_{sharding(consumers)}_{divides}"
