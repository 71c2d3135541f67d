# SPDX-License-Identifier: Apache-2.0
"""Run an audited planner in a process of its own, with limits on time and memory.

What this does not protect against: the process runs as the same user, so code in the target can
read that user's files, and it can answer what it likes. Where the kernel takes a filter of system
calls, the target cannot change files, start processes, open sockets or signal others; where it does
not, it can. docs/audit-execution.md says more. Run what you do not trust in a container or a
virtual machine.
"""

from __future__ import annotations

import contextlib
import io
import json
import math
import os
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections import deque
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from kvreshard.proofs.audit.extract import extract
from kvreshard.proofs.audit.target import TargetError, parse

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from types import TracebackType

    from typing_extensions import Self

    from kvreshard.proofs.audit.contract import Contract
    from kvreshard.proofs.audit.target import Located

# Questions under way are kept below what any pipe holds, so that writing one never waits for the
# worker to read.
_BYTES_UNDER_WAY = 4096
_LONGEST_ANSWER = 16_000_000


@dataclass(frozen=True)
class Limits:
    """What the target may use.

    Attributes:
        seconds_per_call: of wall time until one answer, and until it has loaded.
        seconds: of wall time, and of processor time, for all answers together.
        memory_bytes: of address space.
    """

    seconds_per_call: float = 10.0
    seconds: float = 600.0
    memory_bytes: int = 2 << 30

    def __post_init__(self) -> None:
        """Refuse limits that allow nothing."""
        for name in ("seconds_per_call", "seconds", "memory_bytes"):
            if not getattr(self, name) > 0:
                raise ValueError(f"{name}={getattr(self, name)}; legal: more than 0")


@dataclass(frozen=True)
class Answer:
    """What the target said to one question.

    Attributes:
        copies: (source offset, target offset, count), in the contract's unit; empty if it raised.
        raised: the exception in words, with the line of the target; empty if it did not raise.
    """

    copies: tuple[tuple[int, int, int], ...] = ()
    raised: str = ""


class ExecutionStopped(RuntimeError):  # noqa: N818 - it says what happened, as its readers call it
    """The target gave no answer.

    Attributes:
        limit: what stopped it, in words.
        asked: the sizes of the question; None while loading.
    """

    def __init__(self, limit: str, text: str, asked: Mapping[str, int] | None = None) -> None:
        """Put it in one sentence."""
        where = "while loading" if asked is None else f"when asked {_shown(asked)}"
        super().__init__(f"execution stopped {where}: {limit}: {text}")
        self.limit = limit
        self.asked = asked


_STOPPED = {
    "memory": "memory",
    "recursion": "recursion",
    "missing": "a module or name that is not there",
    "load": "the target does not load",
    "contract": "the contract",
    "confined": "the confinement",
}


def _shown(asked: Mapping[str, int]) -> str:
    return ", ".join(f"{name}={value}" for name, value in asked.items())


