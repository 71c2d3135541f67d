# SPDX-License-Identifier: Apache-2.0
"""A contract that is not one is refused; one that does not fit, or lies, proves nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from asked import HEADS, asking_of, domain_of, heads, swept
from source_mutants import LOWEST

from kvreshard.proofs.audit.all_sizes import prove_for_all_sizes
from kvreshard.proofs.audit.asking import ContractMismatchError, plain_path
from kvreshard.proofs.audit.contract import (
    PARAMETERS,
    ContractError,
    read_contract,
    shipped,
)
from kvreshard.proofs.audit.sweep import Lifted, named, sweep
from kvreshard.proofs.broken.names import COVERED

if TYPE_CHECKING:
    from pathlib import Path

CALL = """
def plan(planner, total_num_kv_heads, producer_tp_size, producer_tp_rank, consumer_tp_size,
         consumer_tp_rank):
    return planner(
        total_num_kv_heads=total_num_kv_heads,
        producer_tp_size=producer_tp_size,
        producer_tp_rank=producer_tp_rank,
        consumer_tp_size=consumer_tp_size,
        consumer_tp_rank=consumer_tp_rank,
    )
"""
RIGHT = f'"""How it\nis called.\n\nMore of it."""\nUNIT = "heads"\nDOMAIN = "all groups"\n{CALL}'


def written(folder: Path, text: str) -> Path:
    path = folder / "how.py"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_contract_is_read_with_all_that_it_may_have(tmp_path: Path) -> None:
    more = """
OUTSIDE: tuple[str, ...] = ("MLA.",)
GUARD = "check"
OPTIONAL_ARGUMENTS = ["total_num_kv_heads"]
EXECUTED_ONLY = True
PACKAGE = True


def pairs(producer_tp_rank, consumer_tp_rank):
    return True


def in_domain(producer_tp_size):
    return True


def refused(guard, bytes_per_head):
    return guard(bytes_per_head)


def expected_producer(head):
    return head
