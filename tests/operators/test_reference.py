# SPDX-License-Identifier: Apache-2.0
"""Tests of the judge: errors in ULP for all dtypes, at every border."""

from __future__ import annotations

import math

import numpy as np
import pytest
from tests.support import FLOATS

from openaclnn.reference.evaluation import numpy_dtype, ulp_error
from openaclnn.rows.dtypes import DTYPES

HIDDEN = np.finfo(np.longdouble).nmant > np.finfo(np.float64).nmant


def error(actual, reference, dtype):
    kind = numpy_dtype(dtype)
    return float(ulp_error(np.array([actual]).astype(kind), np.array([reference]), dtype)[0])


@pytest.mark.parametrize("dtype", FLOATS)
def test_neighbours_are_one_unit_apart(dtype):
    form, kind = DTYPES[dtype], numpy_dtype(dtype)
    patterns = f"u{kind.itemsize}"
    for exponent in (form.least - form.digits + 1, form.least, -1, 0, 1, form.greatest):
        x = np.array([math.ldexp(1, exponent)]).astype(kind)
        above = (x.view(patterns) + 1).view(kind)
        assert ulp_error(above, x.astype(np.float64), dtype) == 1
        assert ulp_error(x, x.astype(np.float64), dtype) == 0
        assert ulp_error(-above, -x.astype(np.float64), dtype) == 1


@pytest.mark.parametrize("dtype", FLOATS)
def test_zero_has_the_unit_of_subnormals(dtype):
    """A result that is not 0 where the formula is exactly 0 is wrong, however small it is."""
    form, kind = DTYPES[dtype], numpy_dtype(dtype)
    patterns = np.arange(1, 5, dtype=f"u{kind.itemsize}")
    steps = patterns.view(kind)
    assert (ulp_error(steps, np.zeros(4), dtype) == [1, 2, 3, 4]).all()
    assert (ulp_error(-steps, -np.zeros(4), dtype) == [1, 2, 3, 4]).all()
    least = np.array([math.ldexp(1, form.least)]).astype(kind)
    assert ulp_error(least, np.zeros(1), dtype) == 2 ** (form.digits - 1)
    assert ulp_error(np.zeros(1, kind), np.zeros(1), dtype) == 0


@pytest.mark.parametrize("dtype", FLOATS)
def test_a_rounded_value_is_within_half_a_unit(dtype):
    if dtype == "DOUBLE" and not HIDDEN:
        pytest.skip("long double is double here")
    form, wide = DTYPES[dtype], np.longdouble
    rng = np.random.default_rng(1)
    lowest = form.least - form.digits - 1
    exponents = rng.integers(lowest, form.greatest + 1, 10_000)
    exact = np.ldexp(rng.uniform(-1, 1, 10_000).astype(wide) + rng.uniform(0, 1e-17), exponents)
    if dtype == "BFLOAT16":  # ml_dtypes would round twice: cut to 24 digits, which float32 holds
        exact = exact.astype(np.float32).astype(wide)
    with np.errstate(all="ignore"):
        rounded = exact.astype(np.float64 if dtype != "BFLOAT16" else np.float32)
        rounded = rounded.astype(numpy_dtype(dtype))
    assert ulp_error(rounded, exact, dtype).max() <= 0.5 + 2.0**-11  # NumPy rounds via float64


@pytest.mark.parametrize("dtype", FLOATS)
def test_overflow(dtype):
    form = DTYPES[dtype]
    top = np.ldexp(np.longdouble(1), form.greatest + 1)
    largest = top - np.ldexp(np.longdouble(1), form.greatest - form.digits + 1)
    unit = top - largest
    for sign in (1, -1):
        infinity = np.array([sign * np.inf]).astype(numpy_dtype(dtype))
        finite = np.array([sign * largest]).astype(np.float64).astype(numpy_dtype(dtype))
        assert ulp_error(infinity, np.array([sign * (top - unit / 2)]), dtype) == 0.5
        assert ulp_error(infinity, np.array([sign * (top - unit)]), dtype) == 1
        assert ulp_error(infinity, np.array([sign * top * 4]), dtype) == 0
        assert ulp_error(infinity, np.array([sign * np.inf]), dtype) == 0
        assert ulp_error(infinity, np.array([-sign * np.inf]), dtype) == np.inf
        assert ulp_error(finite, np.array([sign * np.inf]), dtype) == np.inf
        assert ulp_error(finite, np.array([sign * top]), dtype) == 1


@pytest.mark.parametrize("dtype", FLOATS)
def test_nan_infinity_and_the_sign_of_zero(dtype):
    for actual, reference, expected in (
        (math.nan, math.nan, 0),
        (math.nan, 1.0, math.inf),
        (1.0, math.nan, math.inf),
        (math.inf, math.nan, math.inf),
        (math.nan, math.inf, math.inf),
        (1.0, math.inf, math.inf),
        (0.0, 0.0, 0),
        (-0.0, -0.0, 0),
        (0.0, -0.0, math.inf),
        (-0.0, 0.0, math.inf),
        (1.0, 1.0, 0),
        (1.0, 2.0, 2.0 ** (DTYPES[dtype].digits - 2)),
    ):
        assert error(actual, reference, dtype) == expected, (actual, reference)
