# SPDX-License-Identifier: Apache-2.0
"""Audits as files, in the forms for people and as JSON.

`python tests/proofs/audit_snapshots.py` writes them anew.
"""

from __future__ import annotations

from pathlib import Path

from audit_reports import REPORTS

from kvreshard.proofs.audit.forms.json_form import as_json
from kvreshard.proofs.audit.forms.markdown import as_markdown
from kvreshard.proofs.audit.forms.terminal import as_terminal

FOLDER = Path(__file__).resolve().parent / "audit_snapshots"
AS_JSON = ("holds", "fails", "not_decided")


def snapshots() -> dict[str, str]:
    """Return every file's name and text."""
    texts = {}
    for key, made in REPORTS.items():
        report = made()
        texts[f"{key}.txt"] = as_terminal(report)
        texts[f"{key}.md"] = as_markdown(report)
        if key in AS_JSON:
            texts[f"{key}.json"] = as_json(report)
    return {name: text + "\n" for name, text in texts.items()}


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for file in FOLDER.iterdir():
        file.unlink()
    for name, text in snapshots().items():
        (FOLDER / name).write_text(text, encoding="utf-8")
