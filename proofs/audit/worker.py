# SPDX-License-Identifier: Apache-2.0
"""Run an audited function beside its contract, in a process of its own; see execute.py.

This file is run as a program, by its path. It imports the standard library only, besides what the
target needs, and never kvreshard, so that the target meets as little of us as can be.

It reads one JSON line per question from its standard input and writes one per answer to its
standard output. Both are moved to other descriptors before anything of the target runs. What the
target prints goes nowhere.
"""

from __future__ import annotations
import __future__

import ast
import contextlib
import ctypes
import hashlib
import importlib
import inspect
import json
import operator
import os
import resource
import struct
import sys
import traceback
import types
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

MODULE = "audited"
CONTRACT = "contract"
MAXIMUM_TEXT = 500


class StoppedError(Exception):
    """The question has no answer. `kind` says what stopped it, the message why."""

    def __init__(self, kind: str, text: str) -> None:
        """Keep both."""
        super().__init__(text)
        self.kind = kind


# Limits


def limit(memory_bytes: int, seconds: int) -> None:
    """Bound what this process and all that it starts may use."""
    for what, most in (
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_NPROC, 0),
        (resource.RLIMIT_NOFILE, 64),
        (resource.RLIMIT_AS, memory_bytes),
        (resource.RLIMIT_CPU, seconds),
    ):
        _, hard = resource.getrlimit(what)
        allowed = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(what, (allowed, allowed))


# System calls that a planner has no use for: new processes, threads and programs; sockets; a hold
# on other processes; changes of files. By machine, as the kernel numbers them.
_X86_64 = (
    *(41, 53),  # socket, socketpair
    *(56, 57, 58, 59, 322, 435),  # clone, fork, vfork, execve, execveat, clone3
    *(62, 200, 234, 129, 297, 424),  # kill, tkill, tgkill, (tg)sigqueueinfo, pidfd_send_signal
    *(101, 310, 311, 438, 425),  # ptrace, process_vm_*, pidfd_getfd, io_uring_setup
    *(109, 112),  # setpgid, setsid
    *(76, 77, 285),  # truncate, ftruncate, fallocate
    *(82, 83, 84, 85, 86, 87, 88),  # rename, mkdir, rmdir, creat, link, unlink, symlink
    *(258, 259, 263, 264, 265, 266, 316),  # the same, from a folder's descriptor
    *(90, 91, 268, 452, 92, 93, 94, 260, 133),  # chmod and chown, mknod
    *(188, 189, 190, 197, 198, 199),  # setxattr, removexattr
    *(132, 235, 261, 280),  # utime
    *(165, 155, 161, 437),  # mount, pivot_root, chroot, openat2
)
_AARCH64 = (
    *(198, 199),
    *(220, 221, 281, 435),
    *(129, 130, 131, 138, 240, 424),
    *(117, 270, 271, 438, 425),
    *(154, 157),
    *(45, 46, 47),
    *(33, 34, 35, 36, 37, 38, 276),
    *(52, 53, 54, 55, 452),
    *(5, 6, 7, 14, 15, 16),
    88,
    *(40, 41, 51, 437),
)
# Machine: how the kernel names it, what is refused, and what opens files, by which argument.
_MACHINES = {
    "x86_64": (0xC000003E, _X86_64, {2: 1, 257: 2}),
    "aarch64": (0xC00000B7, _AARCH64, {56: 2}),
}
# Calls of the other ABI on x86-64 have this bit.
_X32 = 0x40000000


