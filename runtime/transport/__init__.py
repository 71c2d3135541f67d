# SPDX-License-Identifier: Apache-2.0
"""Transports: how descriptors become bytes in another rank's memory."""
