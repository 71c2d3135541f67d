# SPDX-License-Identifier: Apache-2.0
"""Fetch a released wheel and unpack its Python files. Nothing of it is installed or run.

A source distribution is not fetched: pip builds its metadata to do so, which runs its code.
"""

from __future__ import annotations

import difflib
import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile
import zipfile
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

MAXIMUM_FILES = 50_000
MAXIMUM_FILE_BYTES = 10_000_000
MAXIMUM_BYTES = 500_000_000
DOWNLOAD_SECONDS = 1800

# A wheel for another platform or Python is as good: it is read, not run. pip takes one Python
# version at a time, any number of platforms.
_PYTHONS = ("3.12", "3.11", "3.10", "3.13", "3.14")
_PLATFORMS = (
    *(f"manylinux_2_{minor}_x86_64" for minor in range(5, 45)),
    "manylinux2014_x86_64",
    "linux_x86_64",
    *(f"manylinux_2_{minor}_aarch64" for minor in range(17, 45)),
    "manylinux2014_aarch64",
    "linux_aarch64",
    *(f"macosx_{major}_0_arm64" for major in range(11, 27)),
    "win_amd64",
)


class WheelError(Exception):
    """No wheel, or none that can be read. The message names field, value and what is legal."""


@dataclass(frozen=True)
class Unpacked:
    """A package's Python files on disk.

    Attributes:
        wheel: the wheel's file name.
        sha256: of the wheel.
        root: the folder that they lie in, under their paths in the wheel.
    """

    wheel: str
    sha256: str
    root: Path


