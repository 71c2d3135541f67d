# SPDX-License-Identifier: Apache-2.0
"""What the commands exit with; click itself exits with 2 on wrong usage."""

from __future__ import annotations

HOLDS = 0
FAILED = 1
NOT_DECIDED = 3
