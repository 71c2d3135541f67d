# SPDX-License-Identifier: Apache-2.0
"""Write the test vectors: the plans of the specification as data, for planners of any project.

The answers are computed with the formulas of the specification, run in plain Python. What is about
to be written is then judged with sets of heads, by code that knows no formula, and nothing is
written unless every case passes.

The schema, the format document and the test file that travel with the data are templates like
the planner's: `kvreshard generate` writes them and CI compares them, so that a folder copied from
a checkout is always of one piece.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jinja2
import z3

from kvreshard.codegen import vector_inputs
from kvreshard.codegen.evidence import EmissionRefused
from kvreshard.codegen.vector_text import as_text
from kvreshard.proofs.counterexample import specified
from kvreshard.proofs.evaluate import executable
from kvreshard.proofs.judge import Copy, Subject, held_heads, is_legal, judge
from kvreshard.spec.canonical import spec_hash
from kvreshard.spec.election import POLICIES, pair_is_divisible
from kvreshard.spec.formula import unfold
from kvreshard.spec.ownership import first_head, head_count
from kvreshard.spec.parameters import D, H, P
from kvreshard.spec.regimes import REGIMES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from kvreshard.codegen.vector_inputs import Sizes
    from kvreshard.proofs.evaluate import Value
    from kvreshard.spec.election import Policy

Case = dict[str, Any]
Document = dict[str, Any]

FORMAT = 1
FOLDER = "vectors"
COPY_COLUMNS = (
    "producer_tp_rank",
    "consumer_tp_rank",
    "src_head_offset",
    "dst_head_offset",
    "head_count",
    "src_byte_offset",
    "dst_byte_offset",
    "byte_count",
)
LENGTH_COLUMNS = ("producer_region_bytes", "consumer_region_bytes", "accepted")

_TEMPLATES = Path(__file__).parent / "templates"
_TEXTS = {
    "schema.json": "vectors_schema.json.j2",
    "FORMAT.md": "vectors_format.md.j2",
    "test_planner_vectors.py": "vectors_test.py.j2",
}


def render_vectors() -> dict[str, str]:
    """Return the text of each file of generated/vectors/, by its path below generated/.

    Raises:
        EmissionRefused: a case does not pass the judge.
    """
    return dict(_rendered(spec_hash()))


@lru_cache(maxsize=1)
def _rendered(spec_sha256: str) -> dict[str, str]:
    """Return the texts for a specification; they take seconds, and depend on nothing else."""
    document = vectors(spec_sha256)
    wrong = complaints(document)
    if wrong:
        raise EmissionRefused(wrong)
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_TEMPLATES),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,
    )
    facts = _facts(document)
    texts = {"vectors.json": as_text(document)}
    texts |= {name: environment.get_template(of).render(facts) for name, of in _TEXTS.items()}
    return {f"{FOLDER}/{name}": text for name, text in texts.items()}


@dataclass(frozen=True)
class _Specification:
    """The formulas of the specification that the vectors need, made executable once."""

    subjects: dict[Policy, Subject]
    pair_is_divisible: Callable[..., Value]
    first_head: Callable[..., Value]
    head_count: Callable[..., Value]
    regimes: dict[str, z3.BoolRef]

    @staticmethod
    def now() -> _Specification:
        """Return them as the specification stands."""
        return _Specification(
            subjects={policy: specified(policy) for policy in POLICIES},
            pair_is_divisible=executable(pair_is_divisible),
            first_head=executable(first_head),
            head_count=executable(head_count),
            regimes={regime.name: unfold(regime.condition()) for regime in REGIMES},
        )

    def regime(self, sizes: Sizes) -> str:
        """Return the name of the one regime that the sizes are in."""
        values = [(name, z3.IntVal(size)) for name, size in zip((H, P, D), sizes, strict=True)]
        (found,) = (
            name
            for name, condition in self.regimes.items()
            if z3.is_true(z3.simplify(z3.substitute(condition, *values)))
        )
        return found

    def accepts(self, sizes: Sizes, producer_bytes: int, consumer_bytes: int) -> bool:
        """Whether the length check accepts; it does not depend on the election."""
        return self.subjects[POLICIES[0]].accepts(*sizes, producer_bytes, consumer_bytes)


def vectors(spec_sha256: str) -> Document:
    """Return all vectors, not yet judged, with the hash of the specification they come from."""
    spec = _Specification.now()
    planned = [*_swept(spec), *_indivisible(spec), *_faults(spec), *_models(spec)]
    return {
        "format": FORMAT,
        "about": "Right transfer plans between tensor-parallel groups; see FORMAT.md.",
        "provenance": {
            "project": "kvreshard",
            "generator": "kvreshard generate",
            "spec_sha256": spec_sha256,
        },
        "copy_columns": list(COPY_COLUMNS),
        "length_columns": list(LENGTH_COLUMNS),
        "elections": [policy.name for policy in POLICIES],
        "cases": [*planned, *_refused()],
    }


# Which cases there are.


def _swept(spec: _Specification) -> Iterator[Case]:
    why = f"One of all legal sizes up to {vector_inputs.SWEPT_TO}."
    for sizes in vector_inputs.swept():
        yield _planned(spec, "sweep", why, sizes, vector_inputs.SWEPT_BYTES_PER_HEAD)


def _indivisible(spec: _Specification) -> Iterator[Case]:
    why = "Neither TP size divides the other."
    for sizes in vector_inputs.INDIVISIBLE:
        yield _planned(spec, "indivisible", why, sizes, vector_inputs.SWEPT_BYTES_PER_HEAD)


def _faults(spec: _Specification) -> Iterator[Case]:
    for fault in vector_inputs.FAULTS:
        for sizes in fault.sizes:
            case = _planned(
                spec,
                f"fault_{fault.name}",
                fault.told,
                sizes,
                fault.bytes_per_head,
                fault.lengths,
            )
            case["fault"] = {
                "name": fault.name,
                "source": fault.source,
                "sizes": "reported" if fault.reported else "chosen",
            }
            yield case


def _models(spec: _Specification) -> Iterator[Case]:
    why = (
        f"The shape of real models: one layer, blocks of {vector_inputs.BLOCK_SIZE} tokens, "
        f"{vector_inputs.ELEMENT_BYTES} bytes per element."
    )
    for (sizes, size), names in vector_inputs.model_shapes().items():
        case = _planned(spec, f"model_{size}_bytes", why, sizes, size)
        case["models"] = names
        yield case


def _refused() -> Iterator[Case]:
    for sizes in vector_inputs.REFUSED:
        yield {
            "name": _name("refused", sizes),
            "why": "A TP size divides the heads or is a multiple of them, and neither is 0.",
            **sizes._asdict(),
            "refused": True,
        }


# What each case says.


def _planned(
    spec: _Specification,
    kind: str,
    why: str,
    sizes: Sizes,
    bytes_per_head: int,
    lengths: tuple[tuple[int, int], ...] = (),
) -> Case:
    heads, producers, consumers = sizes
    return {
        "name": _name(kind, sizes),
        "why": why,
        "regime": spec.regime(sizes),
        **sizes._asdict(),
        "bytes_per_head": bytes_per_head,
        "producer_block_bytes": spec.head_count(heads, producers) * bytes_per_head,
        "consumer_block_bytes": spec.head_count(heads, consumers) * bytes_per_head,
        "producer_blocks": _blocks(spec, heads, producers),
        "consumer_blocks": _blocks(spec, heads, consumers),
        "plans": _plans(spec, sizes, bytes_per_head),
        "lengths": [
            [*pair, spec.accepts(sizes, *pair)]
            for pair in _length_pairs(spec, sizes, bytes_per_head, lengths)
        ],
    }


def _name(kind: str, sizes: Sizes) -> str:
    heads, producers, consumers = (str(size).replace("-", "minus_") for size in sizes)
    return f"{kind}_h{heads}_p{producers}_d{consumers}"


def _blocks(spec: _Specification, heads: int, size: int) -> list[list[int]]:
    """Return the heads in each rank's block, by slot."""
    count = int(spec.head_count(heads, size))
    starts = [int(spec.first_head(heads, size, rank)) for rank in range(size)]
    return [list(range(start, start + count)) for start in starts]


