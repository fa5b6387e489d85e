# SPDX-License-Identifier: Apache-2.0
"""A fuzzer of the functions that ATen computes: python -m tests.aten.fuzz --help."""
