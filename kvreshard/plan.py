# SPDX-License-Identifier: Apache-2.0
"""`kvreshard plan`: who sends what to whom between a prefill and a decode group."""

from __future__ import annotations

import difflib
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.console import Console

from kvreshard.exit_codes import FAILED, HOLDS
from kvreshard.head_plan import ELECTIONS
from kvreshard.hf_config import ConfigError, read_config
from kvreshard.model_shapes import LayerGroup, ModelShape, built_in_models
from kvreshard.plan_json import plan_json
from kvreshard.plan_page import plan_page, plan_svg
from kvreshard.plan_request import Bytes, plan_model
from kvreshard.plan_view import plan_text, print_plan

if TYPE_CHECKING:
    from kvreshard.plan_request import Planned

FORMATS = ("terminal", "json", "svg", "html")
# Every pair of ranks is asked.
LARGEST_TP = 256
LARGEST_HEADS = 4096
BLOCK_SIZE, DTYPE_BYTES = 16, 2


@click.command(short_help="Say who sends what to whom between two groups.")
@click.option("--heads", type=click.IntRange(1, LARGEST_HEADS), help="KV heads of the model.")
@click.option("--model", help="Take the shape of this model; --list-models names them.")
@click.option(
    "--config",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Take the shape from this Hugging Face config.json.",
)
@click.option("--list-models", is_flag=True, help="Name the models that --model knows, and stop.")
@click.option("--prefill-tp", type=click.IntRange(1, LARGEST_TP), help="Ranks that send.")
@click.option("--decode-tp", type=click.IntRange(1, LARGEST_TP), help="Ranks that receive.")
@click.option(
    "--query-heads",
    type=click.IntRange(1),
    help="With --heads: query heads of the model, which a TP size must divide as well.",
)
@click.option(
    "--election",
    default=ELECTIONS[0],
    show_default=True,
    type=click.Choice(ELECTIONS),
    help="Which replica of a head sends it.",
)
@click.option(
    "--bytes-per-head", type=click.IntRange(1), help="Bytes of one head in one block of one region."
)
@click.option(
    "--block-size",
    type=click.IntRange(1),
    help=f"Tokens in a block, for the bytes of a model's head; {BLOCK_SIZE} by default.",
)
@click.option(
    "--dtype-bytes",
    type=click.IntRange(1),
    help=f"Bytes of an element, for the bytes of a model's head; {DTYPE_BYTES} by default.",
)
@click.option("--format", "form", type=click.Choice(FORMATS), default="terminal", show_default=True)
@click.option(
    "--output", type=click.Path(dir_okay=False, path_type=Path), help="Write to this file."
)
def plan(
    heads: int | None,
    model: str | None,
    config: Path | None,
    list_models: bool,
    prefill_tp: int | None,
    decode_tp: int | None,
    query_heads: int | None,
    election: str,
    bytes_per_head: int | None,
    block_size: int | None,
    dtype_bytes: int | None,
    form: str,
    output: Path | None,
) -> None:
    """Say who sends what to whom when a KV cache moves from a prefill to a decode group.

    The shape comes from --heads, --model or --config. A model whose layers differ in KV heads gets
    a plan for each kind of layer. Bytes of one head in one block are block size x width of the
    head x bytes of an element, for keys and for values alike.

    Exit codes: 0 planned, 1 the plan was checked and is wrong, 2 wrong usage.
    """
    if list_models:
        for shape in built_in_models().values():
            click.echo(_listed(shape))
        return
    if prefill_tp is None or decode_tp is None:
        missing = "--prefill-tp" if prefill_tp is None else "--decode-tp"
        raise click.UsageError(f"{missing} is missing; legal: 1 to {LARGEST_TP}")
    shape = _shape(heads, model, config, query_heads)
    _check_bytes(bytes_per_head, heads, block_size, dtype_bytes)
    size = Bytes(bytes_per_head, block_size or BLOCK_SIZE, dtype_bytes or DTYPE_BYTES)
    command = shlex.join(["kvreshard", *_arguments(click.get_current_context())])
    try:
        planned = plan_model(shape, prefill_tp, decode_tp, election, size, command)
    except ValueError as error:
        raise click.UsageError(str(error)) from error
    if form == "terminal" and output is None:
        print_plan(planned, Console(highlight=False))
    else:
        _write(_formed(planned, form), output)
    sys.exit(FAILED if planned.faults else HOLDS)


