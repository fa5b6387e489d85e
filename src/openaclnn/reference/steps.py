# SPDX-License-Identifier: Apache-2.0
"""Distances between numbers of one dtype, in representable numbers."""

from __future__ import annotations

import numpy as np

from .arrays import Array


def steps_between(a: Array, b: Array) -> Array:
    """How many representable numbers lie from each element of a to that of b, both of one dtype:
    1 from +0 to -0, and from the greatest number to infinity; 0 between NaNs, infinite from a NaN
    to a number."""
    unsigned = np.dtype(f"u{a.dtype.itemsize}")
    top = unsigned.type(1 << (8 * unsigned.itemsize - 1))
    bits = [np.ascontiguousarray(x).view(unsigned).reshape(a.shape) for x in (a, b)]
    first, second = (np.where(x & top, ~x, x | top) for x in bits)  # in the order of the numbers
    steps = (np.maximum(first, second) - np.minimum(first, second)).astype(np.float64)
    with np.errstate(invalid="ignore"):  # ml_dtypes warns of signalling NaNs
        one, other = np.isnan(a), np.isnan(b)
    return np.where(one & other, 0.0, np.where(one | other, np.inf, steps))
