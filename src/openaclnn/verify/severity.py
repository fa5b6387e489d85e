# SPDX-License-Identifier: Apache-2.0
"""Kinds of errors. A kernel that computes in FLOAT is off by rounding nearly everywhere, and many
lose -0: either would hide another mistake."""

from __future__ import annotations

import math

import numpy as np

from ..reference.arrays import Array
from ..reference.judge import Output, wide
from ..reference.precision import NEAR, NEAR_SUMS
from ..rows.dtypes import DTYPES

CLOSE = "its result is off by little"
SMALL = (NEAR, NEAR_SUMS, CLOSE)  # the errors that rounding makes
# Relative errors that are close: twice the rounding of 16 bits; 128 ulp, which FLOAT may lose.
CLOSE_BY = {"BFLOAT16": 2.0**-6, "FLOAT16": 2.0**-9, "FLOAT": 2.0**-16, "DOUBLE": 2.0**-16}
CLOSE_TO_ZERO = 2.0**-20  # of the median sum of absolute terms


def is_close(output: Output) -> Array:
    """Off by what rounded intermediate results make, roughly."""
    due, near, got = (wide(x) for x in (output.expected, output.nearest, output.got))
    if output.dtype not in CLOSE_BY:
        return np.zeros(got.shape, bool)
    known = np.isfinite(near) & np.isfinite(got) & ~output.other_zeros
    if output.terms is None:
        known &= (got != 0) | (near == 0)  # another value where subnormals are flushed
    sizes, form = np.abs(due), DTYPES[output.dtype]
    least = 2 * math.ldexp(1, form.least - form.digits + 1)  # of subnormals
    if output.terms is not None:  # differences cancel
        sizes = np.abs(wide(output.terms))
        usual = sizes[known & (sizes != 0)]
        least = max(least, CLOSE_TO_ZERO * float(np.median(usual)) if usual.size else 0.0)
    with np.errstate(all="ignore"):
        error = np.abs(got - due)
        return np.asarray(known & (error <= CLOSE_BY[output.dtype] * sizes + least))