class Executed:
    """A target that runs beside its contract, in a process of its own, while the block lasts.

    Attributes:
        confined: whether the kernel refuses the target changes of files, processes and sockets.
    """

    def __init__(self, located: Located, contract: Contract, limits: Limits | None = None) -> None:
        """Prepare to run a target; nothing runs yet.

        Args:
            located: the target. By default it is taken out of its file with what it needs there;
                a contract that says PACKAGE has its module imported, from `located.root`.
            contract: run next to the target.
            limits: by default `Limits()`.

        Raises:
            TargetError: the contract wants a package and the target's file belongs to none.
        """
        if contract.package and located.root is None:
            raise TargetError(
                f"target={located.target}: the contract {contract.name} needs its package; legal: "
                "a file in a folder with __init__.py, a module, or a distribution"
            )
        self._located = located
        self._contract = contract
        self._limits = limits or Limits()
        self._buffer = bytearray()
        self._exit = contextlib.ExitStack()
        self._said: IO[bytes] = io.BytesIO()
        self._process: subprocess.Popen[bytes] | None = None
        self._ends = 0.0
        self.confined = False

    def __enter__(self) -> Self:
        """Start the process and load the target.

        Raises:
            ExecutionStopped: it does not load.
        """
        self._ends = time.monotonic() + self._limits.seconds
        # What Python says of itself if it does not even start.
        self._said = self._exit.enter_context(tempfile.TemporaryFile())
        folder = self._exit.enter_context(
            tempfile.TemporaryDirectory(prefix="kvreshard-audit-", ignore_cleanup_errors=True)
        )
        home = Path(folder, "home")
        home.mkdir()
        self._exit.callback(self._end)
        self._process = subprocess.Popen(
            [sys.executable, *_options(folder), str(Path(__file__).with_name("worker.py"))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._said,
            cwd=home,
            env=_environment(home),
            start_new_session=True,
        )
        try:
            self._send(json.dumps(self._setup()).encode())
            ready = self._receive(None)
        except BaseException:
            self._exit.close()
            raise
        self.confined = bool(ready.get("confined"))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End the process and all that it started."""
        self._exit.close()

    def plan(self, sizes: Mapping[str, int]) -> Answer:
        """Ask what one producer rank copies into one consumer rank's block.

        Args:
            sizes: a value for each parameter of a contract.

        Raises:
            ExecutionStopped: there was no answer.
        """
        return next(self.plans([sizes]))

    def plans(self, questions: Iterable[Mapping[str, int]]) -> Iterator[Answer]:
        """Ask many questions; the answers come in their order.

        Whoever stops before the last answer ends the process.

        Raises:
            ExecutionStopped: there was no answer to one.
        """
        for asked, answer in self._ask("plan", questions):
            yield _answer(answer, asked)

    def refused(self, sizes: Mapping[str, int]) -> bool | None:
        """Ask whether the guard refuses the pair; None where the target has no guard.

        Raises:
            ExecutionStopped: there was no answer.
        """
        asked, answer = next(self._ask("refused", [sizes]))
        refused = answer.get("refused", "")
        if refused is None or isinstance(refused, bool):
            return refused
        raise ExecutionStopped("the protocol", "an answer in no known form", asked)

    # The process

    def _setup(self) -> dict[str, Any]:
        located, contract = self._located, self._contract
        tree = parse(located.source, located.shown)
        guard = contract.guard or ""
        bound = [located.function]
        with contextlib.suppress(ValueError):
            extract(tree, [guard])
            bound.append(guard)
        taken = extract(tree, bound)
        module = own = ""
        if located.root is not None:
            parts = located.path.relative_to(located.root.resolve()).with_suffix("").parts
            module = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
            own = parts[0]
        return {
            "source": located.text,
            "sha256": located.sha256,
            "shown": located.shown,
            "function": located.function,
            "guard": guard,
            "optional": list(contract.optional_arguments),
            "package": contract.package,
            "root": str(located.root.resolve()) if located.root is not None else "",
            "module": module,
            "own": own,
            "kept": list(taken.kept),
            "imports": [asdict(each) for each in taken.imports],
            "contract": contract.path.read_text(encoding="utf-8"),
            "contract_shown": contract.name,
            "memory_bytes": self._limits.memory_bytes,
            "cpu_seconds": math.ceil(self._limits.seconds) + 1,
        }

    def _ask(
        self, kind: str, questions: Iterable[Mapping[str, int]]
    ) -> Iterator[tuple[Mapping[str, int], dict[str, Any]]]:
        """Keep some questions under way, so that neither side waits for the other at each one."""
        waiting: deque[tuple[Mapping[str, int], int]] = deque()
        under_way = 0
        try:
            for sizes in questions:
                line = json.dumps([kind, dict(sizes)]).encode()
                while waiting and under_way + len(line) > _BYTES_UNDER_WAY:
                    asked, size = waiting[0]
                    answer = self._receive(asked)
                    waiting.popleft()
                    under_way -= size
                    yield asked, answer
                self._send(line)
                waiting.append((sizes, len(line)))
                under_way += len(line)
            while waiting:
                asked, _ = waiting[0]
                answer = self._receive(asked)
                waiting.popleft()
                yield asked, answer
        finally:
            # Answers that nobody waits for any more must not be taken for the next question's.
            if waiting:
                self._end()

    def _send(self, line: bytes) -> None:
        if self._process is None or self._process.stdin is None:
            raise ExecutionStopped("the end", "the process has ended already")
        # A worker that is gone is noticed where its answer is missing.
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.write(line + b"\n")
            self._process.stdin.flush()

    def _receive(self, asked: Mapping[str, int] | None) -> dict[str, Any]:
        try:
            line = self._line(asked)
            try:
                answer = json.loads(line)
            except (ValueError, RecursionError) as error:
                raise ExecutionStopped(
                    "the protocol", "an answer that is no JSON", asked
                ) from error
            if not isinstance(answer, dict):
                raise ExecutionStopped("the protocol", "an answer in no known form", asked)
            if "stopped" in answer:
                what = _STOPPED.get(str(answer["stopped"]), "the protocol")
                raise ExecutionStopped(what, str(answer.get("text", "")), asked)
        except ExecutionStopped:
            self._end()
            raise
        return answer

    def _line(self, asked: Mapping[str, int] | None) -> bytes:
        if self._process is None or self._process.stdout is None:
            raise ExecutionStopped("the end", "the process has ended already", asked)
        descriptor = self._process.stdout.fileno()
        ready = select.poll()
        ready.register(descriptor, select.POLLIN | select.POLLHUP)
        due = time.monotonic() + self._limits.seconds_per_call
        searched = 0
        while (end := self._buffer.find(b"\n", searched)) < 0:
            searched = len(self._buffer)
            if searched > _LONGEST_ANSWER:
                raise ExecutionStopped(
                    "the protocol", f"an answer of more than {_LONGEST_ANSWER:,} bytes", asked
                )
            left = min(due, self._ends) - time.monotonic()
            if left <= 0 or not ready.poll(left * 1000):
                raise self._too_slow(due, asked)
            piece = os.read(descriptor, 1 << 16)
            if not piece:
                raise ExecutionStopped("a crash", self._how_it_ended(), asked)
            self._buffer += piece
        line = bytes(self._buffer[:end])
        del self._buffer[: end + 1]
        return line

    def _too_slow(self, due: float, asked: Mapping[str, int] | None) -> ExecutionStopped:
        limits = self._limits
        if due <= self._ends:
            return ExecutionStopped(
                "time", f"no answer in {limits.seconds_per_call:g} s, the limit for one", asked
            )
        return ExecutionStopped(
            "time", f"not done in {limits.seconds:g} s, the limit for all answers together", asked
        )

    def _how_it_ended(self) -> str:
        """Say how the process ended, without reaping it: its number must stay its own."""
        process = self._process
        if process is None:
            return "the process has ended already"
        for _ in range(100):
            ended = os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT | os.WNOHANG)
            if ended is not None:
                break
            time.sleep(0.01)
        else:
            return "it closed its channel"
        if ended.si_code == os.CLD_EXITED:
            self._said.seek(0)
            last = self._said.read(_LONGEST_ANSWER).decode(errors="replace").strip().splitlines()
            why = f": {last[-1]}" if last else ""
            return f"the process ended itself with exit status {ended.si_status}{why}"
        name = signal.Signals(ended.si_status).name
        if name == "SIGXCPU":
            return f"the processor time is used up ({name})"
        return f"the process was ended by {name}"

    def _end(self) -> None:
        """End the process and its group. Its number is not free before it is waited for."""
        process, self._process = self._process, None
        if process is None:
            return
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        process.kill()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                with contextlib.suppress(BrokenPipeError):
                    pipe.close()
        process.wait()


def _options(folder: str) -> list[str]:
    # Isolated: no user site, no variables of the environment, no script's folder on the path.
    # Compiled files are neither written nor read: a stale one would be other code than audited.
    return ["-I", "-B", "-X", "utf8", "-X", f"pycache_prefix={folder}/none"]


def _environment(home: Path) -> dict[str, str]:
    kept = {
        name: value
        for name in ("LD_LIBRARY_PATH", "PATH")
        if (value := os.environ.get(name)) is not None
    }
    one = dict.fromkeys(
        ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS"), "1"
    )
    return {**kept, **one, "HOME": str(home), "TMPDIR": str(home), "LANG": "C.UTF-8"}


def _answer(answer: dict[str, Any], asked: Mapping[str, int]) -> Answer:
    """Take nothing on trust: the target may have written the answer itself."""
    raised, copies = answer.get("raised"), answer.get("copies")
    if isinstance(raised, str) and raised:
        return Answer(raised=raised)
    if isinstance(copies, list) and all(
        isinstance(copy, list) and len(copy) == 3 and all(type(number) is int for number in copy)
        for copy in copies
    ):
        return Answer(copies=tuple((src, dst, count) for src, dst, count in copies))
    raise ExecutionStopped("the protocol", "an answer in no known form", asked)
