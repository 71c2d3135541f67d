# SPDX-License-Identifier: Apache-2.0
"""Proved transfer plans that move a KV cache between tensor-parallel groups of different size."""
