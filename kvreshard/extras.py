# SPDX-License-Identifier: Apache-2.0
"""What a command says where an extra is not installed."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from types import ModuleType

NOT_DECIDED = 3


class NotDecidedError(click.ClickException):
    """Nothing was checked, so nothing is known."""

    exit_code = NOT_DECIDED


def needs_prove(module: str) -> ModuleType:
    """Import a module of the proof side, or say which extra it needs."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name in {"z3", "jinja2"}:
            raise NotDecidedError(
                f"this needs {error.name}, which comes with the extra `prove`: "
                "pip install 'kvreshard[prove]', or `make prove` in a checkout"
            ) from error
        raise
