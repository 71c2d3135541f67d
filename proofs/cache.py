# SPDX-License-Identifier: Apache-2.0
"""Answers kept between runs, by content: solver version, SMT-LIB text, seeds, limit and road.

The code that fixes parameters and puts the queries is part of the key too.
"""

from __future__ import annotations

import hashlib
import json
import os
import warnings
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from kvreshard.proofs.solve import Answer, code_hash, solver_version

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


class Keyed(Protocol):
    """A question whose answer can be kept."""

    def key(self, answered_by: str) -> str:
        """Return the hash of everything that the answer depends on."""


def key_of(answered_by: str, question: DataclassInstance) -> str:
    """Return the SHA-256 of a question's fields and of who answers it."""
    content = json.dumps([answered_by, asdict(question)], sort_keys=True)
    return hashlib.sha256(content.encode("utf-8")).hexdigest()


def default_directory() -> Path:
    """Return the cache directory: `KVRESHARD_CACHE`, or a folder in the user's cache."""
    chosen = os.environ.get("KVRESHARD_CACHE")
    if chosen:
        return Path(chosen)
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "kvreshard" / "proofs"


class Files:
    """Values on disk as JSON, one file each, by the hash of what they answer."""

    def __init__(self, directory: Path | None) -> None:
        """Use a directory, or nothing at all where it is None."""
        self.directory = directory

    def find(self, key: str) -> Any:
        """Return the value kept under a key, or None. A file that is not JSON is ignored."""
        path = self._path(key)
        if path is None:
            return None
        try:
            return json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None

    def keep(self, key: str, value: Any) -> None:
        """Keep a value. The file appears whole or not at all.

        Where the directory cannot be written, nothing is kept from then on, and a warning says so.
        """
        path = self._path(key)
        if path is None:
            return
        draft = path.with_suffix(f".{os.getpid()}.part")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            draft.write_text(json.dumps(value), encoding="utf-8")
            draft.replace(path)
        except OSError as error:
            warnings.warn(f"answers are not kept for the next run: {error}", stacklevel=3)
            self.directory = None

    def _path(self, key: str) -> Path | None:
        return None if self.directory is None else self.directory / key[:2] / f"{key[2:]}.json"


class Cache:
    """Answers on disk. `unknown` is kept too: the limit is part of the key."""

    def __init__(self, directory: Path | None, answered_by: str | None = None) -> None:
        """Use a directory, or nothing at all where it is None.

        Args:
            directory: where the files lie.
            answered_by: who answers; by default z3, with the code that puts the questions.
        """
        self._files = Files(directory)
        self._answered_by = answered_by or f"{solver_version()} {code_hash()}"

    def of(self, answered_by: str) -> Cache:
        """Return the answers of another solver, in the same place."""
        return Cache(self._files.directory, answered_by)

    def find(self, question: Keyed) -> Answer | None:
        """Return the answer kept for a question, or None. A file that is not one is ignored."""
        try:
            return Answer(**self._files.find(question.key(self._answered_by)))
        except TypeError:
            return None

    def keep(self, question: Keyed, answer: Answer) -> None:
        """Keep an answer, unless the directory cannot be written."""
        self._files.keep(question.key(self._answered_by), asdict(answer))
