# SPDX-License-Identifier: Apache-2.0
"""The scripts behind `make lint` and `make system-deps`, and .ci/run."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

TOOLS = Path(__file__).resolve().parent.parent / "tools"


def fake(folder: Path, name: str, script: str) -> None:
    path = folder / name
    path.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    path.chmod(0o755)


def system_deps(path: Path, *arguments: str, root: bool) -> subprocess.CompletedProcess[str]:
    """Run the script as on a machine that lacks libnuma, with `path` as its only programs."""
    program = (
        "import ctypes, os, runpy, sys\n"
        "real = ctypes.CDLL\n"
        "def load(name, *args, **more):\n"
        "    if name and 'numa' in name and not os.path.exists(os.environ['INSTALLED']):\n"
        "        raise OSError(name + ': cannot open shared object file')\n"
        "    return real(None, *args, **more)\n"
        "ctypes.CDLL = load\n"
        f"os.geteuid = lambda: {0 if root else 1000}\n"
        f"sys.argv = ['system_deps.py', *{arguments!r}]\n"
        f"runpy.run_path({str(TOOLS / 'system_deps.py')!r}, run_name='__main__')\n"
    )
    return subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "PATH": str(path), "INSTALLED": str(path / "installed")},
        capture_output=True,
        text=True,
        check=False,
    )


def debian(folder: Path, *, works: bool = True) -> None:
    touch = f"[ $1 = install ] && : > {folder / 'installed'}; :" if works else "exit 100"
    # Installing chromium puts a program of that name beside this one.
    put = f"case $* in *chromium) [ $1 = install ] && echo > {folder / 'chromium'};; esac; :"
    mode = f"[ -e {folder / 'chromium'} ] && /bin/chmod 755 {folder / 'chromium'}; :"
    fake(folder, "apt-get", f'echo "apt-get $*"\n{touch}\n{put}\n{mode}')
    # PATH holds this folder alone, so the script finds no other env.
    fake(folder, "env", 'shift; exec "$@"')


@pytest.mark.skipif(os.name != "posix", reason="needs a POSIX shell")
class TestSystemDeps:
    def test_root_on_debian_installs_what_is_missing_and_nothing_else(self, tmp_path: Path) -> None:
        debian(tmp_path)
        done = system_deps(tmp_path, root=True)
        assert done.returncode == 0, done.stderr
        assert "apt-get install --yes --no-install-recommends libnuma1\n" in done.stdout
        assert "libcurl4" not in done.stdout

    def test_sudo_without_a_password_is_used(self, tmp_path: Path) -> None:
        debian(tmp_path)
        fake(tmp_path, "sudo", '[ "$2" = true ] && exit 0; shift; exec "$@"')
        done = system_deps(tmp_path, root=False)
        assert done.returncode == 0, done.stderr
        assert "libnuma1" in done.stdout

    def test_who_may_not_install_gets_the_command(self, tmp_path: Path) -> None:
        debian(tmp_path)
        fake(tmp_path, "sudo", "exit 1")
        done = system_deps(tmp_path, root=False)
        assert done.returncode == 1
        assert done.stdout == ""
        assert done.stderr == (
            "system-deps: Mooncake needs libnuma.so.1 (on Debian and Ubuntu: libnuma1). "
            "This user may not install. Run as root: apt-get install libnuma1\n"
        )

    def test_elsewhere_the_libraries_are_named(self, tmp_path: Path) -> None:
        done = system_deps(tmp_path, root=True)
        assert done.returncode == 1
        assert done.stderr == (
            "system-deps: Mooncake needs libnuma.so.1 (on Debian and Ubuntu: libnuma1). "
            "Install the packages of this system that hold them.\n"
        )

    def test_an_install_that_fails_says_so(self, tmp_path: Path) -> None:
        debian(tmp_path, works=False)
        done = system_deps(tmp_path, root=True)
        assert done.returncode == 1
        assert "the install failed" in done.stderr
        assert "libnuma1" in done.stderr

    def test_nothing_missing_is_silent(self, tmp_path: Path) -> None:
        (tmp_path / "installed").touch()
        done = system_deps(tmp_path, root=False)
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")

    def test_a_browser_is_installed_where_there_is_none(self, tmp_path: Path) -> None:
        debian(tmp_path)
        done = system_deps(tmp_path, "browser", root=True)
        assert (done.returncode, done.stderr) == (0, "")
        assert "apt-get install --yes --no-install-recommends chromium\n" in done.stdout
        again = system_deps(tmp_path, "browser", root=True)
        assert (again.returncode, again.stdout, again.stderr) == (0, "", "")

    @pytest.mark.parametrize("name", ["chromium-browser", "google-chrome"])
    def test_a_browser_of_another_name_will_do(self, tmp_path: Path, name: str) -> None:
        debian(tmp_path)
        fake(tmp_path, name, "exit 0")
        done = system_deps(tmp_path, "browser", root=True)
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")

    @pytest.mark.parametrize("works", [None, False])
    def test_no_browser_is_no_failure(self, tmp_path: Path, works: bool | None) -> None:
        if works is not None:
            debian(tmp_path, works=works)
        done = system_deps(tmp_path, "browser", root=True)
        assert done.returncode == 0
        assert "no Chromium is here, and none could be installed" in done.stderr
        assert "are skipped" in done.stderr

    def test_system_deps_usage(self, tmp_path: Path) -> None:
        done = system_deps(tmp_path, "browsers", root=True)
        assert done.returncode == 2
        assert done.stderr == "usage: system_deps.py [browser]\n"


def test_the_loader_is_asked_and_not_a_package_list() -> None:
    # The premise of the script: a name that nobody has is refused with OSError.
    with pytest.raises(OSError, match="libkvreshard-no-such"):
        ctypes.CDLL("libkvreshard-no-such.so.1")


def link_tree(*arguments: str, text: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(TOOLS / "link_tree.py"), *arguments],
        input=text,
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_link_tree_has_the_packages_where_they_are_imported(tmp_path: Path) -> None:
    tree = tmp_path / "lint"
    (tree / "kvreshard" / "gone").mkdir(parents=True)
    assert link_tree(str(tree)).returncode == 0
    assert (tree / "kvreshard" / "__init__.py").is_file()
    assert (tree / "kvreshard" / "generated" / "planner.py").is_file()
    assert (tree / "kvreshard" / "spec" / "__init__.py").is_file()
    assert not (tree / "kvreshard" / "gone").exists()


def test_messages_name_the_real_files() -> None:
    text = (
        "build/lint/kvreshard/spec/planner.py:3: error: x\n"
        "build/lint/kvreshard/cli.py:4: error: x\n"
        "build/lint/tests/test_house.py:5: error: x\n"
        "Success: no issues found\n"
    )
    assert link_tree("--rewrite", "build/lint", text=text).stdout == (
        "spec/planner.py:3: error: x\n"
        "kvreshard/cli.py:4: error: x\n"
        "tests/test_house.py:5: error: x\n"
        "Success: no issues found\n"
    )


def test_usage() -> None:
    assert link_tree().returncode == 2


class TestCi:
    """.ci/run, with a `make` that only pretends, in a repository of three files."""

    @pytest.fixture
    def checkout(self, tmp_path: Path) -> Path:
        root = tmp_path / "checkout"
        (root / ".ci").mkdir(parents=True)
        (root / "generated").mkdir()
        (root / "proofs").mkdir()
        shutil.copy(TOOLS.parent / ".ci" / "run", root / ".ci" / "run")
        (root / "generated" / "planner.py").write_text("emitted\n", encoding="utf-8")
        (root / "proofs" / "ledger.json").write_text("{}\n", encoding="utf-8")
        (root / "SOUNDNESS.md").write_text("# Soundness\n", encoding="utf-8")
        for command in (
            ["git", "init", "--quiet"],
            ["git", "add", "."],
            ["git", "-c", "user.name=n", "-c", "user.email=e", "commit", "--quiet", "-m", "x"],
        ):
            subprocess.run(command, cwd=root, check=True)
        return root

    def ci(self, checkout: Path, make: str) -> subprocess.CompletedProcess[str]:
        programs = checkout.parent / "programs"
        programs.mkdir()
        fake(programs, "make", make)
        return subprocess.run(
            ["bash", str(checkout / ".ci" / "run")],
            env={**os.environ, "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}"},
            capture_output=True,
            text=True,
            check=False,
        )

    def test_all_is_well(self, checkout: Path) -> None:
        done = self.ci(checkout, "echo made $1")
        assert done.returncode == 0, done.stdout + done.stderr
        made = [line.split()[1] for line in done.stdout.splitlines() if line.startswith("made ")]
        assert made == ["check", "prove", "lint", "test"]
        assert done.stdout.endswith("ci: ok\n")

    def test_an_edited_file_is_not_fresh(self, checkout: Path) -> None:
        done = self.ci(checkout, "[ $1 = prove ] && echo other > generated/planner.py; true")
        assert done.returncode == 1
        assert "-emitted\n+other\n" in done.stdout
        assert "freshness: the files above are not what the spec gives." in done.stderr
        assert done.stdout.endswith("ci: failed: [freshness]\n")

    def test_a_file_that_was_never_added_is_not_fresh(self, checkout: Path) -> None:
        done = self.ci(checkout, "[ $1 = prove ] && echo new > generated/planner_numpy.py; true")
        assert done.returncode == 1
        assert "wrote files that are not checked in:\ngenerated/planner_numpy.py\n" in done.stderr
        assert done.stdout.endswith("ci: failed: [freshness]\n")

    def test_nothing_is_fresh_after_a_failed_proof(self, checkout: Path) -> None:
        done = self.ci(checkout, "[ $1 != prove ]")
        assert done.returncode == 1
        assert "freshness: not decided, since 'make prove' failed" in done.stderr
        assert done.stdout.endswith("ci: failed: [make prove] [freshness]\n")

    def test_every_stage_runs_after_a_failure(self, checkout: Path) -> None:
        done = self.ci(checkout, "echo made $1; [ $1 != lint ]")
        assert done.returncode == 1
        assert "made test" in done.stdout
        assert done.stdout.endswith("ci: failed: [make lint]\n")
