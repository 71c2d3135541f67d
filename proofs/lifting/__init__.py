# SPDX-License-Identifier: Apache-2.0
"""Give Python functions over integers their meaning, as z3 expressions or as plain numbers.

A whitelist of constructs is known; anything else is an `UnsupportedError` with its file and line.
Nothing of the source is imported or executed: it is parsed, and its meaning is worked out here.
"""
