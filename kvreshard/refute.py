# SPDX-License-Identifier: Apache-2.0
"""`kvreshard refute`: tell how a planner that is known to be broken goes wrong."""

from __future__ import annotations

import difflib
import sys
import textwrap
from typing import TYPE_CHECKING

import click

from kvreshard.exit_codes import FAILED, HOLDS
from kvreshard.extras import needs_prove

if TYPE_CHECKING:
    from kvreshard.proofs.broken import BrokenPlanner

# The module of kvreshard.proofs.story that writes each form.
FORMATS = {"terminal": "terminal", "markdown": "markdown", "json": "json_form"}
# Every pair of ranks is asked, in plain Python.
LARGEST = 128

Sizes = tuple[int, int, int]


@click.command(short_help="Tell how a broken planner goes wrong.")
@click.argument("name", required=False)
@click.option("--list", "listing", is_flag=True, help="Name all broken planners, and stop.")
@click.option(
    "--at",
    "sizes",
    nargs=3,
    type=click.IntRange(1, LARGEST),
    metavar="H P D",
    help="KV heads, producer and consumer TP size; by default the smallest that go wrong.",
)
@click.option(
    "--bytes-per-head", type=click.IntRange(1), help="Bytes of one head in one block of one region."
)
@click.option(
    "--format", "form", type=click.Choice(list(FORMATS)), default="terminal", show_default=True
)
def refute(
    name: str | None,
    listing: bool,
    sizes: Sizes | None,
    bytes_per_head: int | None,
    form: str,
) -> None:
    """Tell how the broken planner NAME goes wrong: on what input, and who wrote what.

    The planners restate faults seen in the wild, or made up. Exit codes: 0 the planner handles
    the input right, 1 a counterexample is told, 2 wrong usage.
    """
    broken: dict[str, BrokenPlanner] = needs_prove("kvreshard.proofs.broken").BROKEN
    if listing:
        click.echo("\n\n".join(_entry(planner) for planner in broken.values()))
        return
    planner = _named(broken, name)
    building = needs_prove("kvreshard.proofs.story.build")
    try:
        story = building.story_of(planner, sizes, bytes_per_head)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="'--at'") from error
    if story is None:
        where = "every input tried" if sizes is None else "H={}, P={}, D={}".format(*sizes)
        click.echo(f"{planner.name} breaks no invariant at {where}")
        sys.exit(HOLDS)
    module = needs_prove(f"kvreshard.proofs.story.{FORMATS[form]}")
    click.echo(getattr(module, f"as_{form}")(story))
    sys.exit(FAILED)


def _entry(planner: BrokenPlanner) -> str:
    seen_in = ", ".join(planner.seen_in) or "made up"
    said = textwrap.wrap(f"{planner.sentence} Seen in: {seen_in}.", 78)
    return "\n".join([planner.name, *(f"  {line}" for line in said)])


def _named(broken: dict[str, BrokenPlanner], name: str | None) -> BrokenPlanner:
    if name is not None and name in broken:
        return broken[name]
    close = difflib.get_close_matches(name or "", broken, n=3)
    names = [*close, *(one for one in broken if one not in close)]
    problem = "NAME is missing" if name is None else f"NAME={name} is not a broken planner"
    raise click.UsageError(f"{problem}; legal:\n" + "\n".join(f"  {one}" for one in names))
