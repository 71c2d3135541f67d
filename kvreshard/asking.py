# SPDX-License-Identifier: Apache-2.0
"""The options with which planners are asked, for every command that asks them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from kvreshard.extras import needs_prove

if TYPE_CHECKING:
    from collections.abc import Callable

# The word of --require for each method, by the name of its value in `model.Method`.
REQUIRED = {"all-sizes": "ALL_SIZES", "range": "RANGE", "finite": "FINITE"}
# Every pair of ranks is asked.
LARGEST = 256


def asking_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options that say how a planner is asked."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


_OPTIONS = (
    click.option("--contract", metavar="NAME|FILE", help="How the planner is called and read."),
    click.option(
        "--where",
        default="",
        metavar="CONDITION",
        help="Narrow the domain by a condition on H, P and D, such as 'P % D == 0'.",
    ),
    click.option(
        "--sweep-to",
        default=16,
        show_default=True,
        type=click.IntRange(1, 64),
        help="Try every H, P and D up to this.",
    ),
    click.option(
        "--range",
        "range_to",
        default=12,
        show_default=True,
        type=click.IntRange(1, 64),
        help="Where there is no proof for all sizes, prove each H, P and D up to this.",
    ),
    click.option(
        "--at",
        "sizes",
        nargs=3,
        type=click.IntRange(1, LARGEST),
        metavar="H P D",
        help="Tell these sizes too: KV heads, producer and consumer TP size.",
    ),
    click.option(
        "--bytes-per-head",
        default=65_536,
        show_default=True,
        type=click.IntRange(1),
        help="Bytes of one head in one block, in what is told.",
    ),
    click.option(
        "--require", type=click.Choice(list(REQUIRED)), help="The weakest method that counts."
    ),
    click.option("--exec", "execute", is_flag=True, help="Allow targets to be run, with limits."),
    click.option(
        "--seconds",
        default=300,
        show_default=True,
        type=click.IntRange(1),
        help="What --exec may take in all, for each target.",
    ),
    click.option(
        "--memory",
        default=2048,
        show_default=True,
        type=click.IntRange(64),
        help="MiB that --exec may take, for each target.",
    ),
)


def asked_with(options: dict[str, Any]) -> dict[str, Any]:
    """Return what these options say, by the names that requests have for it."""
    methods = needs_prove("kvreshard.proofs.audit.model").Method
    limits = needs_prove("kvreshard.proofs.audit.execute").Limits
    required = options["require"]
    return {
        "where": options["where"],
        "at": options["sizes"],
        "bytes_per_head": options["bytes_per_head"],
        "required": methods[REQUIRED[required]] if required else None,
        "swept_to": options["sweep_to"],
        "range_to": options["range_to"],
        "execute": options["execute"],
        "limits": replace(
            limits(), seconds=options["seconds"], memory_bytes=options["memory"] * 2**20
        ),
    }
