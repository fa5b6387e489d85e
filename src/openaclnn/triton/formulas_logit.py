# SPDX-License-Identifier: Apache-2.0
"""The formulas of logit and its gradient, as formulas.py has the others."""

from __future__ import annotations

import triton
import triton.language as tl

from .numbers import (
    as_float,
    as_word,
    filled,
    hexadecimal,
    horner,
    like,
    nan_like,
    near_log2,
    near_reciprocal,
    negative,
)

# ---- logit ----

# ln2 as two floats, the first of 15 digits: a multiple by an exponent is exact. Both by 2^-23.
_LOG_HIGH, _LOG_LOW = hexadecimal("0x1.62e4p-24"), hexadecimal("0x1.7f7d1cp-43")
_LN2 = hexadecimal("0x1.62e430p-1")
# (atanh(f) - f) / f^3 of f^2: relative error of atanh 2^-28 to |f| = 0.2012
_A1, _A2 = hexadecimal("0x1.373092p-3"), hexadecimal("0x1.992742p-3")
_A3 = hexadecimal("0x1.5555b8p-2")


@triton.jit
def log_odds(z):
    """ln(z / (1 - z)): error 0.56 ulp.

    m is the smaller of z and 1 - z, which is exact where it is the smaller. With c = 1 - m and
    p = 2^n near m / c, ln(m / c) = n ln2 + 2 atanh(f), f = (m - p c) / (m + p c), |f| <= 0.2004.
    Numerator, denominator and f are kept as high + low.
    """
    m = tl.minimum(z, 1.0 - z)
    tiny = m < 2.0**-100
    a = tl.where(tiny, m * 2.0**64, m)
    k = (as_word(a) - as_word(1.0 - a) + 0x00400000) & -0x00800000
    p = as_float(k + 0x3F800000)
    n = tl.where(tiny, k - (64 << 23), k).to(tl.float32)  # by 2^23
    one_p = 1.0 + p  # exact, but for p < 2^-23, where the result is below -15
    product = a * one_p
    top = tl.fma(a, one_p, negative(p))
    top_low = ((product - p) - top) + tl.fma(a, one_p, negative(product))
    bottom = tl.fma(a, filled(a, 2.0), negative(top))
    bottom_low = tl.fma(a, filled(a, 2.0), negative(bottom)) - top - top_low
    inverse = near_reciprocal(bottom)
    f = top * inverse
    lack = tl.fma(negative(f), bottom_low, tl.fma(negative(f), bottom, top) + top_low)
    f_low = lack * inverse
    s, twice = f * f, f + f
    q = horner(horner(filled(s, _A1), s, _A2), s, _A3)
    main = n * _LOG_HIGH
    y = main + twice
    lost = twice - (y - main)
    tail = tl.fma(n, filled(n, _LOG_LOW), tl.fma(twice * s, q, f_low + f_low))
    at_end = tl.where(m == 0, filled(z, float("-inf")), nan_like(z))
    result = tl.where(m > 0, y + (tail + lost), at_end)
    return as_float(as_word(result) ^ (as_word(0.5 - z) & -0x80000000))


@triton.jit
def log_odds_half(z, p):
    """NaN outside of 0 to 1. p[0]: a power of 2, by which z and 1 - z are normal numbers. For |f| =
    |2 z - 1| < 0.2 the result is 2 atanh(f)."""
    scaled = tl.fma(z, like(z, 0.0 - p[0]), like(z, p[0]))
    far = (near_log2(z * p[0]) - near_log2(scaled)) * _LN2
    f = tl.fma(z, filled(z, 2.0), filled(z, -1.0))
    s, twice = f * f, f + f
    q = horner(horner(filled(s, _A1), s, _A2), s, _A3)
    return tl.where(tl.abs(f) < 0.2, tl.fma(twice * s, q, twice), far)


@triton.jit
def clamp(x, low, high):
    """NaN stays."""
    x = tl.maximum(x, like(x, low), propagate_nan=tl.PropagateNan.ALL)
    return tl.minimum(x, like(x, high), propagate_nan=tl.PropagateNan.ALL)


@triton.jit
def logit(x, y, p):
    """p: the floats next to the range, and the results at its ends."""
    return clamp(log_odds(clamp(x, p[0], p[1])), p[2], p[3])


@triton.jit
def logit_half(x, y, p):
    """p: the scale, and what `logit` has."""
    return clamp(log_odds_half(clamp(x, p[1], p[2]), p), p[3], p[4])


@triton.jit
def logit_open(x, y, p):
    return log_odds(x)


@triton.jit
def logit_open_half(x, y, p):
    """p: the scale."""
    return log_odds_half(x, p)


@triton.jit
def logit_constant(x, y, p):
    """For eps >= 1/2, where the lower bound wins, and NaN. p: the result."""
    return tl.where(x == x, p[0], x)


# ---- the gradient of logit ----


@triton.jit
def logit_grad(x, dy, p):
    """p: low, outside. dy / D with D = m - m^2 as d + d_low, where m is the smaller of x and 1 - x:
    dy / D = dy inverse + dy inverse e + …, and only the sum rounds."""
    low, outside = p[0], p[1]
    m = tl.where(x < 1.0 - x, x, 1.0 - x)
    deep = m < 2.0**-51
    more = tl.where(deep, filled(x, 2.0**24), filled(x, 1.0))
    f = tl.where(deep, filled(x, 0.0), negative(m))  # -m: Triton's -0.0 is 0
    wide = m * more
    d = tl.fma(f, wide, wide)
    d_low = tl.fma(f, wide, wide - d)
    inverse = tl.div_rn(filled(x, 1 - 2.0**-22), d)
    e = tl.fma(d_low, negative(inverse), tl.fma(d, negative(inverse), filled(x, 1.0)))
    e = tl.where(e == e, e, filled(x, 2.0**-20))  # d is 0 and `inverse` infinite
    g = dy * more
    result = tl.fma(g, inverse, g * (inverse * e))
    result = tl.where(m < low, outside, result)
    return tl.where(x == x, result, nan_like(x))


@triton.jit
def logit_grad_half(x, dy, p):
    """p: low, outside, high. By 2^8, all denominators and reciprocals are normal numbers."""
    result = dy * near_reciprocal(x * tl.fma(x, filled(x, -256.0), filled(x, 256.0))) * 256.0
    result = tl.where(x > p[2], p[1], result)
    return tl.where(x < p[0], p[1], result)


@triton.jit
def logit_grad_by_eps(x, dy, p):
    """p: the result for positive and for negative dy, NaN included."""
    negative = dy.to(tl.int64, bitcast=True) < 0 if dy.dtype == tl.float64 else as_word(dy) < 0
    return tl.where(negative, like(dy, p[1]), like(dy, p[0]))
