# SPDX-License-Identifier: Apache-2.0
"""Audit somebody else's planner: take it out of its source, ask what it does, prove or refute it."""
