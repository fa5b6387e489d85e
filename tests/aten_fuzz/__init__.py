# SPDX-License-Identifier: Apache-2.0
"""A fuzzer of the functions that ATen computes: python -m aten_fuzz --help, from tests/."""
