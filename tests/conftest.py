# SPDX-License-Identifier: Apache-2.0
"""The order of the tests."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest

# z3 keeps every symbol that a process ever named, and what it finds near a resource limit moves
# with them. These tests name very many, so that those which ask hard questions come first.
LAST = ("tests/proofs/audit/", "tests/proofs/lifting/")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the tests that name many symbols last; the others stay in their order."""
    items.sort(key=lambda item: item.nodeid.startswith(LAST))
