# SPDX-License-Identifier: Apache-2.0
"""The contracts that ship: how known planners are called, and what their answers mean.

Each module is a contract in the form that a user writes as well; it is parsed, and imported only
beside a target that is executed.
"""
