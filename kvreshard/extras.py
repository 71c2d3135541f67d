# SPDX-License-Identifier: Apache-2.0
"""What a command says where an extra is not installed."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

import click

from kvreshard.exit_codes import NOT_DECIDED

if TYPE_CHECKING:
    from types import ModuleType

_EXTRAS = {"z3": "prove", "jinja2": "prove", "cvc5": "second"}
_TARGETS = {"prove": "make prove", "second": "make prove-cvc5"}


class NotDecidedError(click.ClickException):
    """Nothing was checked, so nothing is known."""

    exit_code = NOT_DECIDED


def needs_prove(module: str) -> ModuleType:
    """Import a module of the proof side, or say which extra it needs."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        extra = _EXTRAS.get(error.name or "")
        if extra is None:
            raise
        raise NotDecidedError(
            f"this needs {error.name}, which comes with the extra `{extra}`: "
            f"pip install 'kvreshard[{extra}]', or `{_TARGETS[extra]}` in a checkout"
        ) from error
