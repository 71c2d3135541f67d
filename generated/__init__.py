# SPDX-License-Identifier: Apache-2.0
"""Modules emitted from the proved specification. Nothing here is edited by hand."""
