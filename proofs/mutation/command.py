# SPDX-License-Identifier: Apache-2.0
"""A whole mutation run, as the command line makes it."""

from __future__ import annotations

import multiprocessing
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from kvreshard.proofs.cache import Cache, default_directory
from kvreshard.proofs.mutation import document
from kvreshard.proofs.mutation import matrix as matrices
from kvreshard.proofs.mutation.answers import default_answers
from kvreshard.proofs.mutation.examine import Examined, examine
from kvreshard.proofs.mutation.independence import Standing, standing
from kvreshard.proofs.mutation.mutants import Generation, generate
from kvreshard.proofs.mutation.refute import NOTHING_KEPT
from kvreshard.proofs.mutation.statements import claims_about
from kvreshard.proofs.mutation.survivors import explain
from kvreshard.spec.invariants import INVARIANTS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console


class NoMutantError(Exception):
    """A filter that chooses nothing."""


@dataclass(frozen=True)
class Run:
    """What a run gave: the matrix and the exit code."""

    matrix: dict[str, Any]
    exit_code: int


def mutate_all(console: Console, *, wanted: str, jobs: int, use_cache: bool) -> Run:
    """Judge the mutants whose name holds `wanted`.

    The matrix and its document are written only where nothing was left out.

    Raises:
        NoMutantError: there is none.
        DoesNotReplayError: a model of the solver is none in plain Python.
    """
    whole = generate()
    chosen = replace(
        whole,
        mutants=tuple(mutant for mutant in whole.mutants if wanted in mutant.name),
        unchanged=tuple(name for name in whole.unchanged if wanted in name),
    )
    if not chosen.mutants:
        raise NoMutantError(
            f"no mutant has {wanted!r} in its name; "
            f"legal: a part of a name such as {whole.mutants[0].name}"
        )
    rows, standings = _judged(console, chosen, () if wanted else tuple(INVARIANTS), jobs, use_cache)
    matrix = matrices.build(chosen, rows, standings)
    if not wanted:
        matrices.write(matrix)
        document.write(matrix)
    _tell(console, matrix)
    return Run(matrix, matrices.exit_code(rows))


@lru_cache(maxsize=1)
def _generated() -> Generation:
    return generate()


def examine_named(name: str, use_cache: bool) -> Examined:
    """Judge the mutant of a name: what runs in a process of its own."""
    return examine(_generated().by_name()[name], default_answers() if use_cache else NOTHING_KEPT)


def _judged(
    console: Console,
    generation: Generation,
    invariants: Sequence[str],
    jobs: int,
    use_cache: bool,
) -> tuple[list[matrices.Row], list[Standing]]:
    columns = (
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.description}"),
    )
    cache = Cache(default_directory() if use_cache else None)
    context = multiprocessing.get_context("spawn")
    with (
        Progress(*columns, console=console, transient=True) as bar,
        ProcessPoolExecutor(max_workers=jobs, mp_context=context) as pool,
    ):
        task = bar.add_task("starting", total=len(generation.mutants))
        rows = []
        try:
            stands = [pool.submit(standing, name) for name in invariants]
            examined = [
                pool.submit(examine_named, mutant.name, use_cache) for mutant in generation.mutants
            ]
            for mutant, future in zip(generation.mutants, examined, strict=True):
                bar.update(task, advance=1, description=mutant.name)
                seen = future.result()
                if set(seen.cells) != {claim.column for claim in claims_about(mutant.formula)}:
                    raise RuntimeError(f"{mutant.name} was not judged by all that speaks of it")
                explanation = None if seen.killed else explain(mutant, jobs=jobs, cache=cache)
                rows.append(matrices.row(mutant, seen, explanation))
            return rows, [future.result() for future in stands]
        except BaseException:
            # Leaving the block waits for what is queued: minutes, after an interrupt.
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _tell(console: Console, matrix: dict[str, Any]) -> None:
    console.print(_formulas(matrix))
    console.print(_invariants(matrix))
    summary = matrix["summary"]
    console.print(
        f"{summary['mutants']} mutants "
        f"({summary['duplicates'] + summary['unchanged']} duplicates dropped): "
        + ", ".join(f"{summary[name]} {name}" for name in matrices.OUTCOMES)
    )
    for one in matrix["mutants"]:
        if one["outcome"] in {matrices.SURVIVOR, matrices.UNDECIDED}:
            console.print(f"{one['outcome']}: {one['name']}", style="bold red")
            console.print(f"  {one['before']} -> {one['after']}")
            broken = one["enumeration_finds_broken"]
            if broken:
                console.print(f"  plain enumeration finds broken: {', '.join(broken)}")
            console.print(f"  {one.get('reason', 'not explained')}")
            for name in one.get("obligations_open", []):
                console.print(f"  not proved: {name}")


def _formulas(matrix: dict[str, Any]) -> Table:
    columns = ("sites", "mutants", *matrices.OUTCOMES)
    table = _table("formula", columns)
    for name, counts in matrix["formulas"].items():
        if counts["mutants"]:
            table.add_row(name, *[str(counts[column]) for column in columns])
    return table


def _invariants(matrix: dict[str, Any]) -> Table:
    table = _table("invariant", ("asked", "killed", "alone", "undecided"))
    for name, counts in matrix["invariants"].items():
        numbers = (counts[key] for key in ("asked", "killed", "killed_alone", "undecided"))
        table.add_row(name, *map(str, numbers))
    return table


def _table(name: str, columns: Sequence[str]) -> Table:
    table = Table(box=None, pad_edge=False)
    table.add_column(name, overflow="fold")
    for column in columns:
        table.add_column(column, justify="right", no_wrap=True)
    return table
