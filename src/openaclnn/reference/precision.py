# SPDX-License-Identifier: Apache-2.0
"""Wrong results whose values show the mistake: cut, of a narrower dtype, near the right ones, or
zeros of the wrong sign."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..rows.dtypes import DTYPES
from .evaluation import Array, numpy_dtype, rounded, ulp_error
from .judge import Output, wide

CUT = "its result is the exact value cut toward 0 instead of rounded to nearest"
NARROW = "its result has only the precision of {}"
SIGN = "its result is a zero of the wrong sign"
NEAR = "its result is off by a few ulp"
NEAR_SUMS = "its result is off by a few times the bound"
ROUNDING = ", as from rounded intermediate results"  # if nothing is farther off
NARROWER = {"DOUBLE": ("FLOAT",), "FLOAT": ("FLOAT16", "BFLOAT16")}
TEXTS = {
    CUT,
    SIGN,
    NEAR,
    NEAR_SUMS,
    *(NARROW.format(x) for names in NARROWER.values() for x in names),
}
# What ULPs are few: less than another value of a usual attribute makes.
FEW = {"BFLOAT16": 2.0, "FLOAT16": 4.0, "FLOAT": 16.0, "DOUBLE": 16.0}
FEW_BOUNDS = 16.0
LAST_BITS = 4
OF_NARROW = 4.0  # ULPs of the narrower dtype: its intermediate results are rounded, too


def of_results(output: Output, wrong: Array) -> Iterator[tuple[str, Array, bool]]:
    """Each with the wrong elements that are so, and whether they alone would not show it: 0, 1 or
    infinity are numbers of every dtype."""
    if output.dtype not in DTYPES:
        return
    got, nearest = wide(output.got), wide(output.nearest)
    yield CUT, wrong & (got == _cut(output)) & (got != nearest), False
    zeros = (got == 0) & (nearest == 0)
    yield SIGN, wrong & zeros & (np.signbit(got) != np.signbit(nearest)), False
    for name in NARROWER.get(output.dtype, ()):
        narrow = wrong & (wide(rounded(got, name)) == got)
        narrow &= ulp_error(got, output.expected, name) <= OF_NARROW
        telling = int(np.count_nonzero(narrow & ~_short(got, DTYPES[name].digits)))
        yield NARROW.format(name), narrow, 2 * telling <= int(np.count_nonzero(narrow))
    if output.terms is None:
        flushed = (got == 0) & (nearest != 0)
        yield NEAR, wrong & ~flushed & (output.ulp <= FEW[output.dtype]), False
    else:
        yield NEAR_SUMS, wrong & (output.of_promise <= FEW_BOUNDS), False


def _short(x: Array, digits: int) -> Array:
    """Where the last bits of a significand of so many are 0, as in few results of a formula."""
    high = np.ldexp(np.frexp(x)[0], digits - LAST_BITS)
    return np.asarray(~np.isfinite(x) | (high == np.rint(high)))


def _cut(output: Output) -> Array:
    nearest = output.nearest
    away = np.abs(wide(nearest)) > np.abs(output.expected)
    bits = np.ascontiguousarray(nearest).view(f"i{nearest.dtype.itemsize}")
    lower = (bits - away).view(numpy_dtype(output.dtype))  # its neighbour toward 0
    return np.where(np.isfinite(output.expected), wide(lower), np.nan)
