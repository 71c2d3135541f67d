# SPDX-License-Identifier: Apache-2.0
"""Check what was emitted as it lies: is it the spec's translation, is it fresh, does it work."""

from __future__ import annotations

from importlib import util
from typing import TYPE_CHECKING

from kvreshard.codegen import files
from kvreshard.codegen.emit import EmissionRefused, planner_path
from kvreshard.codegen.freshness import stale_files
from kvreshard.codegen.modules import MODULES, EmittedModule
from kvreshard.codegen.validate import validate_translation
from kvreshard.proofs.counterexample import enumerate_planner
from kvreshard.proofs.judge import Copy, Subject
from kvreshard.proofs.story.tell import tell

if TYPE_CHECKING:
    from types import ModuleType

    from rich.console import Console


def check_generated(console: Console, enumerate_to: int) -> list[str]:
    """Return what is wrong with the emitted modules, in words; print what was checked.

    Args:
        console: where the outcome of each check goes.
        enumerate_to: largest H, P and D of the cases that are run one by one.
    """
    return [
        *(complaint for module in MODULES for complaint in _translation(console, module)),
        *_freshness(console),
        *_enumeration(console, enumerate_to),
    ]


def _translation(console: Console, module: EmittedModule) -> list[str]:
    start = f"translation: {module.file}:"
    try:
        source = (files.generated_folder() / module.file).read_text(encoding="utf-8")
    except FileNotFoundError:
        return [f"{start} there is no such file"]
    verdicts = validate_translation(source, module)
    proved = [one.name for one in verdicts if one.verdict == "proved"]
    shell = [one.name for one in verdicts if one.verdict == "shell"]
    fits = ", and to fit 64 bits within the bounds" if module.wraps else ""
    console.print(
        f"{start} {len(proved)} formula functions proved equal to the specification{fits}",
    )
    console.print(f"  shell around them, tested and not proved: {', '.join(shell)}")
    if not proved:
        return [f"{start} no formula function was found"]
    return [
        f"{start} {one.name} (line {one.line}) is {one.verdict}: {one.detail}"
        for one in verdicts
        if not one.ok
    ]


def _freshness(console: Console) -> list[str]:
    try:
        stale = stale_files()
    except EmissionRefused as refused:
        return [f"freshness: {refused}"]
    if not stale:
        console.print("freshness: generated/ is what the specification gives")
    return [f"freshness: {one}" for one in stale]


def _enumeration(console: Console, maximum: int) -> list[str]:
    try:
        module = _load()
    except Exception as error:
        return [f"enumeration: the module does not load: {error!r}"]
    judged, found = enumerate_planner(lambda policy: subject_of(module, policy), maximum)
    console.print(
        f"enumeration: {judged} cases (H, P, D up to {maximum}, every policy) run and judged, "
        f"{len(found)} violations",
    )
    if not judged:
        return ["enumeration: no case was run"]
    return [f"enumeration: {tell(one)}" for one in found[:1]]


def _load() -> ModuleType:
    """Load the module from its file, whatever was imported before."""
    spec = util.spec_from_file_location("emitted_planner", planner_path())
    if spec is None or spec.loader is None:
        raise ImportError(f"{planner_path().name} cannot be loaded")
    module = util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def subject_of(module: ModuleType, election: str) -> Subject:
    """Return a planner module as the judge asks it, with one of its elections."""

    def groups(heads: int, producers: int, consumers: int) -> dict[str, int]:
        return {
            "total_num_kv_heads": heads,
            "producer_tp_size": producers,
            "consumer_tp_size": consumers,
        }

    def plan(heads: int, producers: int, producer: int, consumers: int, consumer: int) -> Copy:
        made = module.plan_transfer(
            **groups(heads, producers, consumers),
            producer_tp_rank=producer,
            consumer_tp_rank=consumer,
            election=election,
        )
        return Copy(*made)

    def senders(heads: int, producers: int, consumers: int, consumer: int) -> list[int]:
        given = groups(heads, producers, consumers)
        return list(module.expected_senders(**given, consumer_tp_rank=consumer, election=election))

    def receivers(heads: int, producers: int, producer: int, consumers: int) -> list[int]:
        given = groups(heads, producers, consumers)
        return list(
            module.expected_receivers(**given, producer_tp_rank=producer, election=election)
        )

    def accepts(
        heads: int, producers: int, consumers: int, producer_bytes: int, consumer_bytes: int
    ) -> bool:
        try:
            module.validate_region_lengths(
                **groups(heads, producers, consumers),
                producer_region_bytes=producer_bytes,
                consumer_region_bytes=consumer_bytes,
            )
        except ValueError:
            return False
        return True

    return Subject(plan, senders, receivers, accepts)
