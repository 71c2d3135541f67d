# SPDX-License-Identifier: Apache-2.0
"""Ask a target that is executed, with plain numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from kvreshard.proofs.audit.judging import Plans
from kvreshard.proofs.audit.sweep import named

if TYPE_CHECKING:
    from collections.abc import Callable

    from kvreshard.proofs.audit.execute import Executed
    from kvreshard.proofs.audit.model import Sizes


@dataclass(frozen=True)
class Running:
    """A target that runs in a process of its own.

    Attributes:
        running: the process.
        unit: what the contract's copies count in.
        has: (H, P, D) to whether the planner is meant for the sizes.
    """

    running: Executed
    unit: str
    has: Callable[[Sizes], bool]
    executed = True

    def in_domain(self, sizes: Sizes) -> bool:
        """Whether the planner is meant for the sizes."""
        return self.has(sizes)

    def plans(self, sizes: Sizes, bytes_per_head: int) -> Plans:
        """Every copy at the sizes.

        Raises:
            ExecutionStopped: the target gave no answer.
        """
        _, P, D = sizes
        pairs = [(p, d) for p in range(P) for d in range(D)]
        answers = self.running.plans(named(sizes, p, d, bytes_per_head) for p, d in pairs)
        unit = 1 if self.unit == "bytes" else bytes_per_head
        copies, raised = {}, {}
        for pair, answer in zip(pairs, answers, strict=True):
            if answer.raised:
                raised[pair] = answer.raised
            elif answer.copies:
                copies[pair] = tuple((s * unit, t * unit, n * unit) for s, t, n in answer.copies)
        return Plans(sizes, bytes_per_head, copies, raised)

    def refused(self, sizes: Sizes, bytes_per_head: int) -> bool | None:
        """Whether the guard refuses; None if there is none.

        Raises:
            ExecutionStopped: the target gave no answer.
        """
        return self.running.refused(named(sizes, bytes_per_head=bytes_per_head))
