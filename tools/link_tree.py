# SPDX-License-Identifier: Apache-2.0
"""Lay out the packages as static checkers expect them, as a tree of links.

The folders spec/, proofs/, ... are subpackages of kvreshard through setuptools' package-dir
mapping, which mypy does not read. In the tree, TREE/kvreshard/spec is a link to spec/, and so on.

    python tools/link_tree.py TREE              make the tree
    python tools/link_tree.py --rewrite TREE    filter: messages name the real files
"""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FACADE = "kvreshard"
SUBPACKAGES = ("spec", "proofs", "codegen", "generated", "runtime")
# Scripts and tests are checked too, as modules at the top of the tree.
FLAT = ("tests", "benchmarks", "tools")


def make_tree(tree: Path, root: Path = ROOT) -> None:
    """Build the tree anew: a file or folder that is gone must not stay behind."""
    if tree.exists():
        shutil.rmtree(tree)
    facade = tree / FACADE
    facade.mkdir(parents=True)
    for source in sorted((root / FACADE).iterdir()):
        if source.suffix in {".py", ".pyi", ".typed"} or (source.is_dir() and has_python(source)):
            link(facade / source.name, source)
    for name in SUBPACKAGES:
        link(facade / name, root / name)
    for name in FLAT:
        if has_python(root / name):
            link(tree / name, root / name)


def has_python(folder: Path) -> bool:
    return any(folder.glob("*.py"))


def link(at: Path, source: Path) -> None:
    at.symlink_to(os.path.relpath(source, at.parent))


def real_name(line: str, tree: str) -> str:
    """Replace the tree's path at the start of a checker's message by the file's own path."""
    for name in SUBPACKAGES:
        line = line.replace(f"{tree}/{FACADE}/{name}/", f"{name}/", 1)
    return line.replace(f"{tree}/", "", 1)


def main(arguments: list[str]) -> int:
    if len(arguments) == 2 and arguments[0] == "--rewrite":
        for line in sys.stdin:
            sys.stdout.write(real_name(line, arguments[1].rstrip("/")))
        return 0
    if len(arguments) == 1 and not arguments[0].startswith("-"):
        make_tree(Path(arguments[0]))
        return 0
    print(__doc__, file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