def _plans(spec: _Specification, sizes: Sizes, bytes_per_head: int) -> list[dict[str, Any]]:
    """Return the distinct plans, each with the elections that lead to it."""
    plans: list[dict[str, Any]] = []
    _, producers, consumers = sizes
    for policy, subject in spec.subjects.items():
        if policy.needs_divisible_pair and not spec.pair_is_divisible(producers, consumers):
            continue
        plan = _plan(subject, sizes, bytes_per_head)
        for other in plans:
            if plan | {"elections": other["elections"]} == other:
                other["elections"].append(policy.name)
                break
        else:
            plans.append({"elections": [policy.name], **plan})
    return plans


def _plan(subject: Subject, sizes: Sizes, bytes_per_head: int) -> dict[str, Any]:
    heads, producers, consumers = sizes
    return {
        "copies": [
            [p, d, *copy[1:], *(number * bytes_per_head for number in copy[1:])]
            for d in range(consumers)
            for p in range(producers)
            if (copy := subject.plan(heads, producers, p, consumers, d)).sends
        ],
        "senders": [
            list(subject.senders(heads, producers, consumers, d)) for d in range(consumers)
        ],
        "receivers": [
            list(subject.receivers(heads, producers, p, consumers)) for p in range(producers)
        ],
    }


def _length_pairs(
    spec: _Specification, sizes: Sizes, bytes_per_head: int, extra: tuple[tuple[int, int], ...]
) -> list[tuple[int, int]]:
    """Return the pairs of lengths that a case asks about, in bytes."""
    heads, producers, consumers = sizes
    mine, theirs = (int(spec.head_count(heads, size)) for size in (producers, consumers))
    a, b = mine * bytes_per_head, theirs * bytes_per_head
    pairs = [
        (a, b),
        (mine, theirs),
        (3 * mine, 3 * theirs),
        *extra,
        # Twice the bytes on one side, one byte too many, and nothing at all.
        (2 * a, b),
        (a, 2 * b),
        (a + 1, b),
        (a, b + 1),
        (0, 0),
        (-a, -b),
        (a, 0),
        # The ratio of the TP sizes.
        (consumers * bytes_per_head, producers * bytes_per_head),
        # The ratio of the heads, where that need not be a whole number of bytes for each.
        *((size, size * theirs // mine) for size in (1, 3, 5) if size * theirs % mine == 0),
    ]
    return list(dict.fromkeys(pairs))


# The judge.


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
    if heads >= 1 and all(size >= 1 and is_legal(heads, size) for size in groups):
        yield "legal sizes are refused"


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


# The documents beside the data.


def _facts(document: Document) -> dict[str, Any]:
    planned = [case for case in document["cases"] if not case.get("refused")]
    return {
        "format": FORMAT,
        "case_count": len(document["cases"]),
        "refused_count": len(document["cases"]) - len(planned),
        "regimes": dict(Counter(case["regime"] for case in planned)),
        "elections": document["elections"],
        "faults": vector_inputs.FAULTS,
        "swept_to": vector_inputs.SWEPT_TO,
        "block_size": vector_inputs.BLOCK_SIZE,
        "element_bytes": vector_inputs.ELEMENT_BYTES,
        "copy_columns": COPY_COLUMNS,
        "length_columns": LENGTH_COLUMNS,
    }
