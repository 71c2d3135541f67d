# SPDX-License-Identifier: Apache-2.0
"""The solver's answers about mutants, kept between runs by content.

The key is all that an answer depends on: the solver, the code that asks it and the text that it is
asked. A model that was kept is replayed like a new one, so what is kept is never taken on trust.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from kvreshard.proofs.cache import Files, default_directory

if TYPE_CHECKING:
    from pathlib import Path

Model = dict[str, int]
Answer = tuple[str, Model | None]


def default_answers() -> Answers:
    """Return the answers in the folder beside those of proof runs."""
    return Answers(default_directory().parent / "mutants")


class Answers:
    """Answers on disk: "sat" with a model, "unsat" or "unknown"."""

    def __init__(self, directory: Path | None) -> None:
        """Use a directory, or nothing at all where it is None."""
        self._files = Files(directory)

    def find(self, question: str) -> Answer | None:
        """Return the answer kept for a question, or None. A file that is not one is ignored."""
        try:
            result, model = self._files.find(_key(question))
        except (ValueError, TypeError):
            return None
        return result, model

    def keep(self, question: str, answer: Answer) -> None:
        """Keep an answer, unless the directory cannot be written."""
        self._files.keep(_key(question), answer)


def _key(question: str) -> str:
    return hashlib.sha256(question.encode("utf-8")).hexdigest()
