# SPDX-License-Identifier: Apache-2.0
"""What an audited function needs of its own file, and what it does not."""

from __future__ import annotations

import ast
import textwrap

import pytest

from kvreshard.proofs.audit.extract import Extract, Import, extract


def taken(source: str, *names: str) -> Extract:
    return extract(ast.parse(textwrap.dedent(source)), names or ("plan",))


def names(extracted: Extract) -> list[str]:
    return [part.name for part in extracted.needs]


def test_helpers_classes_and_constants_come_along_with_their_lines() -> None:
    found = taken(
        """\
        from dataclasses import dataclass
        import os, math

        RATIO = 2
        UNUSED = os.system("true")

        @dataclass(frozen=True)
        class Copy:
            src: int
            count: int = RATIO

        def helper(x):
            return math.ceil(x)

        def unused():
            return UNUSED

        os.system("true")

        def plan(heads: Unknown) -> Copy:
            return Copy(helper(heads))
        """
    )
    assert [(p.name, p.first_line, p.last_line) for p in found.functions] == [("plan", 20, 21)]
    assert [(p.name, p.first_line, p.last_line) for p in found.needs] == [
        ("RATIO", 4, 4),
        ("Copy", 7, 10),
        ("helper", 12, 13),
    ]
    assert found.imports == (
        Import("dataclasses", "dataclass", "dataclass", 1),
        Import("math", "", "math", 2),
    )
    assert found.kept == (2, 4, 5, 8)
    assert found.unknown == ()


@pytest.mark.parametrize(
    "use",
    [
        "def plan(x: NEEDED): return x",
        "def plan(x) -> NEEDED: return x",
        "def plan(x):\n    y: NEEDED = x\n    return y",
        "def plan(x):\n    NEEDED = x\n    return NEEDED",
        "def plan(NEEDED): return NEEDED",
        "def plan(x): return [NEEDED for NEEDED in x]",
        "def plan(x): return (lambda NEEDED: NEEDED)(x)",
        "def plan(x): return x.NEEDED",
        "def plan(x): return f(NEEDED=x)\ndef f(**k): return k",
        "class C:\n    field: NEEDED\ndef plan(x): return C",
    ],
)
def test_annotations_local_names_and_attributes_are_no_need(use: str) -> None:
    assert "NEEDED" not in names(taken("NEEDED = 1\n" + use))


@pytest.mark.parametrize(
    "use",
    [
        "def plan(x): return NEEDED",
        "def plan(x=NEEDED): return x",
        "def plan(x, *, y=NEEDED): return x",
        "@NEEDED\ndef plan(x): return x",
        "def plan(x): return [y for y in NEEDED]",
        "def plan(x): return lambda: NEEDED",
        "def plan(x):\n    def inner(): return NEEDED\n    return inner",
        "def plan(x):\n    global NEEDED\n    NEEDED = x",
        "def plan(x): return f'{x:{NEEDED}}'",
        "class C(NEEDED): ...\ndef plan(x): return C",
        "class C:\n    field: int = NEEDED\ndef plan(x): return C",
        "class C:\n    NEEDED = NEEDED\ndef plan(x): return C",
        "class C:\n    def m(self): return NEEDED\ndef plan(x): return C",
        "def plan(x):\n    match x:\n        case NEEDED.y: return 1",
        "def plan(x):\n    try: f\n    except NEEDED: return 1",
    ],
)
def test_every_kind_of_use_is_a_need(use: str) -> None:
    assert "NEEDED" in names(taken("NEEDED = 1\n" + use))


@pytest.mark.parametrize(
    "binding",
    [
        "for NEEDED in (1, 2): pass",
        "with open('x') as NEEDED: pass",
        "if 1:\n    NEEDED = 1\nelse:\n    NEEDED = 2",
        "try:\n    import numpy as NEEDED\nexcept ImportError:\n    NEEDED = None",
        "NEEDED: int = 1",
        "(NEEDED, other) = 1, 2",
        "[0][0:(NEEDED := 1)]",
        "match 1:\n    case NEEDED: pass",
        "async def NEEDED(): ...",
    ],
)
def test_every_kind_of_binding_is_found(binding: str) -> None:
    found = taken(f"{binding}\ndef plan(): return NEEDED")
    assert 0 in found.kept
    assert found.unknown == ()


def test_all_statements_that_bind_or_change_a_need_come_along_in_order() -> None:
    found = taken(
        """\
        TABLE = {}
        TABLE["a"] = 1
        TABLE.update(b=2)
        OTHER = {}
        OTHER["a"] = 1
        TABLE = dict(TABLE)
        for key in "cd":
            TABLE[key] = 3
        def plan(): return TABLE
        TABLE["e"] = 4
        """
    )
    assert found.kept == (0, 1, 2, 5, 6, 7, 8)


def test_calls_of_imported_modules_at_the_top_level_stay_out() -> None:
    found = taken("import os\nos.system('true')\ndef plan(): return os.name")
    assert found.kept == (2,)
    assert found.imports == (Import("os", "", "os", 1),)


def test_imports_are_kept_as_they_are_written() -> None:
    found = taken(
        """\
        import a.b
        import c.d as e
        from f.g import h as i, unused
        from . import j
        from ..k import l
        def plan(): return a, e, i, j, l
        """
    )
    assert found.imports == (
        Import("a.b", "", "a", 1),
        Import("c.d", "", "e", 2),
        Import("f.g", "h", "i", 3),
        Import(".", "j", "j", 4),
        Import("..k", "l", "l", 5),
    )


def test_markers_of_dataclass_fields_are_needed_and_their_types_are_not() -> None:
    found = taken(
        """\
        from __future__ import annotations
        from typing import ClassVar, Any
        from elsewhere import Thing
        from dataclasses import dataclass
        @dataclass
        class C:
            shared: ClassVar[Thing] = 1
            own: Thing = 2
        def plan(): return C()
        """
    )
    assert [each.bound for each in found.imports] == ["ClassVar", "dataclass"]


def test_several_functions_share_what_they_need() -> None:
    found = taken(
        "A = 1\nB = 2\ndef plan(): return A\ndef guard(): return A, plan", "plan", "guard"
    )
    assert [part.name for part in found.functions] == ["plan", "guard"]
    assert names(found) == ["A"]


def test_names_that_nothing_binds_are_told() -> None:
    found = taken("from x import *\ndef plan(): return len(nowhere), __name__")
    assert found.unknown == ("nowhere",)


def test_mutual_recursion_ends() -> None:
    assert names(taken("def a(): return plan\ndef plan(): return a")) == ["a"]


def test_an_unknown_function_is_refused() -> None:
    with pytest.raises(ValueError, match="names=nope; legal: names bound at the top level"):
        taken("x = 1", "nope")
