# SPDX-License-Identifier: Apache-2.0
"""What is raised where the meaning of a construct is not known."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import ast


class UnsupportedError(Exception):
    """The source has something whose meaning the lifter does not know.

    Attributes:
        line: of the construct, from 1.
        what: the construct, in words.
        file: the path as reports show it; empty where the caller knows it.
    """

    def __init__(self, node: ast.AST, what: str, file: str = "") -> None:
        """Keep the line of the node."""
        super().__init__(what)
        self.line: int = getattr(node, "lineno", 1)
        self.what = what
        self.file = file


class PythonRaises(Exception):  # noqa: N818 - it is an outcome of the lifted code, not an error here
    """The lifted code raises an exception here.

    Attributes:
        kind: the name of the exception's class.
        line: where it is raised, from 1.
        file: the path as reports show it.
    """

    def __init__(self, kind: str, node: ast.AST, file: str) -> None:
        """Keep the line of the node."""
        super().__init__(kind)
        self.kind = kind
        self.line: int = getattr(node, "lineno", 1)
        self.file = file
