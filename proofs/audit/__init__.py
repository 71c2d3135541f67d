# SPDX-License-Identifier: Apache-2.0
"""Audit somebody else's planner: take it out of its source, ask it, prove or refute it."""