"""
    path = written(tmp_path, RIGHT + more)
    contract = read_contract(str(path))
    assert (contract.name, contract.path) == (str(path), path)
    assert contract.sentence == "How it is called."
    assert (contract.unit, contract.domain) == ("heads", "all groups")
    assert contract.outside == ("MLA.",)
    assert contract.guard == "check"
    assert contract.optional_arguments == ("total_num_kv_heads",)
    assert contract.executed_only
    assert contract.package
    names = ("plan", "pairs", "in_domain", "refused", "expected_producer")
    assert all(contract.function(name) for name in names)


def test_what_a_contract_may_lack_has_a_meaning(tmp_path: Path) -> None:
    contract = read_contract(str(written(tmp_path, RIGHT)))
    assert contract.outside == contract.optional_arguments == ()
    assert contract.guard is None
    assert not contract.executed_only
    assert not contract.package
    assert contract.function("pairs") is None


@pytest.mark.parametrize("name", shipped())
def test_each_contract_that_ships_is_one(name: str) -> None:
    contract = read_contract(name)
    assert contract.unit in ("bytes", "heads")
    assert contract.sentence
    assert contract.function("plan") is not None


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('UNIT = "heads"\n', "", "UNIT=None; legal: "),
        ('"heads"', '"tokens"', "UNIT='tokens'; legal: "),
        ('"heads"', "str(3)", "UNIT at line 5; legal: a literal"),
        ('"heads"', "{[]: 1}", "UNIT at line 5; legal: a literal"),
        ('UNIT = "heads"', 'UNIT = "heads"\nUNIT = "bytes"', "UNIT at line 6; legal: one plain"),
        ('UNIT = "heads"', 'if 1:\n    UNIT = "heads"', "UNIT at line 5; legal: one plain"),
        ('UNIT = "heads"', "UNIT: str", "UNIT at line 5; legal: one plain"),
        ('DOMAIN = "all groups"', "DOMAIN = 3", "DOMAIN is missing; legal: "),
        ('DOMAIN = "all groups"', 'DOMAIN = ""', "DOMAIN is missing; legal: "),
        ("def plan", 'OUTSIDE = "MLA"\ndef plan', "OUTSIDE='MLA'; legal: a tuple of texts"),
        ("def plan", "OUTSIDE = (3,)\ndef plan", "OUTSIDE=(3,); legal: a tuple of texts"),
        ("def plan", "OPTIONAL_ARGUMENTS = 1\ndef plan", "OPTIONAL_ARGUMENTS=1; legal: a tuple"),
        ("def plan", "EXECUTED_ONLY = 1\ndef plan", "EXECUTED_ONLY=1; legal: True or False"),
        ("def plan", "PACKAGE = None\ndef plan", "PACKAGE=None; legal: True or False"),
        ("def plan", 'GUARD = "check"\ndef plan', "GUARD and refused(guard, ...) come together"),
        ("def plan", "GUARD = 3\ndef plan", "GUARD=3; legal: a name"),
        ("def plan", "def refused(guard): return 0\ndef plan", "come together or not"),
        ("def plan", "def plans", "plan(planner, ...) is missing"),
        ("planner, total", "total", "has no parameter planner; legal: "),
        ("planner, total", "planner, /, total", "parameters that are not plain; legal: "),
        ("planner, total", "planner, *total", "parameters that are not plain; legal: "),
        ("consumer_tp_rank):", "consumer_tp_rank=0):", "parameters that are not plain; legal: "),
        ("planner, total", "planner, heads, total", "has the parameter heads; legal: "),
        (
            "def plan",
            "def pairs(head): return 1\ndef plan",
            "pairs at line 8 has the parameter head",
        ),
        (
            "def plan",
            "pairs = lambda: True\ndef plan",
            "pairs at line 8; legal: one plain function",
        ),
        (
            "def plan",
            "def pairs(): 1\ndef pairs(): 2\ndef plan",
            "pairs at line 9; legal: one plain",
        ),
        ("def plan", "async def in_domain(): 1\ndef plan", "in_domain at line 8; legal: one plain"),
        ("def plan", "from x import expected_producer\ndef plan", "expected_producer at line 8"),
        ("def plan", "def plan(:\ndef plan", "not a Python file"),
    ],
)
def test_what_is_wrong_with_a_contract_is_named(
    tmp_path: Path, old: str, new: str, said: str
) -> None:
    text = RIGHT.replace(old, new, 1)
    assert text != RIGHT
    path = written(tmp_path, text)
    with pytest.raises(ContractError) as wrong:
        read_contract(str(path))
    assert str(wrong.value).startswith(f"contract={path}: ")
    assert said in str(wrong.value)


def test_a_contract_that_is_not_there_is_named_with_those_that_are(tmp_path: Path) -> None:
    with pytest.raises(ContractError, match=r"contract=vllm-moncake; legal: .*vllm-mooncake"):
        read_contract("vllm-moncake")
    with pytest.raises(ContractError, match="legal: the path of a Python file"):
        read_contract(str(tmp_path / "none.py"))


GIVEN = named((4, 2, 2), 0, 1, 6)


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("def plan(heads):\n    return []\n", "raises TypeError; the target is plan(heads)"),
        (
            heads("    return 3\n").replace("consumer_tp_rank)", "consumer_tp_rank, page, *, k=1)"),
            "producer_tp_rank, consumer_tp_size, consumer_tp_rank, page, *, k=1)",
        ),
        (heads("    return None\n"), "plan gives a NoneType, not a list of copies"),
        (heads("    return 3\n"), "plan gives a int, not a list of copies"),
        (heads("    return [3]\n"), "a copy is 3, not three integers"),
        (heads("    return [(1, 2)]\n"), "a copy is (1, 2), not three integers"),
        (heads("    return [(0, 0, True)]\n"), "not three integers"),
        (heads("    return [(0, 0, None)]\n"), "not three integers"),
    ],
)
def test_a_contract_that_does_not_fit_says_so(source: str, said: str) -> None:
    asking = asking_of(source)
    with pytest.raises(ContractMismatchError) as wrong:
        Lifted(asking, lambda _: True).plans((4, 2, 2), 6)
    assert str(wrong.value).startswith("the contract head-list does not fit plan: ")
    assert said in str(wrong.value)


@pytest.mark.parametrize(
    ("name", "function", "said"),
    [
        ("pairs", "def pairs(): return 1 // 0", "line 18 of it raises ZeroDivisionError"),
        ("in_domain", "def in_domain(): raise ValueError", "line 18 of it raises ValueError"),
        (
            "expected_producer",
            "def expected_producer(head): return None",
            "expected_producer does not return a rank",
        ),
    ],
)
def test_a_function_of_a_contract_that_fails_is_its_fault(
    tmp_path: Path, name: str, function: str, said: str
) -> None:
    asking = asking_of(LOWEST, written(tmp_path, f"{RIGHT}\n{function}\n"))
    with pytest.raises(ContractMismatchError, match=said):
        getattr(asking, name)(plain_path(), {**GIVEN, "head": 0})


@pytest.mark.parametrize(
    "expected",
    [
        "0",
        "producer_tp_size",
        "-1",
        "head + consumer_tp_rank",
        "consumer_tp_rank + 1",
        "head // max(total_num_kv_heads // producer_tp_size, 1)",
    ],
)
def test_a_wrong_expected_producer_proves_no_coverage(tmp_path: Path, expected: str) -> None:
    lie = f"""
