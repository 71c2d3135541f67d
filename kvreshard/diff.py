# SPDX-License-Identifier: Apache-2.0
"""`kvreshard diff`: say where two planners make other copies."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console

from kvreshard.asking import asked_with, asking_options
from kvreshard.exit_codes import FAILED, HOLDS, NOT_DECIDED
from kvreshard.extras import needs_prove

if TYPE_CHECKING:
    from kvreshard.proofs.audit.difference import DiffRequest
    from kvreshard.proofs.audit.difference_model import DiffReport

# The module of kvreshard.proofs.audit.forms that writes each form, and its function.
FORMS = {
    "terminal": ("diff_terminal", "as_terminal"),
    "markdown": ("diff_markdown", "as_markdown"),
    "json": ("diff_json", "as_json"),
}
# By the name of the verdict, a value of `difference_model.Equality`.
_BY_VERDICT = {"EQUAL": HOLDS, "DIFFERENT": FAILED, "NOT_DECIDED": NOT_DECIDED}


@click.command(short_help="Compare two planners.")
@click.argument("old")
@click.argument("new")
@asking_options
@click.option(
    "--old-contract",
    default="",
    metavar="NAME|FILE",
    help="How OLD is called and read, where it is not called as NEW is.",
)
@click.option(
    "--format", "form", type=click.Choice(list(FORMS)), default="terminal", show_default=True
)
@click.option("--output", type=click.Path(dir_okay=False, path_type=Path), help="Write to a file.")
def diff(old: str, new: str, **options: Any) -> None:
    """Say where the planners OLD and NEW make other copies, smallest input first.

    Each is named as for `kvreshard audit`: path/to/file.py::function, package.module:function, or
    DIST==VERSION:package/module.py::function. They differ where the copies of some pair of ranks
    do, in whatever order they come, or where one raises alone. What the guards refuse is told
    beside it.

    Exit codes: 0 they are equal, 1 they differ, 2 wrong usage, 3 not decided.
    """
    if options["contract"] is None:
        names = ", ".join(needs_prove("kvreshard.proofs.audit.contract").shipped())
        raise click.UsageError(f"--contract is missing; legal: {names}, or the path of a file")
    difference = needs_prove("kvreshard.proofs.audit.difference")
    errors = needs_prove("kvreshard.proofs.audit.decide").USAGE_ERRORS
    try:
        report: DiffReport = difference.diff(_request(old, new, options))
    except errors as error:
        raise click.UsageError(str(error)) from error
    _write(report, options["form"], options["output"])
    sys.exit(_BY_VERDICT[report.verdict.name])


def _request(old: str, new: str, options: dict[str, Any]) -> DiffRequest:
    difference = needs_prove("kvreshard.proofs.audit.difference")
    request: DiffRequest = difference.DiffRequest(
        old=old,
        new=new,
        contract=options["contract"],
        command=_command(old, new, options),
        old_contract=options["old_contract"],
        **asked_with(options),
    )
    return request


def _command(old: str, new: str, options: dict[str, Any]) -> str:
    """Return the command line without what only says where a report goes."""
    words = ["kvreshard", "diff", old, new, "--contract", options["contract"]]
    given = {
        "--old-contract": (options["old_contract"], ""),
        "--where": (options["where"], ""),
        "--sweep-to": (options["sweep_to"], 16),
        "--range": (options["range_to"], 12),
        "--bytes-per-head": (options["bytes_per_head"], 65_536),
        "--require": (options["require"], None),
    }
    for word, (value, usual) in given.items():
        if value != usual:
            words += [word, str(value)]
    if options["execute"]:
        words.append("--exec")
    if options["sizes"]:
        words += ["--at", *map(str, options["sizes"])]
    return shlex.join(words)


def _write(report: DiffReport, form: str, output: Path | None) -> None:
    module, function = FORMS[form]
    write = needs_prove(f"kvreshard.proofs.audit.forms.{module}")
    if output is not None:
        output.write_text(f"{getattr(write, function)(report)}\n", encoding="utf-8")
    elif form == "terminal":
        write.print_diff(report, Console(highlight=False))
    else:
        click.echo(getattr(write, function)(report))
