# SPDX-License-Identifier: Apache-2.0
"""Regions, descriptors, transports, receipts and peers: what carries out a proved plan."""