def expected_producer(total_num_kv_heads, producer_tp_size, consumer_tp_rank, head):
    return {expected}
"""
    contract = written(tmp_path, RIGHT + lie)
    # The lowest replica sends here, so that none of these is it wherever replicas are.
    domain = domain_of(LOWEST, "1 < H and H < P and P == D", contract)
    attempt = prove_for_all_sizes(domain.asking, domain)
    assert set(attempt.open) == {COVERED}
    # Nor does it help a planner that leaves a head out.
    short = heads("    return [(0, 0, 1)] if p == d and p != 5 else []\n")
    domain = domain_of(short, "H == P and P == D", contract)
    assert COVERED in prove_for_all_sizes(domain.asking, domain).open


def test_pairs_that_never_meet_cover_nothing(tmp_path: Path) -> None:
    contract = written(tmp_path, f"{RIGHT}\ndef pairs():\n    return False\n")
    assert set(swept(LOWEST, 3, contract).by_invariant) == {COVERED}
    domain = domain_of(LOWEST, "H == P and P == D", contract)
    attempt = prove_for_all_sizes(domain.asking, domain)
    assert [what for _, what in attempt.open[COVERED]] == ["the expected sender meets the consumer"]


def test_pairs_that_meet_too_rarely_cover_too_little(tmp_path: Path) -> None:
    rarely = "producer_tp_rank == consumer_tp_rank and producer_tp_rank != 77"
    contract = written(
        tmp_path, f"{RIGHT}\ndef pairs(producer_tp_rank, consumer_tp_rank):\n    return {rarely}\n"
    )
    domain = domain_of(LOWEST, "H == P and P == D", contract)
    assert set(prove_for_all_sizes(domain.asking, domain).open) == {COVERED}


OLD = HEADS.replace("total_num_kv_heads, ", "")
OLDER = RIGHT.replace("\ndef plan", '\nOPTIONAL_ARGUMENTS = ("total_num_kv_heads",)\n\ndef plan', 1)


def test_an_argument_that_a_target_lacks_is_not_given(tmp_path: Path) -> None:
    contract = written(tmp_path, OLDER)
    source = f"{OLD}    return [(0, 0, 1)] if producer_tp_rank == consumer_tp_rank else []\n"
    assert not swept(source, 3, contract, "H == P and P == D").failing
    with pytest.raises(ContractMismatchError, match="raises TypeError; the target is plan"):
        swept(source, 3)


def test_an_argument_that_a_target_has_of_its_module_is_not_given_to_it(tmp_path: Path) -> None:
    contract = written(tmp_path, OLDER)
    source = f"total_num_kv_heads = 4\n{OLD}    return [(0, 0, total_num_kv_heads)]\n"
    with pytest.raises(ContractMismatchError, match="raises TypeError; the target is plan"):
        swept(source, 3, contract)
    # One that it makes itself is its own.
    own = f"{OLD}    total_num_kv_heads = 4\n    return [(0, 0, total_num_kv_heads)]\n"
    assert swept(own, 3, contract).failing


GUARDED = """
GUARD = "check"


def refused(guard, producer_tp_size, consumer_tp_size):
    return guard(producer_tp_size, consumer_tp_size)
"""


@pytest.mark.parametrize(
    ("guard", "refused"),
    [
        ("return P != D", (False, True)),
        ("return 'different' if P != D else None", (False, True)),
        ("assert P == D", (False, True)),
        ("return None", (False, False)),
    ],
)
def test_a_guard_refuses_by_its_answer_or_by_raising(
    tmp_path: Path, guard: str, refused: tuple[bool, bool]
) -> None:
    contract = written(tmp_path, RIGHT + GUARDED)
    source = f"def check(P, D):\n    {guard}\n\n\n{LOWEST}"
    lifted = Lifted(asking_of(source, contract), lambda _: True)
    assert (lifted.refused((2, 2, 2), 6), lifted.refused((2, 2, 1), 6)) == refused
    assert sweep(lifted, 2).sweep.turned_away == 4 * refused[1]
    without = Lifted(asking_of(LOWEST, contract), lambda _: True)
    assert without.refused((2, 2, 1), 6) is None


def test_a_guard_that_takes_other_arguments_does_not_fit(tmp_path: Path) -> None:
    contract = written(tmp_path, RIGHT + GUARDED)
    lifted = Lifted(
        asking_of(f"def check(P):\n    return 0\n\n\n{LOWEST}", contract), lambda _: True
    )
    with pytest.raises(ContractMismatchError, match="raises TypeError"):
        lifted.refused((2, 2, 2), 6)


def test_the_parameters_are_those_of_the_documentation() -> None:
    assert set(PARAMETERS) == set(named((1, 1, 1), 0, 0, 6))
