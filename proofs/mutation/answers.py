# SPDX-License-Identifier: Apache-2.0
"""The solver's answers about mutants, kept between runs by content.

The key is all that an answer depends on: the solver, the code that asks it and the text that it is
asked. A model that was kept is replayed like a new one, so what is kept is never taken on trust.
"""

from __future__ import annotations

import hashlib
import json
import os
import warnings
from typing import TYPE_CHECKING

from kvreshard.proofs.cache import default_directory

if TYPE_CHECKING:
    from pathlib import Path

Model = dict[str, int]
Answer = tuple[str, Model | None]


def default_answers() -> Answers:
    """Return the answers in the folder beside those of proof runs."""
    return Answers(default_directory().parent / "mutants")


class Answers:
    """Answers on disk, one file each: "sat" with a model, "unsat" or "unknown"."""

    def __init__(self, directory: Path | None) -> None:
        """Use a directory, or nothing at all where it is None."""
        self._directory = directory

    def find(self, question: str) -> Answer | None:
        """Return the answer kept for a question, or None. A file that is not one is ignored."""
        path = self._path(question)
        if path is None:
            return None
        try:
            result, model = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError, TypeError):
            return None
        return result, model

    def keep(self, question: str, answer: Answer) -> None:
        """Keep an answer. The file appears whole or not at all."""
        path = self._path(question)
        if path is None:
            return
        draft = path.with_suffix(f".{os.getpid()}.part")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            draft.write_text(json.dumps(answer), encoding="utf-8")
            draft.replace(path)
        except OSError as error:
            warnings.warn(f"answers are not kept for the next run: {error}", stacklevel=2)
            self._directory = None

    def _path(self, question: str) -> Path | None:
        if self._directory is None:
            return None
        key = hashlib.sha256(question.encode("utf-8")).hexdigest()
        return self._directory / key[:2] / f"{key[2:]}.json"
