# SPDX-License-Identifier: Apache-2.0
"""Wrong results whose values show the mistake: cut, of a narrower dtype, near the right ones, or
zeros of the wrong sign."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..rows.dtypes import DTYPES
from .evaluation import Array
from .judge import NARROWER, Output, wide

CUT = "its result is the exact value cut toward 0 instead of rounded to nearest"
NARROW = "its result has only the precision of {}"
INPUTS = "its result is that of inputs rounded to {}"
SCALARS = "its result is that of scalars that were not rounded to FLOAT"
SIGN = "its result is a zero of the wrong sign"
NEAR = "its result is off by a few ulp"
NEAR_SUMS = "its result is off by a few times the bound"
ROUNDING = ", as from rounded intermediate results"  # if nothing is farther off
DIRECTIONS = ("each is too small in magnitude", "each is too large in magnitude")
TEXTS = {
    CUT,
    SCALARS,
    SIGN,
    NEAR,
    NEAR_SUMS,
    *DIRECTIONS,
    *(text.format(x) for text in (NARROW, INPUTS) for names in NARROWER.values() for x in names),
}
# What ULPs are few: less than another value of a usual attribute makes.
FEW = {"BFLOAT16": 2.0, "FLOAT16": 4.0, "FLOAT": 16.0, "DOUBLE": 16.0}
FEW_BOUNDS = 16.0
CUT_OFF = 0.75  # of a ulp, which half of the results that are cut are off by
LAST_BITS = 4
OF_NARROW = 4.0  # ULPs of the narrower dtype: its intermediate results are rounded, too


def of_results(output: Output, wrong: Array) -> Iterator[tuple[str, bool]]:
    """What holds for every wrong element, and whether they alone would not show it: 0, 1 or
    infinity are numbers of every dtype."""
    if output.dtype not in DTYPES:
        return
    got, nearest, exact = wide(output.got[wrong]), output.nearest[wrong], output.expected[wrong]
    near = wide(nearest)
    if bool(((got == _cut(nearest, exact)) & (got != near)).all()):
        yield CUT, bool((output.ulp[wrong] < CUT_OFF).all())
    unrounded, promised = output.of_wide_scalars, output.promised
    if (
        unrounded is not None
        and promised is not None
        and bool((unrounded[wrong] <= promised).all())
    ):
        yield SCALARS, False
    if bool(output.other_zeros[wrong].all()):
        yield SIGN, False
    less, more = (np.abs(got) < np.abs(exact)), (np.abs(got) > np.abs(exact))
    yield from ((way, True) for way, are in zip(DIRECTIONS, (less, more), strict=True) if are.all())
    for name, (fits, distance) in output.of_narrow.items():
        close = int(np.count_nonzero(distance[wrong] <= OF_NARROW))  # not where differences cancel
        if fits[wrong].all() and 2 * close >= got.size:
            telling = int(np.count_nonzero(~_short(got, DTYPES[name].digits)))
            yield NARROW.format(name), 2 * telling <= got.size
    for name, error in output.of_narrow_inputs.items():
        if bool((error[wrong] <= FEW[output.dtype]).all()):
            telling = int(np.count_nonzero(np.isfinite(got) & (got != 0)))
            yield INPUTS.format(name), 2 * telling <= got.size
    if output.terms is not None:
        if bool((output.of_promise[wrong] <= FEW_BOUNDS).all()):
            yield NEAR_SUMS, False
        return
    flushed = (got == 0) & (near != 0)
    if bool((~flushed & (output.ulp[wrong] <= FEW[output.dtype])).all()):
        yield NEAR, False


def _short(x: Array, digits: int) -> Array:
    """Where the last bits of a significand of so many are 0, as in few results of a formula."""
    high = np.ldexp(np.frexp(x)[0], digits - LAST_BITS)
    return np.asarray(~np.isfinite(x) | (high == np.rint(high)))


def _cut(nearest: Array, exact: Array) -> Array:
    away = np.abs(wide(nearest)) > np.abs(exact)
    bits = np.ascontiguousarray(nearest).view(f"i{nearest.dtype.itemsize}")
    lower = (bits - away).view(nearest.dtype)  # its neighbour toward 0
    return np.where(np.isfinite(exact), wide(lower), np.nan)
