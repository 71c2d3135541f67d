# SPDX-License-Identifier: Apache-2.0
"""Planners written as source, opened with a contract as an audit opens them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kvreshard.proofs.audit.asking import Asking
from kvreshard.proofs.audit.contract import read_contract
from kvreshard.proofs.audit.domain import Domain
from kvreshard.proofs.audit.sweep import Lifted, Swept, sweep
from kvreshard.proofs.lifting.program import Program

if TYPE_CHECKING:
    from pathlib import Path

HEADER = (
    "def plan(total_num_kv_heads, producer_tp_size, producer_tp_rank,"
    " consumer_tp_size, consumer_tp_rank{more}):\n"
)
HEADS = HEADER.format(more="")
BYTES = HEADER.format(more=", bytes_per_head")
# Short names for the sizes and ranks, before a planner's own lines.
SHORT = """\
    H, P, p = total_num_kv_heads, producer_tp_size, producer_tp_rank
    D, d = consumer_tp_size, consumer_tp_rank
"""


def heads(body: str) -> str:
    """Return the source of a planner that lists heads, from its lines over H, P, p, D and d."""
    return HEADS + SHORT + body


def in_bytes(body: str) -> str:
    """Return the source of a planner that lists bytes; it has bytes_per_head as well."""
    return BYTES + SHORT + body


def asking_of(source: str, contract: str | Path = "head-list", guard: bool = True) -> Asking:
    """Open a planner called `plan`, as `planner.py`, with a contract by name or path."""
    read = read_contract(str(contract))
    program = Program.parse(source, "planner.py")
    planner = program.function("plan")
    assert planner is not None
    asked = program.function(read.guard) if guard and read.guard else None
    return Asking(read, planner, asked)


def domain_of(source: str, where: str = "", contract: str | Path = "head-list") -> Domain:
    """Open a planner and narrow its domain."""
    return Domain.of(asking_of(source, contract), where)


def swept(source: str, maximum: int, contract: str | Path = "head-list", where: str = "") -> Swept:
    """Try a planner at every size up to a bound."""
    domain = domain_of(source, where, contract)
    return sweep(Lifted(domain.asking, domain.has), maximum)
