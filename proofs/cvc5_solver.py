# SPDX-License-Identifier: Apache-2.0
"""Put questions to cvc5, each in a process of its own, and keep the answers."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from typing import TYPE_CHECKING

import cvc5

from kvreshard.proofs.cache import key_of
from kvreshard.proofs.solve import Answer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from kvreshard.proofs.cache import Cache

# A process that runs this long is broken: the resource limit ends a question within minutes.
GUARD_SECONDS = 1_800


class NoAnswerError(Exception):
    """cvc5 said nothing at all: it crashed, or ran beyond every limit."""


@dataclass(frozen=True)
class Cvc5Question:
    """SMT-LIB text with one check-sat, and a limit in cvc5's resource units."""

    text: str
    rlimit: int

    def key(self, answered_by: str) -> str:
        """Return the cache key: everything that the answer depends on."""
        return key_of(answered_by, self)


def cvc5_version() -> str:
    """Return the exact version of cvc5."""
    return str(cvc5.__version__)


def ask(question: Cvc5Question) -> Answer:
    """Put one question to cvc5.

    Raises:
        NoAnswerError: the process failed, or ran longer than any limit allows.
    """
    command = [sys.executable, "-m", "kvreshard.proofs.cvc5_process", str(question.rlimit)]
    started = time.perf_counter()
    try:
        done = subprocess.run(
            command,
            input=f"(set-logic ALL)\n{question.text}",
            capture_output=True,
            text=True,
            timeout=GUARD_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise NoAnswerError(f"cvc5 did not stop within {GUARD_SECONDS} s") from None
    if done.returncode:
        raise NoAnswerError(f"cvc5 ended with code {done.returncode}: {done.stderr.strip()}")
    said = json.loads(done.stdout)
    return Answer(said["result"], 1, 0, time.perf_counter() - started, said["reason"])


def ask_all(
    questions: Iterable[Cvc5Question],
    *,
    jobs: int,
    cache: Cache,
    progress: Callable[[int, int], None],
) -> dict[Cvc5Question, str]:
    """Return "sat", "unsat" or "unknown" for each question.

    Args:
        questions: equal ones are asked once.
        jobs: processes to run at once.
        cache: answers of earlier runs.
        progress: called with how many are answered and how many there are.

    Raises:
        NoAnswerError: cvc5 failed on one of them; nothing is known of the rest then.
    """
    wanted = list(dict.fromkeys(questions))
    kept = cache.of(f"cvc5 {cvc5_version()}")
    answers = {one: found for one in wanted if (found := kept.find(one)) is not None}
    with ThreadPoolExecutor(max_workers=jobs) as pool:
        asked = {pool.submit(ask, one): one for one in wanted if one not in answers}
        try:
            for future in as_completed(asked):
                answers[asked[future]] = future.result()
                kept.keep(asked[future], future.result())
                progress(len(answers), len(wanted))
        except BaseException:
            # Leaving the block waits for what is queued.
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return {one: answers[one].result for one in wanted}
