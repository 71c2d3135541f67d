# SPDX-License-Identifier: Apache-2.0
"""Code generation: proved formulas to Python, and the checks that the Python still is them."""
