# SPDX-License-Identifier: Apache-2.0
"""The forms an audit is written in, by the names that the command line has for them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kvreshard.proofs.audit.forms.html_form import as_html
from kvreshard.proofs.audit.forms.json_form import as_json
from kvreshard.proofs.audit.forms.junit import as_junit
from kvreshard.proofs.audit.forms.markdown import as_markdown
from kvreshard.proofs.audit.forms.sarif import as_sarif
from kvreshard.proofs.audit.forms.terminal import as_terminal

if TYPE_CHECKING:
    from collections.abc import Callable

    from kvreshard.proofs.audit.model import AuditReport

FORMS: dict[str, Callable[[AuditReport], str]] = {
    "terminal": as_terminal,
    "markdown": as_markdown,
    "html": as_html,
    "json": as_json,
    "sarif": as_sarif,
    "junit": as_junit,
}
