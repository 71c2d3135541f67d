# SPDX-License-Identifier: Apache-2.0
"""Open a target: its source, lifted, with the contract that it is asked through."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from kvreshard.proofs.audit.asking import Asking
from kvreshard.proofs.audit.contract import Contract, ContractError
from kvreshard.proofs.audit.extract import extract
from kvreshard.proofs.audit.model import Part, Place, Source
from kvreshard.proofs.lifting.program import Program
from kvreshard.proofs.lifting.unsupported import UnsupportedError

if TYPE_CHECKING:
    from kvreshard.proofs.audit.target import Located


@dataclass(frozen=True)
class Opened:
    """A target that was parsed, and not run.

    Attributes:
        located: where its source is.
        contract: how it is asked.
        asking: the planner and the guard, lifted.
    """

    located: Located
    contract: Contract
    asking: Asking

    @property
    def source(self) -> Source:
        """The target by reference, for a report."""
        parts = extract(self.asking.planner.program.tree, [self.located.function])
        node = self.asking.planner.node
        own = Part(self.located.function, node.lineno, node.end_lineno or node.lineno)
        return Source(
            target=self.located.target,
            origin=self.located.origin,
            file=self.located.shown,
            sha256=self.located.sha256,
            function=own,
            needs=tuple(part for part in parts.needs if part.name != own.name),
        )

    def place(self, error: UnsupportedError) -> Place:
        """Return where something is whose meaning is not known."""
        return Place(error.file or self.located.shown, error.line, error.what)

    def own_line(self, what: str) -> Place:
        """Return the line of the planner, to say something of it as a whole."""
        return Place(self.located.shown, self.asking.planner.node.lineno, what)


def opened(located: Located, contract: Contract) -> Opened:
    """Parse a target, and find in it what its contract asks.

    Raises:
        ContractError: the target is no plain function.
    """
    program = Program.parse(located.text, located.shown)
    try:
        planner = program.function(located.function)
        guard = program.function(contract.guard) if contract.guard else None
    except UnsupportedError as error:
        raise ContractError(
            f"target={located.target}: {located.shown}:{error.line} has {error.what}; legal: a "
            "function whose name means one thing"
        ) from error
    if planner is None:
        raise ContractError(f"target={located.target}: not a plain function")
    return Opened(located, contract, Asking(contract, planner, guard))
