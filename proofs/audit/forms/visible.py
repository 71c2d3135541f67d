# SPDX-License-Identifier: Apache-2.0
"""Texts that a target chose, made safe to look at: every character is seen, none does anything.

A path or a name may hold a line break, an escape sequence of a terminal or a mark that turns the
direction of writing. Each form escapes what has a meaning in that form; this is what comes first.
"""

from __future__ import annotations

import unicodedata
from dataclasses import fields, is_dataclass, replace
from enum import Enum
from typing import Any, TypeVar

Report = TypeVar("Report")

# Control, format, surrogate and unassigned characters, and those that end a line or a paragraph.
_UNSEEN = {"Cc", "Cf", "Cs", "Cn", "Zl", "Zp"}
# The fields that are texts of several lines.
_TEXTS = {"test"}


def visible(text: str, *, lines: bool = False) -> str:
    """Return a text with each character that has no look of its own spelled as Python does.

    Args:
        text: any text, lone surrogates included.
        lines: whether it may have several lines.
    """
    return "".join(one if lines and one == "\n" else _spelled(one) for one in text)


def _spelled(character: str) -> str:
    if unicodedata.category(character) not in _UNSEEN:
        return character
    return character.encode("unicode_escape").decode("ascii")


def visible_report(report: Report) -> Report:
    """Return a report with all of its texts made visible, those of its stories included."""
    made: Report = _visible(report)
    return made


def _visible(value: Any, name: str = "") -> Any:
    if isinstance(value, Enum):
        return value
    if isinstance(value, str):
        return visible(value, lines=name in _TEXTS)
    if isinstance(value, tuple):
        return tuple(_visible(one) for one in value)
    if is_dataclass(value) and not isinstance(value, type):
        names = [field.name for field in fields(value)]
        return replace(value, **{name: _visible(getattr(value, name), name) for name in names})
    return value
