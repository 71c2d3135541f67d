# SPDX-License-Identifier: Apache-2.0
"""What is known of a planner that is wrong on purpose."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from kvreshard.proofs.judge import Subject

DEFAULT_BYTES_PER_HEAD = 65_536


@dataclass(frozen=True)
class BrokenPlanner:
    """A wrong planner, what it breaks, and where it was seen.

    Attributes:
        name: says what the planner does wrong; the key in the registry.
        sentence: the same as a sentence.
        seen_in: public reports of the fault; empty for one that is made up.
        subject: the planner.
        invariants: exactly those it violates on its domain, the one that tells most first.
        domain: the legal sizes that the planner is meant for, in words.
        in_domain: (H, P, D) to whether it is meant for these sizes, of which it is asked legal
            ones only.
        reported: H, P and D of the public report, or None.
        bytes_per_head: bytes of one head in one block, as reported where the report says so.
    """

    name: str
    sentence: str
    seen_in: tuple[str, ...]
    subject: Subject
    invariants: tuple[str, ...]
    domain: str
    in_domain: Callable[[int, int, int], bool]
    reported: tuple[int, int, int] | None = None
    bytes_per_head: int = DEFAULT_BYTES_PER_HEAD


def any_sizes(H: int, P: int, D: int) -> bool:  # noqa: ARG001 - has the parameters of in_domain
    """Accept all legal sizes."""
    return True


ANY_SIZES = "all legal sizes"
