# SPDX-License-Identifier: Apache-2.0
"""Several audits as one HTML page: a table that leads to the page of each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kvreshard.proofs.audit.forms.environment import template
from kvreshard.proofs.audit.forms.html_form import badge
from kvreshard.proofs.audit.forms.links import uri
from kvreshard.proofs.audit.forms.parts import method_said, verdicts_said
from kvreshard.proofs.audit.forms.visible import visible_report
from kvreshard.proofs.audit.model import Verdict
from kvreshard.proofs.story.words import counted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kvreshard.proofs.audit.model import AuditReport

# The worst comes first: it is the verdict on all of them.
_ORDER = (Verdict.FAILS, Verdict.NOT_DECIDED, Verdict.HOLDS)


def as_index(pages: Sequence[tuple[AuditReport, str]]) -> str:
    """Return a page over audits, which ends without a newline.

    Args:
        pages: each report, and the path of its page as seen from this one; at least one.

    Raises:
        ValueError: there are none.
    """
    if not pages:
        raise ValueError("pages=[]; legal: at least one report")
    reports = [visible_report(report) for report, _ in pages]
    verdicts = [report.verdict for report in reports]
    worst = next(one for one in _ORDER if one in verdicts)
    return template("index.html.j2").render(
        title=f"{counted(len(reports), 'audit')} of KV transfer planners",
        badge=badge(worst),
        sentence=f"Of {counted(len(reports), 'audit')}: {verdicts_said(verdicts)}.",
        rows=[
            {
                "badge": badge(report.verdict),
                "function": report.source.function.name,
                "target": report.source.target,
                "contract": report.contract.name,
                "method": method_said(report),
                "domain": report.contract.domain,
                "sentence": report.sentence,
                "link": uri(path),
            }
            for report, (_, path) in zip(reports, pages, strict=True)
        ],
    )
