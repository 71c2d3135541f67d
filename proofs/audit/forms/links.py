# SPDX-License-Identifier: Apache-2.0
"""Paths as links."""

from __future__ import annotations

from urllib.parse import quote


def uri(path: str) -> str:
    """Return a path as a relative reference, or an absolute one of no host, as RFC 3986 has it.

    A colon is escaped too, so that no path is taken for an address with a scheme.
    """
    escaped = quote(path.replace("\\", "/"), safe="/", errors="replace")
    return f"/.{escaped}" if escaped.startswith("//") else escaped
