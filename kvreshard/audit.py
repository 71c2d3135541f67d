# SPDX-License-Identifier: Apache-2.0
"""`kvreshard audit`: ask whether somebody's planner moves every KV head to where it belongs."""

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
    from collections.abc import Sequence

    from kvreshard.proofs.audit.decide import Request
    from kvreshard.proofs.audit.model import AuditReport

FORMS = ("terminal", "markdown", "html", "json", "sarif", "junit")
# The gravest first: a planner that fails is more than one that nobody knows of.
_BY_VERDICT = {"FAILS": FAILED, "NOT_DECIDED": NOT_DECIDED, "HOLDS": HOLDS}


@click.command(short_help="Audit somebody's planner.")
@click.argument("targets", nargs=-1, metavar="[TARGET]")
@asking_options
@click.option("--format", "form", type=click.Choice(FORMS), default="terminal", show_default=True)
@click.option("--output", type=click.Path(dir_okay=False, path_type=Path), help="Write to a file.")
@click.option(
    "--write",
    "more",
    multiple=True,
    metavar="FORM=FILE",
    help="Write a further form to a file; may be given again.",
)
@click.option(
    "--pages",
    type=click.Path(file_okay=False, path_type=Path),
    help="Write an HTML page for each audit, and an index of them, into this folder.",
)
@click.option("--configured", is_flag=True, help="Audit what the configuration lists.")
@click.option("--changed", is_flag=True, help="With --configured: the arguments are changed files.")
@click.option("--list-contracts", is_flag=True, help="Name the contracts that ship, and stop.")
def audit(targets: tuple[str, ...], **options: Any) -> None:
    """Say whether the planner TARGET moves every KV head to where it belongs, once.

    TARGET is path/to/file.py::function, package.module:function, or
    DIST==VERSION:package/module.py::function, whose wheel is fetched and unpacked. Nothing of it is
    imported or run, unless --exec says so.

    Exit codes: 0 it holds, 1 a counterexample is told, 2 wrong usage, 3 not decided.
    """
    if options["list_contracts"]:
        _list_contracts()
        return
    for pair in options["more"]:
        if pair.partition("=")[0] not in FORMS or not pair.partition("=")[2]:
            raise click.UsageError(
                f"--write {pair}; legal: FORM=FILE, where FORM is one of {', '.join(FORMS)}"
            )
    requests = _requested(targets, options)
    reports = [_audited(request) for request in requests]
    if not reports:
        click.echo("No configured planner is among the changed files.", err=True)
        return
    _write(reports, options)
    verdicts = {report.verdict.name for report in reports}
    sys.exit(next(code for name, code in _BY_VERDICT.items() if name in verdicts))


def _list_contracts() -> None:
    contracts = needs_prove("kvreshard.proofs.audit.contract")
    for name in contracts.shipped():
        click.echo(f"{name}\n  {contracts.read_contract(name).sentence}")


def _requested(targets: tuple[str, ...], options: dict[str, Any]) -> list[Request]:
    if options["configured"]:
        return _configured(targets, options)
    if options["changed"]:
        raise click.UsageError("--changed is for --configured")
    if len(targets) != 1:
        spellings = needs_prove("kvreshard.proofs.audit.target").SPELLINGS
        raise click.UsageError(f"{len(targets)} targets; legal: one, spelled {spellings}")
    if options["contract"] is None:
        names = ", ".join(needs_prove("kvreshard.proofs.audit.contract").shipped())
        raise click.UsageError(f"--contract is missing; legal: {names}, or the path of a file")
    return [_request(targets[0], options["contract"], options)]


def _configured(files: tuple[str, ...], options: dict[str, Any]) -> list[Request]:
    configured = needs_prove("kvreshard.proofs.audit.configured")
    if options["contract"] is not None or (files and not options["changed"]):
        raise click.UsageError("--configured takes no target and no --contract; the list has them")
    folder = Path.cwd()
    try:
        audits = configured.read_configured(folder)
    except configured.ConfigurationError as error:
        raise click.UsageError(str(error)) from error
    if options["changed"]:
        audits = configured.changed_among(audits, files, folder)
    return [
        _request(
            one.target,
            one.contract,
            {
                **options,
                "require": options["require"] or one.require or None,
                "execute": options["execute"] or one.execute,
            },
        )
        for one in audits
    ]


def _request(target: str, contract: str, options: dict[str, Any]) -> Request:
    decide = needs_prove("kvreshard.proofs.audit.decide")
    request: Request = decide.Request(
        target=target,
        contract=contract,
        command=_command(target, contract, options),
        **asked_with(options),
    )
    return request


def _command(target: str, contract: str, options: dict[str, Any]) -> str:
    """Return the command line without what only says where a report goes."""
    words = ["kvreshard", "audit", target, "--contract", contract]
    if options["where"]:
        words += ["--where", options["where"]]
    if options["sweep_to"] != 16:
        words += ["--sweep-to", str(options["sweep_to"])]
    if options["range_to"] != 12:
        words += ["--range", str(options["range_to"])]
    if options["execute"]:
        words.append("--exec")
    if options["require"]:
        words += ["--require", options["require"]]
    if options["sizes"]:
        words += ["--at", *map(str, options["sizes"])]
        words += ["--bytes-per-head", str(options["bytes_per_head"])]
    return shlex.join(words)


def _audited(request: Request) -> AuditReport:
    decide = needs_prove("kvreshard.proofs.audit.decide")
    try:
        report: AuditReport = decide.audit(request)
    except decide.USAGE_ERRORS as error:
        raise click.UsageError(str(error)) from error
    return report


def _write(reports: Sequence[AuditReport], options: dict[str, Any]) -> None:
    form, output = options["form"], options["output"]
    if output is None and form == "terminal":
        terminal = needs_prove("kvreshard.proofs.audit.forms.terminal")
        console = Console(highlight=False)
        for report in reports:
            terminal.print_audit(report, console)
    elif output is None:
        click.echo(_formed(form, reports))
    else:
        output.write_text(_formed(form, reports) + "\n", encoding="utf-8")
    for pair in options["more"]:
        name, _, file = pair.partition("=")
        Path(file).write_text(_formed(name, reports) + "\n", encoding="utf-8")
    if options["pages"] is not None:
        _write_pages(reports, options["pages"])


def _write_pages(reports: Sequence[AuditReport], folder: Path) -> None:
    forms = needs_prove("kvreshard.proofs.audit.forms")
    index = needs_prove("kvreshard.proofs.audit.forms.index")
    folder.mkdir(parents=True, exist_ok=True)
    listed = []
    for number, report in enumerate(reports, start=1):
        page = f"{number}-{report.source.function.name}.html"
        (folder / page).write_text(forms.FORMS["html"](report) + "\n", encoding="utf-8")
        listed.append((report, page))
    (folder / "index.html").write_text(index.as_index(listed) + "\n", encoding="utf-8")


def _formed(form: str, reports: Sequence[AuditReport]) -> str:
    write = needs_prove("kvreshard.proofs.audit.forms").FORMS[form]
    if form in ("sarif", "junit"):
        return str(write(*reports))
    if form != "html" or len(reports) == 1:
        return "\n\n".join(write(report) for report in reports)
    raise click.UsageError(
        f"--format html with {len(reports)} audits; legal: one audit, or --pages FOLDER"
    )
