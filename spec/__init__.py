# SPDX-License-Identifier: Apache-2.0
"""The specification: parameters, ownership, planner formulas, layout and invariants."""
