# SPDX-License-Identifier: Apache-2.0
"""What holds for the tree as a whole: imports, contents of files, documents, make, packaging."""

from __future__ import annotations

import ast
import importlib.metadata
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from kvreshard.proofs import assumptions, soundness

ROOT = Path(__file__).resolve().parent.parent
SPDX = "# SPDX-License-Identifier: Apache-2.0"
PROOF_SIDE = ("kvreshard.spec", "kvreshard.proofs", "kvreshard.codegen", "z3", "cvc5")
HEAVY = ("z3", "cvc5", "torch", "numpy", "mooncake")


def our_files() -> list[Path]:
    """What git tracks or would track: a file must be right before it is added, too."""
    if not (ROOT / ".git").exists() or shutil.which("git") is None:
        pytest.skip("not a git checkout")
    listing = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    paths = (ROOT / name for name in listing.split("\0") if name)
    return sorted(path for path in paths if path.is_file())


def python_files(*folders: str) -> list[Path]:
    return sorted(path for folder in folders for path in (ROOT / folder).rglob("*.py"))


def shown(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def imported(path: Path, source: str) -> list[tuple[int, str]]:
    """Every module an import statement could load, with relative names resolved.

    In `from a import b`, b may be a module as well, so both a and a.b count.
    """
    found: list[tuple[int, str]] = []
    package = ["kvreshard", *path.relative_to(ROOT).parent.parts]
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found += [(node.lineno, alias.name) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            module = ".".join([*base, *([node.module] if node.module else [])])
            found.append((node.lineno, module))
            found += [(node.lineno, f"{module}.{alias.name}") for alias in node.names]
    return found


def forbidden(path: Path, source: str) -> list[str]:
    return [
        f"{shown(path)}:{line} imports {name}"
        for line, name in imported(path, source)
        if any(name == root or name.startswith(f"{root}.") for root in PROOF_SIDE)
    ]


# Who may import whom


def test_generated_and_runtime_never_import_the_proof_side() -> None:
    files = python_files("generated", "runtime")
    assert files
    assert [
        fault for path in files for fault in forbidden(path, path.read_text(encoding="utf-8"))
    ] == []


@pytest.mark.parametrize(
    "statement",
    [
        "import z3",
        "import kvreshard.spec",
        "from kvreshard import spec",
        "from kvreshard.proofs import ledger",
        "from .. import codegen",
        "from ..spec.planner import sends",
        "def f():\n    import z3.z3util",
    ],
)
def test_the_import_check_sees_every_spelling(statement: str) -> None:
    assert forbidden(ROOT / "runtime" / "peers.py", statement)


@pytest.mark.parametrize("statement", ["import z3x", "from . import spec", "import kvreshard"])
def test_the_import_check_accuses_nobody_else(statement: str) -> None:
    assert forbidden(ROOT / "runtime" / "peers.py", statement) == []


def test_the_generated_planner_uses_the_standard_library_only() -> None:
    path = ROOT / "generated" / "planner.py"
    for line, name in imported(path, path.read_text(encoding="utf-8")):
        assert name.split(".")[0] in sys.stdlib_module_names, f"{shown(path)}:{line} imports {name}"


def test_importing_the_planner_loads_nothing_heavy() -> None:
    program = (
        "import json, sys, kvreshard.generated.planner; "
        "print(json.dumps(sorted({name.split('.')[0] for name in sys.modules})))"
    )
    loaded = json.loads(run_python(program))
    assert "kvreshard" in loaded
    assert not set(HEAVY) & set(loaded)


def test_proving_needs_no_torch() -> None:
    # `make prove` runs where the runtime's packages are not installed.
    modules = [
        "kvreshard." + ".".join(path.relative_to(ROOT).with_suffix("").parts)
        for path in python_files("spec", "proofs", "codegen")
        if path.name not in {"__init__.py", "__main__.py"} and "templates" not in path.parts
    ]
    program = (
        "import importlib, sys\n"
        "for name in ('torch', 'numpy', 'mooncake', 'msgspec', 'zmq'): sys.modules[name] = None\n"
        f"for name in {modules!r}: importlib.import_module(name)\n"
    )
    run_python(program)


@pytest.mark.parametrize("name", ["assumptions", "second_record", "soundness"])
def test_the_document_can_be_written_where_nothing_is_installed(name: str) -> None:
    path = ROOT / "proofs" / f"{name}.py"
    ours = ("kvreshard.proofs.assumptions", "kvreshard.proofs.second_record")
    for line, found in imported(path, path.read_text(encoding="utf-8")):
        known = found.split(".")[0] in sys.stdlib_module_names or found == "kvreshard.proofs"
        assert known or found.startswith(ours), f"{shown(path)}:{line} imports {found}"


def run_python(program: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


# What no file may contain

# Spelled in pieces, so that this file passes its own check.
MACHINE_PATH = re.compile(
    r"(?<![\w.~$})-])/(?:" + "|".join(["wo" + "rk", "t" + "mp", "ro" + "ot", "ho" + "me"]) + r")/"
)
INDEX_HOSTS = tuple(
    f"{name}.{end}"
    for name, end in [
        ("pypi", "org"),
        ("pythonhosted", "org"),
        ("download.pytorch", "org"),
        ("npmjs", "org"),
        ("deb.debian", "org"),
        ("archive.ubuntu", "com"),
    ]
)
INDEX_OPTION = re.compile(r"index[-_]url\s*[=\s]\s*[\"']?(?:https?|file):", re.IGNORECASE)
OUTSIDE = re.compile(r"\.\./sha" + r"red\b")


@pytest.mark.parametrize(
    ("what", "pattern"),
    [
        ("a path of one machine", MACHINE_PATH),
        ("the host of a package index", re.compile("|".join(map(re.escape, INDEX_HOSTS)))),
        ("the address of a package index", INDEX_OPTION),
        ("a path outside the checkout", OUTSIDE),
    ],
)
def test_no_file_depends_on_a_machine(what: str, pattern: re.Pattern[str]) -> None:
    found = []
    for path in our_files():
        text = path.read_text(encoding="utf-8", errors="replace")
        found += [
            f"{shown(path)}:{number}: {what}: {line.strip()}"
            for number, line in enumerate(text.splitlines(), start=1)
            if pattern.search(line)
        ]
    assert found == []


def test_the_patterns_find_what_they_are_for() -> None:
    assert MACHINE_PATH.search("cache = '/" + "tmp/kvreshard'")
    assert MACHINE_PATH.search("cd /" + "work/main")
    assert not MACHINE_PATH.search("src/" + "tmp/x, head/" + "root/y, $HOME/" + "work/")
    assert INDEX_OPTION.search("--extra-index-url " + "https://example.com/simple")
    assert INDEX_OPTION.search("PIP_INDEX_URL=" + "file:///mirror")


def test_every_source_file_names_its_licence() -> None:
    missing = []
    for path in our_files():
        script = path.suffix in {".py", ".yml", ".sh"} or path.name in {"Makefile", "run"}
        # A shebang, and an editor's line, may come first.
        if script and SPDX not in path.read_text(encoding="utf-8").splitlines()[:3]:
            missing.append(shown(path))
    assert missing == []


def test_the_licence_is_the_whole_text() -> None:
    text = (ROOT / "LICENSE").read_text(encoding="utf-8")
    assert "Apache License" in text
    assert "END OF TERMS AND CONDITIONS" in text


# Documents


def test_soundness_lists_the_assumptions_as_they_are() -> None:
    text = (ROOT / "SOUNDNESS.md").read_text(encoding="utf-8")
    assert text == soundness.with_sections(text), "SOUNDNESS.md is stale: run `make soundness`"


# The trusted list, by name. Its text is free to be improved; that an entry comes or goes changes
# what the project claims, so it is written down a second time, here.
TRUSTED = (
    "rank_is_in_range",
    "total_num_kv_heads_is_the_models",
    "both_sides_use_the_same_election",
    "a_region_is_one_layer",
    "block_length_is_heads_times_bytes_per_head",
    "layout_is_head_major_and_contiguous",
    "the_caller_names_the_kind_of_cache",
    "ownership_is_by_consecutive_heads",
    "replicas_hold_equal_values",
    "the_spec_says_what_is_meant",
    "division_agrees",
    "the_solver_is_right",
    "the_harness_asks_what_is_stated",
    "the_printer_is_right",
    "the_lifter_is_right",
    "the_shell_is_tested_not_proved",
    "python_computes_as_documented",
    "numpy_computes_as_documented",
    "the_engine_writes_where_it_is_told",
    "blocks_hold_still",
    "an_audit_believes_its_contract",
    "sizes_and_ranks_are_written_in_factors",
    "an_audits_proofs_have_one_solver",
    "an_executed_target_answers_honestly",
)


def test_the_trusted_list_changes_only_where_it_is_meant_to() -> None:
    assert tuple(entry.name for entry in assumptions.ASSUMPTIONS) == TRUSTED


def test_a_line_gone_from_the_trusted_list_is_seen() -> None:
    text = (ROOT / "SOUNDNESS.md").read_text(encoding="utf-8")
    for entry in assumptions.ASSUMPTIONS:
        cut = text.replace(f"- Remains: {entry.remains}\n", "")
        assert cut != text
        assert soundness.with_sections(cut) == text


def test_assumptions_are_complete_and_named_once() -> None:
    names = [entry.name for entry in assumptions.ASSUMPTIONS]
    assert len(names) == len(set(names))
    for entry in assumptions.ASSUMPTIONS:
        assert re.fullmatch(r"[a-z][a-z0-9_]*", entry.name)
        assert entry.statement.endswith(".")
        assert entry.mitigation.endswith(".")
        assert entry.remains.endswith(".")


def test_a_document_without_markers_is_refused() -> None:
    with pytest.raises(ValueError, match="each marker line of the second solver exactly once"):
        soundness.with_sections("# Soundness\n")


@pytest.mark.parametrize("document", ["README.md", "CONTRIBUTING.md"])
def test_documents_name_targets_and_files_that_exist(document: str) -> None:
    text = (ROOT / document).read_text(encoding="utf-8")
    commands = re.findall(r"(?:`|^\$ )make ([a-z][a-z0-9-]*)", text, re.MULTILINE)
    assert commands
    assert set(commands) <= set(targets())
    links = re.findall(r"\]\(([^)#:]+)\)", text)
    assert [link for link in links if not (ROOT / link).exists()] == []


# Makefile and packaging


def targets() -> list[str]:
    """The Makefile's targets that a person types."""
    text = (ROOT / "Makefile").read_text(encoding="utf-8")
    return re.findall(r"^([a-z][a-z0-9-]*):(?!=)", text, re.MULTILINE)


def test_make_lists_every_target() -> None:
    make = shutil.which("make")
    if make is None:
        pytest.skip("no make")
    # The flags of the make that runs these tests must not reach the one that is tested.
    environment = {name: value for name, value in os.environ.items() if not is_make_flag(name)}
    listing = subprocess.run(
        [make, "--no-print-directory"],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    listed = re.findall(r"^  ([a-z][a-z0-9-]*) +\S", listing, re.MULTILINE)
    assert listed == targets()
    assert {
        "prove",
        "test",
        "demo",
        "generate",
        "bench",
        "lint",
        "system-deps",
        "clean",
        "help",
    } <= set(listed)


def is_make_flag(name: str) -> bool:
    return name in {"MAKEFLAGS", "MFLAGS", "MAKELEVEL", "MAKEOVERRIDES", "ARGS"}


def test_every_target_is_phony() -> None:
    text = (ROOT / "Makefile").read_text(encoding="utf-8")
    phony = re.search(r"^\.PHONY: (.*)$", text, re.MULTILINE)
    assert phony
    assert sorted(phony[1].split()) == sorted(targets())


def test_extras() -> None:
    # Read from the installed metadata: the standard library reads TOML from Python 3.11 on only.
    extras = importlib.metadata.metadata("kvreshard").get_all("Provides-Extra") or []
    assert set(extras) >= {"prove", "second", "runtime", "mooncake", "mooncake-cpu", "dev"}


def test_the_base_install_is_light() -> None:
    base = [
        need for need in importlib.metadata.requires("kvreshard") or [] if "extra ==" not in need
    ]
    assert sorted(re.split(r"[^\w-]", need)[0] for need in base) == ["click", "rich"]


def test_constraints_pin_what_pyproject_pins() -> None:
    pins = dict(
        line.split("==")
        for line in (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
        if line and not line.startswith("#")
    )
    for need in importlib.metadata.requires("kvreshard") or []:
        name = re.split(r"[^\w-]", need)[0].lower()
        if name != "kvreshard":
            assert name in pins, f"constraints.txt has no version of {name}"
        exact = re.match(r"[\w-]+==([\w.]+)", need)
        if exact:
            assert pins[name] == exact[1]


def test_subpackages_of_pyproject_are_the_ones_the_linters_see() -> None:
    sys.path.insert(0, str(ROOT / "tools"))
    try:
        import link_tree
    finally:
        sys.path.remove(str(ROOT / "tools"))
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    mapped = re.findall(r'^"kvreshard\.(\w+)" = "\w+"$', text, re.MULTILINE)
    assert sorted(mapped) == sorted(link_tree.SUBPACKAGES)


def test_every_package_folder_is_installed() -> None:
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    listed = set(re.findall(r'^  "(kvreshard[\w.]*)",$', text, re.MULTILINE))
    found = set()
    for path in python_files("kvreshard", "spec", "proofs", "codegen", "generated", "runtime"):
        if path.name == "__init__.py":
            parts = path.relative_to(ROOT).parent.parts
            found.add(".".join(parts if parts[0] == "kvreshard" else ("kvreshard", *parts)))
    assert found == listed
