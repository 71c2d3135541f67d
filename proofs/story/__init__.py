# SPDX-License-Identifier: Apache-2.0
"""A counterexample told as a story: one model, built once, and several ways to write it."""