def default_directory() -> Path:
    """Return the folder that wheels are kept in, in the user's cache."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "kvreshard" / "wheels"


def fetch(name: str, version: str, path: str, directory: Path | None = None) -> Unpacked:
    """Return the unpacked package that a file of a distribution belongs to.

    Args:
        name, version: of the distribution.
        path: of the file, inside the distribution.
        directory: where wheels are kept; by default in the user's cache.

    Raises:
        WheelError: there is no such version, no such file, or a wheel that cannot be trusted to be
            one.
    """
    folder = directory or default_directory()
    if PurePosixPath(path).suffix != ".py":
        raise WheelError(f"path={path}; legal: a .py file inside {name} {version}")
    wheel, digest = _wheel(name, version, folder)
    try:
        with zipfile.ZipFile(wheel) as archive:
            members = _members(archive, wheel.name)
            if path not in members:
                near = _near(path, members)
                raise WheelError(
                    f"path={path}: {wheel.name} has no such file; legal: a .py file in it{near}"
                )
            root = _unpacked(archive, members, PurePosixPath(path).parts[0], folder / digest)
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError) as error:
        raise WheelError(f"wheel={wheel.name}: {error}; legal: a wheel that unpacks") from error
    return Unpacked(wheel.name, digest, root)


# Wheels


def _wheel(name: str, version: str, folder: Path) -> tuple[Path, str]:
    """Return a wheel and its SHA-256: the one that is kept, if it is still what was fetched."""
    kept = folder / re.sub(r"[-_.]+", "-", name).lower() / version
    record = kept / "fetched.json"
    try:
        said = json.loads(record.read_text(encoding="utf-8"))
        wheel = kept / Path(said["wheel"]).name
        digest = _sha256(wheel)
        if digest == said["sha256"]:
            return wheel, digest
    except (OSError, ValueError, KeyError, TypeError):
        pass
    kept.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".fetching-", dir=folder) as temporary:
        fetched = _download(name, version, Path(temporary))
        digest = _sha256(fetched)
        wheel = fetched.replace(kept / fetched.name)
        written = Path(temporary) / "fetched.json"
        written.write_text(json.dumps({"wheel": wheel.name, "sha256": digest}), encoding="utf-8")
        written.replace(record)
    return wheel, digest


def _download(name: str, version: str, into: Path) -> Path:
    said = ""
    for options in _attempts():
        done = _pip(
            "download",
            "--no-deps",
            "--only-binary=:all:",
            "--ignore-requires-python",
            "--dest",
            str(into),
            *options,
            f"{name}=={version}",
        )
        found = sorted(into.glob("*.whl"))
        if done.returncode == 0 and len(found) == 1:
            return found[0]
        said += done.stderr
        if "No matching distribution" not in done.stderr:
            break
    raise WheelError(_explain(name, version, said))


def _attempts() -> Iterator[tuple[str, ...]]:
    yield ()
    platforms = [option for each in _PLATFORMS for option in ("--platform", each)]
    for python in _PYTHONS:
        yield ("--python-version", python, *platforms)


def _explain(name: str, version: str, said: str) -> str:
    if "No module named pip" in said:
        return (
            f"distribution={name}=={version}: {sys.executable} has no pip; legal: a Python with pip"
        )
    versions = {
        each.strip()
        for listed in re.findall(r"\(from versions: ([^)]*)\)", said)
        for each in listed.split(",")
    } - {"none", ""}
    if versions:
        near = difflib.get_close_matches(version, sorted(versions), n=3, cutoff=0.4)
        some = ", ".join(near or sorted(versions)[-3:])
        return (
            f"version={version}: there is no wheel of {name} {version}; legal: a version with a "
            f"wheel, such as {some}"
        )
    if "No matching distribution" in said:
        return (
            f"distribution={name}: the package index has no wheel of it; legal: a distribution "
            "with wheels (unpack a source distribution yourself and name the file)"
        )
    errors = [line for line in said.splitlines() if line.startswith("ERROR")]
    last = (errors or said.strip().splitlines() or ["pip gave no wheel"])[-1]
    return f"distribution={name}=={version}: pip says: {last}; legal: a wheel that pip can fetch"


def _pip(*arguments: str) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(
            [sys.executable, "-m", "pip", "--disable-pip-version-check", "--no-input", *arguments],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=DOWNLOAD_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise WheelError(
            f"distribution={arguments[-1]}: not fetched in {DOWNLOAD_SECONDS} s; "
            "legal: a wheel that can be fetched in that time"
        ) from error


def _sha256(file: Path) -> str:
    digest = hashlib.sha256()
    with file.open("rb") as opened:
        while piece := opened.read(1 << 20):
            digest.update(piece)
    return digest.hexdigest()


# Their files


def _members(archive: zipfile.ZipFile, wheel: str) -> dict[str, zipfile.ZipInfo]:
    """Return the Python files of a wheel by path.

    Raises:
        WheelError: a path leads out of the folder or stands there twice, or it is all too large.
    """
    members: dict[str, zipfile.ZipInfo] = {}
    for info in archive.infolist():
        if not info.filename.endswith(".py"):
            continue
        parts = info.filename.split("/")
        if "\\" in info.filename or ":" in info.filename or {"", ".", ".."} & set(parts):
            raise WheelError(
                f"wheel={wheel}: it holds {info.filename!r}; legal: paths inside the wheel"
            )
        if info.filename in members:
            raise WheelError(
                f"wheel={wheel}: it holds {info.filename} twice; legal: each path once"
            )
        members[info.filename] = info
    total = sum(info.file_size for info in members.values())
    largest = max((info.file_size for info in members.values()), default=0)
    if len(members) > MAXIMUM_FILES or total > MAXIMUM_BYTES or largest > MAXIMUM_FILE_BYTES:
        raise WheelError(
            f"wheel={wheel}: {len(members):,} Python files of {total:,} bytes, the largest of "
            f"{largest:,}; legal: up to {MAXIMUM_FILES:,} files of {MAXIMUM_BYTES:,} bytes, each "
            f"up to {MAXIMUM_FILE_BYTES:,}"
        )
    return members


def _unpacked(
    archive: zipfile.ZipFile, members: dict[str, zipfile.ZipInfo], top: str, folder: Path
) -> Path:
    """Unpack one top-level package; what lies there already is used if it is the same."""
    wanted = {name: info for name, info in members.items() if name.split("/")[0] == top}
    root = folder / top.removesuffix(".py")
    if root.is_dir() and _is_same(archive, wanted, root):
        return root
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".unpacking-", dir=folder) as temporary:
        fresh = Path(temporary) / "fresh"
        for name, info in wanted.items():
            file = fresh / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(_content(archive, info))
        if root.exists():
            root.replace(Path(temporary) / "old")
        try:
            fresh.replace(root)
        except OSError:
            # Somebody else unpacked it meanwhile.
            if not _is_same(archive, wanted, root):
                raise
    return root


def _is_same(archive: zipfile.ZipFile, wanted: dict[str, zipfile.ZipInfo], root: Path) -> bool:
    """Whether a folder holds what it should and nothing else, such as compiled files."""
    files = {
        file.relative_to(root).as_posix()
        for file in root.rglob("*")
        if file.is_symlink() or not file.is_dir()
    }
    return files == set(wanted) and all(
        not (root / name).is_symlink() and (root / name).read_bytes() == _content(archive, info)
        for name, info in wanted.items()
    )


def _content(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> bytes:
    # The header may lie about the size, so the reading is limited, too.
    with archive.open(info) as opened:
        content = opened.read(info.file_size + 1)
    if len(content) != info.file_size:
        raise zipfile.BadZipFile(f"{info.filename} has another size than it says")
    return content


def _near(path: str, members: dict[str, zipfile.ZipInfo]) -> str:
    name = PurePosixPath(path).name
    same = [each for each in members if each.endswith("/" + name)]
    found = difflib.get_close_matches(path, same or list(members), n=3, cutoff=0.0 if same else 0.6)
    return f", such as {', '.join(found)}" if found else ""
