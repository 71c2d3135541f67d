# SPDX-License-Identifier: Apache-2.0
"""A planner's answers are read as its contract says, lifted as well as run."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from asked import asking_of, heads, in_bytes

from kvreshard.proofs.audit.asking import ContractMismatchError
from kvreshard.proofs.audit.contract import read_contract
from kvreshard.proofs.audit.execute import Executed, ExecutionStopped, Limits
from kvreshard.proofs.audit.running import Running
from kvreshard.proofs.audit.sweep import Lifted
from kvreshard.proofs.audit.target import locate

if TYPE_CHECKING:
    from pathlib import Path

    from kvreshard.proofs.audit.judging import Plans

NAMED = """\
from {module} import {kind}


{above}class Copy{base}:
    src: int
    dst: int
    count: int


"""
AS_TUPLE = NAMED.format(module="typing", kind="NamedTuple", above="", base="(NamedTuple)")
AS_OBJECT = NAMED.format(
    module="dataclasses", kind="dataclass", above="@dataclass(frozen=True)\n", base=""
)
SIZES = (4, 2, 4)


def lifted(source: str, contract: str) -> Plans:
    return Lifted(asking_of(source, contract), lambda _: True).plans(SIZES, 6)


def run(folder: Path, source: str, contract: str) -> Plans:
    (folder / "planner.py").write_text(source, encoding="utf-8")
    located, read = locate(f"{folder}/planner.py::plan"), read_contract(contract)
    with Executed(located, read, Limits()) as process:
        return Running(process, read.unit, lambda _: True).plans(SIZES, 6)


@pytest.mark.parametrize(
    ("source", "contract"),
    [
        (heads("    return [(d % 2, 0, 1)] if d // 2 == p else []\n"), "head-list"),
        (heads("    return ((d % 2, 0, 1), [0, -3, 0])\n"), "head-list"),
        (AS_TUPLE + heads("    return [Copy(dst=0, count=1, src=d % 2)]\n"), "head-list"),
        (in_bytes("    return [(d, -1, bytes_per_head // 4)] * (p + 1)\n"), "byte-list"),
        (in_bytes("    return [(2**60, -(2**60), bytes_per_head)]\n"), "byte-list"),
        # Some pairs raise: the line is said, in words that are each one's own.
        (heads("    return [(0, 0, 4 // (p - d))]\n"), "head-list"),
        (heads("    copies = []\n    return [copies[p]] if d == 1 else copies\n"), "head-list"),
    ],
)
def test_lifted_and_run_a_planner_lists_the_same(
    tmp_path: Path, source: str, contract: str
) -> None:
    read, ran = lifted(source, contract), run(tmp_path, source, contract)
    assert read.copies == ran.copies
    assert read.raised.keys() == ran.raised.keys()
    assert read.copies or read.raised


@pytest.mark.parametrize(
    ("source", "said"),
    [
        (AS_OBJECT + heads("    return [Copy(0, 0, 1)]\n"), "a copy is a Copy, not three"),
        (heads("    return [(0, 0, p == 0)]\n"), "not three integers"),
        (heads("    return [(0, 0)]\n"), "not three integers"),
        (heads("    return (0, 0, 1)\n"), "a copy is 0, not three integers"),
        (heads("    return None\n"), "plan gives a NoneType"),
    ],
)
def test_lifted_and_run_an_answer_that_is_no_list_of_copies_is_refused(
    tmp_path: Path, source: str, said: str
) -> None:
    with pytest.raises(ContractMismatchError, match=said):
        lifted(source, "head-list")
    with pytest.raises(ExecutionStopped):
        run(tmp_path, source, "head-list")
