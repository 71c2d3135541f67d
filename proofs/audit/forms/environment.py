# SPDX-License-Identifier: Apache-2.0
"""How the templates of pages are read: strictly, and with everything filled in escaped."""

from __future__ import annotations

from pathlib import Path

import jinja2


def template(name: str) -> jinja2.Template:
    """Return a template of `proofs/audit/forms/templates/`. A name it is not given is an error."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent / "templates"),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        autoescape=True,
    )
    return environment.get_template(name)