def _shape(
    heads: int | None, model: str | None, config: Path | None, query_heads: int | None
) -> ModelShape:
    given = {"--heads": heads, "--model": model, "--config": config}
    named = [option for option, value in given.items() if value is not None]
    if len(named) != 1:
        got = " and ".join(named) or "none of them"
        raise click.UsageError(f"legal: one of --heads, --model and --config; got {got}")
    if query_heads is not None and heads is None:
        raise click.UsageError(f"--query-heads={query_heads} goes with --heads, not {named[0]}")
    if config is not None:
        try:
            return read_config(config)
        except ConfigError as error:
            raise click.UsageError(str(error)) from error
    if model is not None:
        return _built_in(model)
    if heads is None:
        raise ValueError("heads=None; legal: one of heads, model and config is given")
    if query_heads is not None and query_heads % heads:
        legal = f"legal: a multiple of the {heads} KV heads"
        raise click.UsageError(f"--query-heads={query_heads}; {legal}")
    name = "1 KV head" if heads == 1 else f"{heads} KV heads"
    return ModelShape(name, "the command line", (LayerGroup("", None, heads, query_heads),))


def _check_bytes(
    bytes_per_head: int | None, heads: int | None, block_size: int | None, dtype_bytes: int | None
) -> None:
    """Refuse an option that would say nothing: bytes that are given, or a head of unknown width."""
    for option, value in (("--block-size", block_size), ("--dtype-bytes", dtype_bytes)):
        if value is not None and bytes_per_head is not None:
            legal = "legal: one of the two; --bytes-per-head says all"
            raise click.UsageError(f"{option}={value} beside --bytes-per-head; {legal}")
        if value is not None and heads is not None:
            legal = "legal: with --model or --config, which have the width of a head"
            raise click.UsageError(f"{option}={value} beside --heads; {legal}")


def _built_in(name: str) -> ModelShape:
    models = built_in_models()
    if name.lower() in models:
        return models[name.lower()]
    close = difflib.get_close_matches(name.lower(), models, n=3)
    near = f"close to it: {', '.join(close)}; " if close else ""
    raise click.UsageError(
        f"--model={name} is not built in; {near}legal: those of `kvreshard plan --list-models`, "
        "or --config with the model's config.json"
    )


def _listed(shape: ModelShape) -> str:
    heads = ", ".join(
        f"{one.kv_heads} KV heads" + (f" ({one.name})" if len(shape.groups) > 1 else "")
        for one in shape.groups
    )
    return f"{shape.name}: {heads}; {shape.source}"


def _formed(planned: Planned, form: str) -> str:
    if form == "json":
        return plan_json(planned) + "\n"
    if form == "html":
        return plan_page(planned) + "\n"
    if form == "terminal":
        return plan_text(planned)
    if len(planned.groups) > 1:
        names = " and ".join(group.layers.name for group in planned.groups)
        raise click.UsageError(
            f"--format=svg is one picture, and {planned.shape.name} needs one for each of {names}; "
            "legal: html, json or terminal"
        )
    return plan_svg(planned, planned.groups[0]) + "\n"


def _write(said: str, output: Path | None) -> None:
    if output is None:
        click.echo(said, nl=False)
        return
    try:
        output.write_text(said, encoding="utf-8", newline="\n")
    except OSError as error:
        raise click.UsageError(f"--output={output} cannot be written: {error.strerror}") from error
    click.echo(f"written: {output}", err=True)


def _arguments(context: click.Context) -> list[str]:
    """Return the options as given, without where the output goes."""
    said = [context.info_name or "plan"]
    for parameter in context.command.params:
        value = context.params.get(parameter.name or "")
        source = context.get_parameter_source(parameter.name or "")
        is_given = source is click.core.ParameterSource.COMMANDLINE
        if is_given and parameter.name not in ("output", "form"):
            said += [parameter.opts[0], str(value)]
    return said
