# SPDX-License-Identifier: Apache-2.0
"""Whether a baseline computed the same: a race against a wrong result says nothing."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..reference.arrays import Array
from ..reference.evaluation import dtype_name
from ..rows.dtypes import DTYPES

DIFFERENCE = 4  # units by which results may differ: NumPy rounds attributes to half types


def agrees(a: Array, b: Array, cancels_below: float = 0.0) -> bool:
    """Equal bits, both NaN, or else numbers close by; numbers below `cancels_below` are compared
    as if they were as large."""
    unsigned: Any = f"u{a.itemsize}"
    if np.array_equal(a.view(unsigned), b.view(unsigned)):
        return True
    form = DTYPES[dtype_name(a.dtype)]
    wide_a, wide_b = a.astype(np.float64), b.astype(np.float64)
    least = max(2.0**form.least, cancels_below)
    size = np.maximum(np.maximum(abs(wide_a), abs(wide_b)), least)
    same = (wide_a == wide_b) | (np.isnan(wide_a) & np.isnan(wide_b))
    with np.errstate(invalid="ignore"):  # differences of infinities
        near = abs(wide_a - wide_b) <= DIFFERENCE * 2.0 ** (1 - form.digits) * size
    return bool((same | (near & np.isfinite(size))).all())
