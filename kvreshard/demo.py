# SPDX-License-Identifier: Apache-2.0
"""`kvreshard demo`: move a KV cache between groups of different size and compare every byte."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
from rich.console import Console
from rich.table import Table

from kvreshard.demo_case import Case, check_blocks, check_memory
from kvreshard.generated.planner import first_head, plan_transfer, replica_count
from kvreshard.models import MODELS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from kvreshard.demo_ranks import CaseOutcome

TRANSPORTS = {
    "in-process": ("in-process",),
    "mooncake": ("mooncake",),
    "both": ("in-process", "mooncake"),
}

_LAYERS = 2
_BLOCKS = 4
_BLOCK_SIZE = 128
_DEFAULT_MODEL = "qwen3-235b-a22b"


def default_cases(
    *,
    election: str = "lowest",
    layers: int = _LAYERS,
    blocks: int = _BLOCKS,
    block_size: int = _BLOCK_SIZE,
) -> list[Case]:
    """The four cases of a run without options: each kind of group boundary once."""
    shapes = [
        ("more replicas than heads, to one rank", 4, 8, 1),
        ("one rank, to more ranks than heads", 4, 1, 8),
        ("neither group size divides the other", 6, 3, 2),
        ("replicated heads, to replicated heads", 2, 4, 8),
    ]
    return [
        Case(
            title=title,
            layers=layers,
            kv_heads=heads,
            head_dim=128,
            prefill_tp=prefill,
            decode_tp=decode,
            election=election,
            blocks=blocks,
            block_size=block_size,
        )
        for title, heads, prefill, decode in shapes
    ]


def run_demo(*, cases: Sequence[Case], transports: Sequence[str], console: Console) -> int:
    """Move each case over each transport, print what was sent and what was found.

    Returns 0 when every byte of every consumer is right, 1 when one is wrong, was not compared,
    or a transport is missing. Raises ValueError for a case that is not legal or does not fit into
    memory, before anything moves; ImportError without the `runtime` extra.
    """
    for case in cases:
        for rank in range(case.decode_tp):
            case.senders(rank)
        check_memory(case)
        check_blocks(case)
    runners = _runners(transports)
    right = [_show(case, runners, console) for case in cases]
    if not right or not all(right):
        console.print("[bold red]Not every byte is right.[/]")
        return 1
    console.print("[bold green]Every byte of every consumer is right.[/]")
    return 0


@click.command(short_help="Move a cache between groups of different size.")
@click.option(
    "--transport",
    type=click.Choice(sorted(TRANSPORTS)),
    default="both",
    show_default=True,
    help="What carries the bytes; mooncake runs each rank in a process of its own.",
)
@click.option("--model", type=click.Choice(sorted(MODELS)), help="Move this model's cache.")
@click.option("--prefill-tp", type=click.IntRange(min=1), help="Ranks that send.")
@click.option("--decode-tp", type=click.IntRange(min=1), help="Ranks that receive.")
@click.option(
    "--election",
    default="lowest",
    show_default=True,
    type=click.Choice(["lowest", "spread", "paired"]),
    help="Which replica of a head sends it.",
)
@click.option("--layers", type=click.IntRange(min=1), help="Move this many layers.")
@click.option(
    "--blocks",
    type=click.IntRange(min=1),
    default=_BLOCKS,
    show_default=True,
    help="Blocks of the request.",
)
@click.option(
    "--block-size",
    type=click.IntRange(min=1),
    default=_BLOCK_SIZE,
    show_default=True,
    help="Tokens in a block.",
)
def demo(
    transport: str,
    model: str | None,
    prefill_tp: int | None,
    decode_tp: int | None,
    election: str,
    layers: int | None,
    blocks: int,
    block_size: int,
) -> None:
    """Fill prefill caches with a pattern, move them, compare every byte of the decode caches.

    Without --model, --prefill-tp and --decode-tp it runs four small cases. With a group size and
    no --model it moves the cache of qwen3-235b-a22b.
    Exit code: 0 every byte is right, 1 not so, 2 usage.
    """
    if model is None and prefill_tp is None and decode_tp is None:
        cases = default_cases(
            election=election, layers=layers or _LAYERS, blocks=blocks, block_size=block_size
        )
    else:
        name = model or _DEFAULT_MODEL
        shape = MODELS[name]
        if layers is not None and layers > shape.layers:
            raise click.UsageError(f"--layers={layers}; {name} has {shape.layers}")
        cases = [
            Case(
                title=name,
                layers=layers or shape.layers,
                kv_heads=shape.kv_heads,
                head_dim=shape.head_dim,
                prefill_tp=prefill_tp or 8,
                decode_tp=decode_tp or 1,
                election=election,
                blocks=blocks,
                block_size=block_size,
            )
        ]
    if model is None and len(cases) == 1:
        click.echo(
            f"No --model given: moving {cases[0].layers} layers of {_DEFAULT_MODEL}, prefill TP "
            f"{cases[0].prefill_tp} to decode TP {cases[0].decode_tp}."
        )
    try:
        code = run_demo(cases=cases, transports=TRANSPORTS[transport], console=Console())
    except ValueError as error:
        raise click.UsageError(str(error)) from error
    except ImportError as error:
        raise click.ClickException(
            f"the demo needs the runtime packages ({error}): pip install 'kvreshard[runtime]'"
        ) from error
    raise SystemExit(code)


def _runners(transports: Sequence[str]) -> dict[str, Callable[[Case], CaseOutcome]]:
    # Imported here: the command line loads without torch.
    from kvreshard.demo_ranks import run_in_process, run_mooncake

    known = {"in-process": run_in_process, "mooncake": run_mooncake}
    return {name: known[name] for name in transports}


def _show(case: Case, runners: dict[str, Callable[[Case], CaseOutcome]], console: Console) -> bool:
    """Run one case and print it; whether every byte was right on every transport."""
    console.rule(f"[bold]{case.title}[/]", align="left")
    console.print(
        f"{case.kv_heads} KV heads, prefill TP {case.prefill_tp} to decode TP {case.decode_tp}, "
        f"{case.layers} layers, {case.blocks} blocks of {case.block_size} tokens, "
        f"{case.bytes_per_head:,} B per head and block, election {case.election}"
    )
    console.print(_head_map(case))
    outcomes, failures = _run(case, runners)
    if outcomes:
        console.print(_results(outcomes))
    for failure in failures:
        console.print(failure, style="red", markup=False)
    _show_before_the_fix(case, console)
    return not failures


def _run(
    case: Case, runners: dict[str, Callable[[Case], CaseOutcome]]
) -> tuple[list[CaseOutcome], list[str]]:
    from kvreshard.demo_ranks import RankFailedError
    from kvreshard.runtime.errors import RuntimeRefusalError

    outcomes, failures = [], []
    for name, run in runners.items():
        try:
            outcome = run(case)
        except (RuntimeRefusalError, RankFailedError) as error:
            failures.append(f"{name}: {error}")
            continue
        outcomes.append(outcome)
        failures += _failures(outcome)
    return outcomes, failures


def _results(outcomes: Sequence[CaseOutcome]) -> Table:
    table = Table("", *(outcome.transport for outcome in outcomes))
    for column in table.columns[1:]:
        column.justify = "right"
    rows: dict[str, Callable[[CaseOutcome], int]] = {
        "processes": lambda outcome: outcome.processes,
        "descriptors": lambda outcome: outcome.descriptors,
        "bytes planned": lambda outcome: sum(c.account.planned for c in outcome.consumers),
        "bytes sent": lambda outcome: sum(c.account.sent for c in outcome.consumers),
        "bytes expected": lambda outcome: sum(c.account.expected for c in outcome.consumers),
        "bytes compared": lambda outcome: sum(c.compared for c in outcome.consumers),
        "bytes wrong": lambda outcome: sum(c.wrong for c in outcome.consumers),
    }
    for name, value in rows.items():
        table.add_row(name, *(f"{value(outcome):,}" for outcome in outcomes))
    table.add_row("seconds", *(f"{outcome.seconds:.1f}" for outcome in outcomes))
    return table


def _failures(outcome: CaseOutcome) -> list[str]:
    found = []
    for consumer in outcome.consumers:
        where = f"{outcome.transport}: consumer {consumer.rank}"
        if not consumer.ready:
            found.append(f"{where} is not ready: {consumer.reason}")
        if consumer.compared == 0:
            found.append(f"{where} compared no byte")
        if consumer.wrong:
            found.append(
                f"{where} has {consumer.wrong:,} wrong bytes, {consumer.wrong_outside:,} of them "
                f"outside the request; first: {consumer.first_wrong}"
            )
    if not outcome.consumers:
        found.append(f"{outcome.transport}: no consumer reported")
    return found


def _head_map(case: Case) -> Table:
    table = Table("consumer rank", "slots in its block", "global heads", "from producer rank")
    for column in table.columns:
        column.justify = "right"
    for consumer in range(case.decode_tp):
        for producer in case.senders(consumer):
            plan = plan_transfer(
                total_num_kv_heads=case.kv_heads,
                producer_tp_size=case.prefill_tp,
                producer_tp_rank=producer,
                consumer_tp_size=case.decode_tp,
                consumer_tp_rank=consumer,
                election=case.election,
            )
            first = first_head(case.kv_heads, case.decode_tp, consumer) + plan.dst_head_offset
            table.add_row(
                f"{consumer}",
                _span(plan.dst_head_offset, plan.head_count),
                _span(first, plan.head_count),
                f"{producer}",
            )
    return table


def _show_before_the_fix(case: Case, console: Console) -> None:
    """Where TP-ratio arithmetic lost heads, show what it did to one block."""
    if case.prefill_tp % case.decode_tp or case.prefill_tp == case.decode_tp:
        return
    if replica_count(case.kv_heads, case.prefill_tp) == 1:
        return
    from kvreshard.demo_ranks import run_before_the_fix

    before = run_before_the_fix(case)
    if not before.untouched:
        return
    senders = ", ".join(str(rank) for rank in before.senders)
    console.print(
        f"Planned by the ratio of the group sizes, as before the fix: producer {senders} alone "
        f"sends to consumer 0 and writes {before.written:,} of {before.block_bytes:,} B of a "
        f"block; {before.untouched:,} B keep what was there, and the request counted as ready."
    )


def _span(first: int, count: int) -> str:
    return f"{first}" if count == 1 else f"{first} to {first + count - 1}"
