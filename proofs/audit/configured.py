# SPDX-License-Identifier: Apache-2.0
"""The planners that a repository asks to have audited, as its configuration lists them.

In `pyproject.toml`:

    [[tool.kvreshard.audit]]
    target = "src/planner.py::plan"
    contract = "head-list"

or the same in `.kvreshard.toml`, under `[[audit]]`. Optional keys of an entry: `require`
("all-sizes", "range" or "finite"), `exec` (true or false), and `files`, patterns of further files
whose change asks for the audit.
"""

from __future__ import annotations

import fnmatch
import importlib
import importlib.util
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

REQUIREMENTS = ("all-sizes", "range", "finite")
_KEYS = ("target", "contract", "require", "exec", "files")


class ConfigurationError(ValueError):
    """The list of audits is not as it should be; the message names field, value, what is legal."""


@dataclass(frozen=True)
class ConfiguredAudit:
    """One audit that the configuration asks for.

    Attributes:
        target, contract: as on the command line; paths start from the configuration's folder.
        require: what `--require` takes; empty where nothing is demanded.
        execute: whether `--exec` is allowed.
        files: patterns of further files whose change asks for this audit.
    """

    target: str
    contract: str
    require: str = ""
    execute: bool = False
    files: tuple[str, ...] = ()


def read_configured(folder: Path) -> tuple[ConfiguredAudit, ...]:
    """Read the audits that a folder's configuration asks for.

    Raises:
        ConfigurationError: there is no configuration, or it is not as it should be.
    """
    for name, keys in ((".kvreshard.toml", ("audit",)), ("pyproject.toml", _PYPROJECT)):
        path = folder / name
        if not path.is_file():
            continue
        found = _read(path, keys)
        if found is not None:
            return found
    raise ConfigurationError(
        f"configuration={folder}: no audits are listed; legal: [[audit]] in .kvreshard.toml, or "
        "[[tool.kvreshard.audit]] in pyproject.toml"
    )


_PYPROJECT = ("tool", "kvreshard", "audit")


def changed_among(
    audits: Iterable[ConfiguredAudit], changed: Iterable[str], folder: Path
) -> tuple[ConfiguredAudit, ...]:
    """Return the audits that changed files ask for.

    A file asks for the audits whose target or contract it is, or whose `files` it matches; the
    configuration itself asks for all. A released distribution does not change, so that only its
    contract, `files` and the configuration ask for it.

    Args:
        audits: as configured.
        changed: paths from the current directory.
        folder: the configuration's.
    """
    names = {_from(folder, path) for path in changed}
    if names & {".kvreshard.toml", "pyproject.toml"}:
        return tuple(audits)
    return tuple(audit for audit in audits if any(_asks(audit, name) for name in names))


def _from(folder: Path, path: str) -> str:
    try:
        return Path(path).resolve().relative_to(folder.resolve()).as_posix()
    except ValueError:
        return Path(path).as_posix()


def _asks(audit: ConfiguredAudit, name: str) -> bool:
    if any(fnmatch.fnmatchcase(name, pattern) for pattern in audit.files):
        return True
    if name == Path(audit.contract).as_posix():
        return True
    if "==" in audit.target:
        return False
    where, separator, _ = audit.target.partition("::")
    if separator:
        return name == Path(where).as_posix()
    # A module may lie in any source folder.
    module = audit.target.partition(":")[0].replace(".", "/")
    return any(
        name == ending or name.endswith(f"/{ending}")
        for ending in (f"{module}.py", f"{module}/__init__.py")
    )


def _read(path: Path, keys: Sequence[str]) -> tuple[ConfiguredAudit, ...] | None:
    toml = _toml()
    try:
        found: Any = toml.loads(path.read_text(encoding="utf-8"))
    except (toml.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"configuration={path.name}: {error}; legal: TOML") from error
    for key in keys:
        found = found.get(key) if isinstance(found, dict) else None
    if found is None:
        return None
    where = f"{path.name}: {'.'.join(keys)}"
    if not isinstance(found, list) or not found:
        raise ConfigurationError(f"{where}={found!r}; legal: one table or more, each in [[...]]")
    return tuple(_entry(each, f"{where}[{at}]") for at, each in enumerate(found))


def _entry(found: Any, where: str) -> ConfiguredAudit:
    if not isinstance(found, dict):
        raise ConfigurationError(f"{where}={found!r}; legal: a table")
    for key in found:
        if key not in _KEYS:
            raise ConfigurationError(f"{where}.{key}; legal: {', '.join(_KEYS)}")
    for key in ("target", "contract"):
        if not isinstance(found.get(key), str) or not _is_one_line(found[key]):
            raise ConfigurationError(f"{where}.{key}={found.get(key)!r}; legal: a line of text")
    require, execute, files = found.get("require", ""), found.get("exec", False), found.get("files")
    if require not in ("", *REQUIREMENTS):
        raise ConfigurationError(f"{where}.require={require!r}; legal: {', '.join(REQUIREMENTS)}")
    if not isinstance(execute, bool):
        raise ConfigurationError(f"{where}.exec={execute!r}; legal: true, false")
    if files is not None and (
        not isinstance(files, list) or not all(isinstance(each, str) for each in files)
    ):
        raise ConfigurationError(f"{where}.files={files!r}; legal: a list of patterns")
    return ConfiguredAudit(found["target"], found["contract"], require, execute, tuple(files or ()))


def _is_one_line(text: str) -> bool:
    return bool(text) and text.isprintable() and not text.startswith("-")


def _toml() -> Any:
    """Return a reader of TOML: the standard library's, or tomli before Python 3.11."""
    name = next((each for each in ("tomllib", "tomli") if importlib.util.find_spec(each)), None)
    if name is not None:
        return importlib.import_module(name)
    raise ConfigurationError(
        f"python={sys.version_info.major}.{sys.version_info.minor}: it reads no TOML; legal: "
        "Python 3.11 or newer, or the package tomli"
    )
