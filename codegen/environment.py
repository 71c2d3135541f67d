# SPDX-License-Identifier: Apache-2.0
"""How templates are read: strictly, and without touching the text around what is filled in."""

from __future__ import annotations

from pathlib import Path

import jinja2


def template(name: str) -> jinja2.Template:
    """Return a template of `codegen/templates/`. A name that it is not given is an error."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent / "templates"),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,
    )
    return environment.get_template(name)
