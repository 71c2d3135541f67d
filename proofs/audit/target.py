# SPDX-License-Identifier: Apache-2.0
"""Find the source of the function to audit. Nothing of it is imported or run."""

from __future__ import annotations

import ast
import difflib
import hashlib
import importlib.machinery
import io
import re
import sys
import tokenize
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from kvreshard.proofs.audit.wheel import WheelError, fetch

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

SPELLINGS = (
    "path/to/file.py::function, package.module:function, "
    "or DIST==VERSION:package/module.py::function"
)
MAXIMUM_BYTES = 10_000_000

_DISTRIBUTION = re.compile(
    r"(?P<name>[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)==(?P<version>[A-Za-z0-9][A-Za-z0-9.!+_-]*)"
    r":(?P<path>[^:].*)::(?P<function>[^:]*)"
)
_FILE = re.compile(r"(?P<path>.+)::(?P<function>[^:]*)")
_MODULE = re.compile(r"(?P<module>[^:/]+):(?P<function>[^:]*)")


class TargetError(ValueError):
    """What was named cannot be audited. The message names the field, value and what is legal."""


@dataclass(frozen=True)
class Located:
    """The source of a function.

    Attributes:
        target: as the user named it.
        origin: where the source came from, in words.
        shown: the path as reports show it: as given, inside the distribution, or from the entry of
            the module search path on.
        path: where the file lies.
        source: its bytes, UTF-8.
        sha256: of those bytes.
        function: a function at the top level of the file.
        root: the folder that the file's package is imported from; None for a file of no package.
    """

    target: str
    origin: str
    shown: str
    path: Path
    source: bytes
    sha256: str
    function: str
    root: Path | None

    @property
    def text(self) -> str:
        """Return the source as text."""
        return self.source.decode("utf-8-sig")


def locate(target: str) -> Located:
    """Find what a target names.

    Raises:
        TargetError: it is misspelt, or there is no such thing, or it is no Python.
    """
    if match := _DISTRIBUTION.fullmatch(target):
        return _in_distribution(target, **match.groupdict())
    if (match := _FILE.fullmatch(target)) and ("==" not in target or Path(match["path"]).exists()):
        return _in_file(target, **match.groupdict())
    if (match := _MODULE.fullmatch(target)) and "==" not in target:
        return _in_module(target, **match.groupdict())
    raise TargetError(f"target={target}; legal: {SPELLINGS}")


def _in_file(target: str, path: str, function: str) -> Located:
    file = Path(path)
    if not file.exists():
        near = _near(file.name, (other.name for other in _python_files(file.parent)))
        raise TargetError(f"file={path}: no such file; legal: a Python file{near}")
    return _read(target, "file", path, file, function, _import_root(file.resolve()))


def _in_module(target: str, module: str, function: str) -> Located:
    file, entry = find_module(module)
    return _read(
        target, f"the module {module}", file.relative_to(entry).as_posix(), file, function, entry
    )


def _in_distribution(target: str, name: str, version: str, path: str, function: str) -> Located:
    try:
        unpacked = fetch(name, version, path)
    except WheelError as error:
        raise TargetError(str(error)) from error
    origin = f"{name} {version} from the package index, {unpacked.wheel}, sha256 {unpacked.sha256}"
    return _read(target, origin, path, unpacked.root / path, function, unpacked.root)


def find_module(name: str) -> tuple[Path, Path]:
    """Find the file of a module, and the folder that its name starts from.

    The parents are walked, not imported. The current directory counts, as it does for `python -m`.

    Raises:
        TargetError: there is no such module, or it has no Python source.
    """
    parts = name.split(".")
    if not all(part.isidentifier() for part in parts):
        raise TargetError(f"module={name}; legal: names with dots between, such as package.module")
    places: Sequence[str] = [str(Path.cwd()), *(entry for entry in sys.path if entry)]
    file: Path | None = None
    for depth, part in enumerate(parts, start=1):
        spec = importlib.machinery.PathFinder.find_spec(part, list(places)) or _editable(
            ".".join(parts[:depth])
        )
        if spec is None:
            whole = ".".join(parts[:depth])
            near = _near(part, _modules(places))
            raise TargetError(
                f"module={name}: there is no {whole} on the module search path; legal: a module "
                f"that is installed or lies below the current directory{near}"
            )
        places = list(spec.submodule_search_locations or ())
        file = Path(spec.origin) if spec.origin and spec.has_location else None
    if file is None:
        raise TargetError(f"module={name}: a folder without a file of its own; legal: a module")
    if file.suffix != ".py":
        raise TargetError(f"module={name}: found as {file.name}; legal: a module with a .py file")
    names = len(parts) if file.name != "__init__.py" else len(parts) + 1
    folder = file.resolve()
    for _ in range(names):
        folder = folder.parent
    # A package may lie in a folder of another name than its own; then only its file name is sure.
    named = folder.joinpath(*parts[:-1]) if file.name != "__init__.py" else folder.joinpath(*parts)
    return file.resolve(), folder if named == file.resolve().parent else file.resolve().parent


