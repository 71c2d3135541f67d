# SPDX-License-Identifier: Apache-2.0
"""Proofs that the planner formulas meet the invariants, and the ledger of what was proved."""
