# SPDX-License-Identifier: Apache-2.0
"""JSON that reads well in a diff: what fits stays on one line, rows of numbers are filled up."""

from __future__ import annotations

import json
from itertools import groupby
from typing import Any

# The comma at the end of a line included.
WIDTH = 96


def as_text(document: dict[str, Any]) -> str:
    """Return the document as JSON text with a newline at its end."""
    return "\n".join(_lines(document, "")) + "\n"


def _lines(value: Any, indent: str, label: str = "", end: str = "") -> list[str]:
    """Return the lines of a value; `label` comes before it and `end` after it."""
    line = f"{indent}{label}{json.dumps(value)}{end}"
    # A case is always spread out, one member a line, however short it is.
    if not isinstance(value, (dict, list)) or (len(line) < WIDTH and "name" not in value):
        return [line]
    inner = indent + "  "
    if isinstance(value, dict):
        members = [_lines(member, inner, f"{json.dumps(key)}: ") for key, member in value.items()]
    elif label == '"copies": ':
        rows = groupby(value, key=lambda row: row[1])
        members = [_filled(list(group), inner) for _, group in rows]
    elif all(isinstance(item, (int, str, list)) and _fits(item, inner) for item in value):
        members = [_filled(value, inner)]
    else:
        members = [_lines(item, inner) for item in value]
    for member in members[:-1]:
        member[-1] += ","
    opening, closing = ("{", "}") if isinstance(value, dict) else ("[", "]")
    body = [part for member in members for part in member]
    return [f"{indent}{label}{opening}", *body, f"{indent}{closing}{end}"]


def _fits(item: Any, indent: str) -> bool:
    """Whether an item has room on a line, its comma included; a text cannot be broken up."""
    return isinstance(item, str) or len(indent + json.dumps(item)) < WIDTH


def _filled(items: list[Any], indent: str) -> list[str]:
    """Return the items in as few lines as they need."""
    lines = [indent + json.dumps(items[0])]
    for text in map(json.dumps, items[1:]):
        if len(lines[-1]) + len(text) + 3 <= WIDTH:
            lines[-1] += f", {text}"
        else:
            lines[-1] += ","
            lines.append(indent + text)
    return lines
