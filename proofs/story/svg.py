# SPDX-License-Identifier: Apache-2.0
"""SVG as text: elements whose attributes and texts are always escaped."""

from __future__ import annotations

import html
import re

# What XML 1.0 has no way to spell, not even as a reference.
_NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def text(content: str) -> str:
    """Return a text as it may stand inside an element or an attribute.

    A character that XML does not have becomes U+FFFD.
    """
    return html.escape(_NOT_XML.sub("\ufffd", content))


def element(name: str, attributes: dict[str, str | float], *inside: str) -> str:
    """Return an element. `inside` is markup already: elements, or what `text` returned."""
    written = "".join(f' {key}="{_value(value)}"' for key, value in attributes.items())
    content = "".join(inside)
    return f"<{name}{written}>{content}</{name}>" if content else f"<{name}{written}/>"


def _value(value: str | float) -> str:
    return text(value) if isinstance(value, str) else f"{round(value, 2):.10g}"
