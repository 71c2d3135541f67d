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
from typing import TYPE_CHECKING, Any

import z3

from kvreshard.codegen import vector_inputs
from kvreshard.codegen.environment import template
from kvreshard.codegen.evidence import EmissionRefused
from kvreshard.codegen.vector_judge import complaints
from kvreshard.codegen.vector_text import as_text
from kvreshard.proofs.counterexample import specified
from kvreshard.proofs.evaluate import executable
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
    from kvreshard.proofs.judge import Subject
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
    facts = _facts(document)
    texts = {"vectors.json": as_text(document)}
    texts |= {name: template(of).render(facts) for name, of in _TEXTS.items()}
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
    planned = [*_swept(spec), *_indivisible(spec), *_wide(spec), *_faults(spec), *_models(spec)]
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
        "cases": [*planned, *_refused(), *_refused_ranks()],
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


def _wide(spec: _Specification) -> Iterator[Case]:
    why = "Larger than most: a planner may have a bound that small sizes do not show."
    for sizes in vector_inputs.WIDE:
        yield _planned(spec, "wide", why, sizes, vector_inputs.SWEPT_BYTES_PER_HEAD)


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


def _refused_ranks() -> Iterator[Case]:
    for sizes, producer, consumer in vector_inputs.ranks_refused():
        ranks = f"{_number(producer)}_to_{_number(consumer)}"
        yield {
            "name": f"{_name('refused_rank', sizes)}_rank_{ranks}",
            "why": "A rank counts from 0 and is smaller than its group.",
            **sizes._asdict(),
            "producer_tp_rank": producer,
            "consumer_tp_rank": consumer,
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
    heads, producers, consumers = map(_number, sizes)
    return f"{kind}_h{heads}_p{producers}_d{consumers}"


def _number(value: int) -> str:
    return str(value).replace("-", "minus_")


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


# The documents beside the data.


def _facts(document: Document) -> dict[str, Any]:
    planned = [case for case in document["cases"] if not case.get("refused")]
    return {
        "format": FORMAT,
        "case_count": len(document["cases"]),
        "refused_count": len(document["cases"]) - len(planned),
        "largest": {
            name: max(case[name] for case in planned) for name in vector_inputs.Sizes._fields
        },
        "regimes": dict(Counter(case["regime"] for case in planned)),
        "elections": document["elections"],
        "faults": vector_inputs.FAULTS,
        "swept_to": vector_inputs.SWEPT_TO,
        "block_size": vector_inputs.BLOCK_SIZE,
        "element_bytes": vector_inputs.ELEMENT_BYTES,
        "copy_columns": COPY_COLUMNS,
        "length_columns": LENGTH_COLUMNS,
    }
