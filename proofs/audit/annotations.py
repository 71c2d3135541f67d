# SPDX-License-Identifier: Apache-2.0
"""Print what a SARIF file says as lines that GitHub shows beside the code.

python -m kvreshard.proofs.audit.annotations FILE.sarif ...
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

if TYPE_CHECKING:
    from collections.abc import Iterator

_COMMANDS = {"error": "error", "warning": "warning", "note": "notice", "none": "notice"}


def workflow_commands(sarif: dict[str, Any]) -> Iterator[str]:
    """Yield a workflow command for each result of a SARIF log."""
    for run in sarif["runs"]:
        for result in run.get("results", ()):
            if result.get("kind", "fail") != "fail":
                continue
            command = _COMMANDS[result.get("level", "warning")]
            properties = {"title": result.get("ruleId", ""), **_place(result)}
            said = ",".join(f"{key}={_property(value)}" for key, value in properties.items())
            yield f"::{command} {said}::{_data(_plain(result['message']['text']))}"


def _place(result: dict[str, Any]) -> dict[str, str]:
    for location in result.get("locations", ()):
        physical = location.get("physicalLocation", {})
        file = physical.get("artifactLocation", {}).get("uri", "")
        region = physical.get("region", {})
        if file:
            place = {"file": unquote(file)}
            if "startLine" in region:
                place["line"] = str(region["startLine"])
            if "endLine" in region:
                place["endLine"] = str(region["endLine"])
            return place
    return {}


def _plain(message: str) -> str:
    """Return a SARIF message as text: braces are doubled there."""
    return message.replace("{{", "{").replace("}}", "}")


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


def main(paths: list[str]) -> None:
    """Print the annotations of each file."""
    for path in paths:
        for line in workflow_commands(json.loads(Path(path).read_text(encoding="utf-8"))):
            print(line)


if __name__ == "__main__":
    main(sys.argv[1:])
