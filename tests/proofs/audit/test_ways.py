# SPDX-License-Identifier: Apache-2.0
"""A way that is gone again is the same way, or nothing is concluded from it."""

from __future__ import annotations

import ast

import pytest
import z3

from kvreshard.proofs.audit.reduction import Hypotheses
from kvreshard.proofs.lifting.path import Meaning, Path, all_ways
from kvreshard.proofs.lifting.unsupported import UnsupportedError

NODE = ast.Pass(lineno=7, col_offset=0)
x, y = z3.Ints("x y")


def test_an_answer_serves_no_other_condition() -> None:
    met = iter((x > 0, y > 0))

    def run(path: Path) -> None:
        # What is met first is another condition each time.
        path.decide(next(met), NODE)

    with pytest.raises(UnsupportedError, match="not the same when it is met again") as stopped:
        all_ways(run, Meaning)
    assert stopped.value.line == 7


def test_a_quotient_is_the_same_when_its_way_is_gone_again(monkeypatch: pytest.MonkeyPatch) -> None:
    meaning = Hypotheses((x >= 1,))
    seen = []

    def run(path: Path) -> None:
        seen.append(meaning.quotient(path, x * y, x))
        path.decide(y > 3, NODE)
        # From here on the solver gives up at once.
        monkeypatch.setattr(meaning, "_quotient", lambda *_: None)

    assert len(all_ways(run, lambda: meaning)) == 2
    assert all(one.eq(y) for one in seen)
    assert meaning.quotient(Path(meaning), y * x * x, x).eq((y * x * x) / x)


def test_ways_exclude_one_another_and_leave_nothing_out() -> None:
    meaning = Hypotheses((x >= 0,))

    def run(path: Path) -> int:
        if path.decide(x < 0, NODE):
            return 0
        if path.decide(x < 5, NODE):
            return 1 if path.decide(x < 10, NODE) else 2
        return 3

    ways = all_ways(run, lambda: meaning)
    assert [way.outcome for way in ways] == [1, 3]
    assert [[str(one) for one in way.conditions] for way in ways] == [["x < 5"], ["Not(x < 5)"]]
