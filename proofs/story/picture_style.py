# SPDX-License-Identifier: Apache-2.0
"""How a head map's picture looks. Every selector starts at the picture, so the page is not styled.

The colours are custom properties; a page may set them anew under a selector of its own.
"""

from __future__ import annotations

_LIGHT = {
    "ink": "#1f2328",
    "muted": "#59636e",
    "paper": "#ffffff",
    "frame": "#818b98",
    "box": "#f6f8fa",
    "ok": "#0969da",
    "ok-fill": "#ddf4ff",
    "missing": "#cf222e",
    "missing-fill": "#ffebe9",
    "doubled": "#9a6700",
    "doubled-fill": "#fff8c5",
    "wrong": "#8250df",
    "wrong-fill": "#fbefff",
    "outside": "#bc4c00",
    "outside-fill": "#fff1e5",
}
_DARK = {
    "ink": "#f0f6fc",
    "muted": "#9198a1",
    "paper": "#0d1117",
    "frame": "#656c76",
    "box": "#151b23",
    "ok": "#58a6ff",
    "ok-fill": "#12243d",
    "missing": "#ff7b72",
    "missing-fill": "#3b1518",
    "doubled": "#e3b341",
    "doubled-fill": "#332608",
    "wrong": "#d2a8ff",
    "wrong-fill": "#2b1a45",
    "outside": "#ffa657",
    "outside-fill": "#3a1e08",
}

_RULES = """
{ display: block; max-width: 40rem; height: auto; color: var(--kv-ink); }
text { font: 14px system-ui, "Segoe UI", "DejaVu Sans", sans-serif; fill: var(--kv-ink); }
.small { font-size: 13px; fill: var(--kv-muted); }
.head { font-weight: 600; }
.rank { font-weight: 700; }
.end { text-anchor: end; }
.in-cell { text-anchor: middle; }
.paper { fill: var(--kv-paper); }
.frame { fill: var(--kv-box); stroke: var(--kv-frame); }
.fold { stroke: var(--kv-frame); stroke-dasharray: 2 4; }
.cell { fill: var(--kv-fill, var(--kv-paper)); stroke: var(--kv-mark, var(--kv-frame)); }
.cell.inner { fill: none; }
.cell.missing { stroke-width: 2; stroke-dasharray: 6 4; }
.cell.wrong-head { stroke-width: 3; }
.cell.read-outside, .cell.write-outside { stroke-width: 2; stroke-dasharray: 2 3; }
.mark { font-size: 13px; font-weight: 700; fill: var(--kv-mark); }
.band { fill: var(--kv-mark); opacity: 0.16; }
.line { stroke: var(--kv-mark); stroke-width: 1.6; }
.tip { fill: var(--kv-mark); }
.copy.doubled .line { stroke-width: 2.2; }
.copy.wrong-head .line { stroke-width: 2.2; stroke-dasharray: 7 3; }
.copy.read-outside .line, .copy.write-outside .line, .copy.empty .line { stroke-width: 2.2; \
stroke-dasharray: 2 3; }
.ok { --kv-mark: var(--kv-ok); --kv-fill: var(--kv-ok-fill); }
.missing { --kv-mark: var(--kv-missing); --kv-fill: var(--kv-missing-fill); }
.doubled { --kv-mark: var(--kv-doubled); --kv-fill: var(--kv-doubled-fill); }
.wrong-head { --kv-mark: var(--kv-wrong); --kv-fill: var(--kv-wrong-fill); }
.read-outside, .write-outside, .empty { --kv-mark: var(--kv-outside); \
--kv-fill: var(--kv-outside-fill); }
"""


def _scoped(rules: str) -> str:
    lines = []
    for rule in rules.strip().splitlines():
        selectors, body = rule.split("{", 1)
        scoped = (f".kvreshard-head-map {one.strip()}".strip() for one in selectors.split(","))
        lines.append(f"{', '.join(scoped)} {{{body}")
    return "\n".join(lines)


def _colours(colours: dict[str, str]) -> str:
    declared = " ".join(f"--kv-{name}: {value};" for name, value in colours.items())
    return f":where(.kvreshard-head-map) {{ {declared} }}"


STYLE = "\n".join(
    (
        "",
        _colours(_LIGHT),
        f"@media screen and (prefers-color-scheme: dark) {{ {_colours(_DARK)} }}",
        _scoped(_RULES),
        "",
    )
)