def _editable(name: str) -> importlib.machinery.ModuleSpec | None:
    """Ask the finders that editable installs of setuptools leave behind. They import nothing."""
    for finder in sys.meta_path:
        if str(getattr(finder, "__module__", "")).startswith("__editable__"):
            spec = finder.find_spec(name, None)
            if spec is not None:
                return spec
    return None


def _modules(places: Iterable[str]) -> Iterable[str]:
    for place in places:
        folder = Path(place)
        if folder.is_dir():
            for entry in folder.iterdir():
                if entry.is_dir() or entry.suffix == ".py":
                    yield entry.stem


def _import_root(file: Path) -> Path | None:
    folder = file.parent
    if not (folder / "__init__.py").exists():
        return None
    while (folder / "__init__.py").exists() and folder.parent != folder:
        folder = folder.parent
    return folder


def _read(
    target: str, origin: str, shown: str, file: Path, function: str, root: Path | None
) -> Located:
    if not file.is_file():
        raise TargetError(f"file={shown}: not a regular file; legal: a Python file")
    try:
        with file.open("rb") as opened:
            source = opened.read(MAXIMUM_BYTES + 1)
    except OSError as error:
        raise TargetError(f"file={shown}: {error.strerror}; legal: a file to read") from error
    if len(source) > MAXIMUM_BYTES:
        raise TargetError(f"file={shown}: too large; legal: up to {MAXIMUM_BYTES:,} bytes")
    _check_function(parse(source, shown), function, shown)
    digest = hashlib.sha256(source).hexdigest()
    return Located(target, origin, shown, file.resolve(), source, digest, function, root)


def parse(source: bytes, shown: str) -> ast.Module:
    """Parse a file's bytes.

    Raises:
        TargetError: it is not UTF-8, or no Python.
    """
    try:
        text = source.decode("utf-8-sig")
        encoding, _ = tokenize.detect_encoding(io.BytesIO(source).readline)
        if encoding not in {"utf-8", "utf-8-sig", "ascii"}:
            raise TargetError(f"file={shown}: declared as {encoding}; legal: UTF-8")
    except UnicodeDecodeError as error:
        raise TargetError(f"file={shown}: byte {error.start} is no UTF-8; legal: UTF-8") from error
    except SyntaxError as error:
        raise TargetError(f"file={shown}: {error.msg}; legal: UTF-8") from error
    try:
        with warnings.catch_warnings():
            # Python warns of its style; that is not ours to report.
            warnings.simplefilter("ignore")
            return ast.parse(text, shown)
    except SyntaxError as error:
        raise TargetError(
            f"file={shown}: line {error.lineno}: {error.msg}; legal: what Python "
            f"{sys.version_info.major}.{sys.version_info.minor} can parse"
        ) from error
    except (ValueError, RecursionError, MemoryError) as error:
        raise TargetError(
            f"file={shown}: {error or 'too deeply nested'}; legal: what Python can parse"
        ) from error


def functions(tree: ast.Module) -> list[str]:
    """Return the functions at the top level of a module, within `if` and `try` too, in order."""
    found: list[str] = []
    pending: list[ast.AST] = list(tree.body)
    while pending:
        node = pending.pop(0)
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            found.append(node.name)
        elif not isinstance(node, ast.ClassDef):
            pending[:0] = [
                child
                for child in ast.iter_child_nodes(node)
                if isinstance(child, (ast.stmt, ast.ExceptHandler))
            ]
    return list(dict.fromkeys(found))


def _check_function(tree: ast.Module, function: str, shown: str) -> None:
    known = functions(tree)
    if function in known:
        return
    if not function.isidentifier():
        said = "not the name of a function"
    elif _is_method(tree, function):
        said = f"a method in {shown}, not a function at its top level"
    else:
        said = f"{shown} has no such function"
    near = _near(function, known) if known else "; the file has none"
    raise TargetError(
        f"function={function}: {said}; legal: a function at the top level of the file{near}"
    )


def _is_method(tree: ast.Module, name: str) -> bool:
    return any(
        isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.name == name
        for each in ast.walk(tree)
        if isinstance(each, ast.ClassDef)
        for node in each.body
    )


def _python_files(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.py")) if folder.is_dir() else []


def _near(name: str, known: Iterable[str]) -> str:
    found = difflib.get_close_matches(name, sorted(set(known)), n=3)
    return f", such as {', '.join(found)}" if found else ""