def forbid_system_calls() -> bool:
    """Let the kernel refuse what is forbidden, from here on, and say whether it does."""
    machine = os.uname().machine
    if sys.platform != "linux" or machine not in _MACHINES:
        return False
    code = assembled(machine)
    lines = ctypes.create_string_buffer(code, len(code))
    # struct sock_fprog: a length and a pointer, aligned.
    header = struct.pack("HxxxxxxQ", len(code) // 8, ctypes.addressof(lines))
    filled = ctypes.create_string_buffer(header, len(header))
    prctl = ctypes.CDLL(None, use_errno=True).prctl
    prctl.argtypes = [ctypes.c_int, *[ctypes.c_ulong] * 4]
    no_new_privileges, set_filter, filter_mode = 38, 22, 2
    if prctl(no_new_privileges, 1, 0, 0, 0) != 0:
        return False
    return bool(prctl(set_filter, filter_mode, ctypes.addressof(filled), 0, 0) == 0)


def assembled(machine: str) -> bytes:
    """Return the filter as the kernel reads it: 8 bytes an instruction."""
    name, refused, opening = _MACHINES[machine]
    load, equal, at_least, any_bit, give = 0x20, 0x15, 0x35, 0x45, 0x06
    refuse, kill, allow = 0x00050001, 0x80000000, 0x7FFF0000  # 1 is EPERM.
    # An instruction, its operand, and where to go on if it holds; else the next one follows.
    program: list[tuple[int, int, str]] = [
        (load, 4, ""),
        (equal, name, "known"),
        (give, kill, ""),
        (load, 0, "known:"),
        (at_least, _X32, "refuse"),
        *((equal, number, "refuse") for number in refused),
        *((equal, number, f"open{number}") for number in opening),
        (give, allow, ""),
    ]
    # O_WRONLY, O_RDWR, O_CREAT, O_TRUNC, and the bit of O_TMPFILE.
    writing = 0o1 | 0o2 | 0o100 | 0o1000 | 0o20000000
    for number, argument in opening.items():
        program += [
            (load, 16 + 8 * argument, f"open{number}:"),
            (any_bit, writing, "refuse"),
            (give, allow, ""),
        ]
    program.append((give, refuse, "refuse:"))
    places = {label[:-1]: at for at, (_, _, label) in enumerate(program) if label.endswith(":")}
    return b"".join(
        struct.pack("HBBI", code, places[label] - at - 1 if label in places else 0, 0, operand)
        for at, (code, operand, label) in enumerate(program)
    )


# The target


used: list[str] = []


class Missing:
    """Stands for a name that could not be imported, and says so as soon as it is used."""

    def __init__(self, what: str, why: str) -> None:
        """Keep what is missing and why."""
        self.__dict__["_said"] = f"{what} is needed, but {why}"

    def _use(self, *_: object, **__: object) -> Any:
        # Remembered, for a target that catches whatever is raised.
        used.append(self.__dict__["_said"])
        raise StoppedError("missing", self.__dict__["_said"])

    def __getattr__(self, name: str) -> Any:
        """Any attribute is a use; Python's own probes are answered as if there were none."""
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        self._use()

    __call__ = __getitem__ = __setitem__ = __iter__ = __len__ = __bool__ = __contains__ = _use
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __or__ = __ror__ = _use
    __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = __truediv__ = __rtruediv__ = _use
    __lt__ = __le__ = __gt__ = __ge__ = __eq__ = __ne__ = __index__ = __int__ = _use
    __and__ = __rand__ = __enter__ = __neg__ = __setattr__ = _use
    __instancecheck__ = __subclasscheck__ = __mro_entries__ = _use
    __hash__ = object.__hash__


def bind_import(namespace: dict[str, Any], wanted: dict[str, Any], own: str) -> None:
    """Bind one name that the target imports, or a placeholder for it.

    A module of the target's own package is not taken from what happens to be installed: that may
    be another version.
    """
    module, name = wanted["module"], wanted["name"]
    shown = f"{module}.{name}" if name else module
    try:
        if module.startswith("."):
            raise ImportError("it lies in another file of the target's package")
        if own and module.split(".")[0] == own:
            raise ImportError("it is of the target's own package, which is not imported")
        found: Any = importlib.import_module(module)
        if name:
            if not hasattr(found, name):
                importlib.import_module(f"{module}.{name}")
            found = getattr(found, name)
        elif wanted["bound"] == module.split(".")[0]:
            found = importlib.import_module(wanted["bound"])
    except BaseException as error:
        found = Missing(f"{shown} (line {wanted['line']})", say(error))
    namespace[wanted["bound"]] = found


def extracted(setup: dict[str, Any]) -> dict[str, Any]:
    """Compile and run the kept statements of the target's file alone, at their own lines."""
    module = types.ModuleType(MODULE)
    sys.modules[MODULE] = module
    namespace = vars(module)
    namespace["__file__"] = setup["shown"]
    for wanted in setup["imports"]:
        bind_import(namespace, wanted, setup["own"])
    tree = ast.parse(setup["source"], setup["shown"])
    tree.body = [tree.body[position] for position in setup["kept"]]
    flags = __future__.annotations.compiler_flag
    code = compile(tree, setup["shown"], "exec", flags=flags, dont_inherit=True)
    with loading(setup["shown"]):
        exec(code, namespace)
    return namespace


def imported(setup: dict[str, Any]) -> dict[str, Any]:
    """Import the target's module from its package's folder.

    Where a parent package cannot be imported, its `__init__` is left out: an empty package of that
    name and folder stands for it.
    """
    # After the standard library, before what is installed.
    installed = [at for at, entry in enumerate(sys.path) if entry.endswith("-packages")]
    sys.path.insert(min(installed, default=len(sys.path)), setup["root"])
    name = setup["module"]
    try:
        module = importlib.import_module(name)
    except BaseException:
        for loaded in [each for each in sys.modules if each.split(".")[0] == name.split(".")[0]]:
            del sys.modules[loaded]
        bare_parents(setup["root"], name)
        with loading(setup["shown"]):
            module = importlib.import_module(name)
    path = str(getattr(module, "__file__", None))
    with open(path, "rb") as file:  # noqa: PTH123 - pathlib is one more import beside the target
        if hashlib.sha256(file.read()).hexdigest() != setup["sha256"]:
            raise StoppedError("load", f"{name} was imported from {path}, which is another file")
    return vars(module)


def bare_parents(root: str, name: str) -> None:
    """Put a package without content in the place of each parent that cannot be imported."""
    parents = name.split(".")[:-1]
    for depth in range(1, len(parents) + 1):
        parent = ".".join(parents[:depth])
        try:
            importlib.import_module(parent)
        except BaseException:
            package = types.ModuleType(parent)
            package.__path__ = [os.path.join(root, *parents[:depth])]  # noqa: PTH118 - as above
            sys.modules[parent] = package
            if depth > 1:
                setattr(sys.modules[".".join(parents[: depth - 1])], parents[depth - 1], package)


@contextlib.contextmanager
def loading(shown: str) -> Iterator[None]:
    """Say of whatever goes wrong that it did before the first question."""
    try:
        yield
    except StoppedError as error:
        raise StoppedError("load", str(error)) from error
    except MemoryError as error:
        raise StoppedError("memory", "there was no more of it") from error
    except BaseException as error:
        raise StoppedError("load", f"{shown} does not load: {say(error)}") from error


# Questions


class Asked:
    """The target and its contract, ready to be asked."""

    def __init__(self, setup: dict[str, Any]) -> None:
        """Load the target, then the contract."""
        namespace = imported(setup) if setup["package"] else extracted(setup)
        optional = frozenset(setup["optional"])
        self._target = setup["shown"]
        self._root = setup["root"] if setup["package"] else None
        self._given = {"planner": without(function(namespace, setup["function"]), optional)}
        if setup["guard"] in namespace:
            self._given["guard"] = without(namespace[setup["guard"]], optional)
        contract = types.ModuleType(CONTRACT)
        sys.modules[CONTRACT] = contract
        contract.__file__ = setup["contract_shown"]
        with loading(setup["contract_shown"]):
            code = compile(setup["contract"], setup["contract_shown"], "exec", dont_inherit=True)
            exec(code, vars(contract))
        self._contract = vars(contract)
        self._parameters: dict[str, tuple[str, ...]] = {
            name: tuple(inspect.signature(self._contract[name]).parameters)
            for name in ("plan", "pairs", "refused")
            if name in self._contract
        }

    def plan(self, sizes: dict[str, int]) -> dict[str, Any]:
        """Ask what one producer rank copies into one consumer rank."""
        try:
            if "pairs" in self._parameters and not self._call("pairs", sizes):
                return {"copies": []}
            return {"copies": self._copies(self._call("plan", sizes))}
        except (StoppedError, MemoryError, RecursionError, ImportError):
            raise
        except NameError as error:
            if isinstance(error, UnboundLocalError):
                return {"raised": self._raised(error)}
            raise StoppedError("missing", say(error)) from error
        except OSError as error:
            # Arithmetic meets no such error; it comes from where the target runs, not from it.
            raise StoppedError("confined", say(error)) from error
        except BaseException as error:
            if isinstance(error, RuntimeError) and "start new thread" in str(error):
                raise StoppedError("confined", say(error)) from error
            return {"raised": self._raised(error)}

    def refused(self, sizes: dict[str, int]) -> dict[str, Any]:
        """Ask whether the guard refuses; None where there is no guard to ask."""
        if "refused" not in self._parameters or "guard" not in self._given:
            return {"refused": None}
        try:
            return {"refused": bool(self._call("refused", sizes))}
        except (StoppedError, MemoryError, RecursionError, ImportError):
            raise
        except OSError as error:
            raise StoppedError("confined", say(error)) from error
        except BaseException as error:
            raise StoppedError("contract", f"refused gave no answer: {say(error)}") from error

    def _call(self, name: str, sizes: dict[str, int]) -> Any:
        given = {**sizes, **self._given}
        wanted = self._parameters[name]
        unknown = [each for each in wanted if each not in given]
        if unknown:
            raise StoppedError("contract", f"{name} has a parameter {unknown[0]} without a value")
        return self._contract[name](**{each: given[each] for each in wanted})

    def _copies(self, answer: Any) -> list[list[int]]:
        if not isinstance(answer, (list, tuple)):
            raise StoppedError(
                "contract", f"plan returned {type(answer).__name__}; legal: a list of copies"
            )
        copies = []
        for copy in answer:
            if not isinstance(copy, (list, tuple)) or len(copy) != 3:
                raise StoppedError(
                    "contract", f"plan returned the copy {brief(copy)}; legal: (src, dst, count)"
                )
            if any(isinstance(number, bool) or not hasattr(number, "__index__") for number in copy):
                raise StoppedError(
                    "contract", f"plan returned the copy {brief(copy)}; legal: whole numbers"
                )
            copies.append([operator.index(number) for number in copy])
        return copies

    def _raised(self, error: BaseException) -> str:
        """Say what the target raised and where; what the contract raises is its own fault."""
        frames = traceback.extract_tb(error.__traceback__)
        of_target = [frame for frame in frames if self._is_of_target(frame.filename)]
        if not of_target:
            raise StoppedError("contract", f"the contract raised {say(error)}") from error
        line, file = of_target[-1].lineno, of_target[-1].filename
        if self._root is not None:
            file = os.path.relpath(file, self._root)
        return f"{say(error)}, at {file}:{line}"

    def _is_of_target(self, filename: str) -> bool:
        if self._root is not None:
            return filename.startswith(f"{self._root}{os.sep}")
        return bool(filename == self._target)


def function(namespace: dict[str, Any], name: str) -> Any:
    """Return the target itself."""
    if not callable(namespace.get(name)):
        raise StoppedError("load", f"{name} is no function once the file is loaded")
    return namespace[name]


def without(called: Any, optional: frozenset[str]) -> Any:
    """Return a function that drops optional keywords which the called one lacks."""
    if not optional:
        return called
    parameters = inspect.signature(called).parameters
    if any(each.kind is inspect.Parameter.VAR_KEYWORD for each in parameters.values()):
        return called
    lacking = optional - parameters.keys()
    if not lacking:
        return called

    def call(*given: Any, **named: Any) -> Any:
        return called(*given, **{key: named[key] for key in named if key not in lacking})

    return call


def say(error: BaseException) -> str:
    """Return an exception in words, whatever its own text does."""
    try:
        text = " ".join(str(error).split())
    except BaseException:
        text = "without words"
    kind = type(error).__name__
    return (f"{kind}: {text}" if text else kind)[:MAXIMUM_TEXT]


def brief(value: Any) -> str:
    """Return a value in words, whatever its own text does."""
    try:
        return repr(value)[:MAXIMUM_TEXT]
    except BaseException:
        return type(value).__name__


def answered(ask: Callable[[dict[str, int]], dict[str, Any]], sizes: dict[str, int]) -> bytes:
    """Return an answer, or what stopped it, as a JSON line."""
    try:
        answer = ask(sizes)
        if used:
            raise StoppedError("missing", used[0])
        return json.dumps(answer).encode() + b"\n"
    except StoppedError as error:
        answer = {"stopped": error.kind, "text": str(error)}
    except MemoryError:
        answer = {"stopped": "memory", "text": "there was no more of it"}
    except RecursionError as error:
        answer = {"stopped": "recursion", "text": say(error)}
    except ImportError as error:
        answer = {"stopped": "missing", "text": say(error)}
    except BaseException as error:
        answer = {"stopped": "contract", "text": say(error)}
    return json.dumps(answer).encode() + b"\n"


def main() -> None:
    """Load, then answer until the questions end."""
    questions, answers = os.fdopen(os.dup(0), "rb"), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(nothing, descriptor)

    def write(line: bytes) -> None:
        while line:
            line = line[os.write(answers, line) :]

    setup = json.loads(questions.readline())
    limit(setup["memory_bytes"], setup["cpu_seconds"])
    confined = forbid_system_calls()
    asked: list[Asked] = []

    def load(_: dict[str, int]) -> dict[str, Any]:
        asked.append(Asked(setup))
        return {"ready": True, "confined": confined}

    write(answered(load, {}))
    for line in questions:
        kind, sizes = json.loads(line)
        write(answered(getattr(asked[0], kind), sizes))


if __name__ == "__main__":
    main()
