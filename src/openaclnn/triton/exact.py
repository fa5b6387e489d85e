# SPDX-License-Identifier: Apache-2.0
"""The formulas in fp64, as `exact` of core/kernels/elementwise: for DOUBLE, and for attributes of
FLOAT beyond what the formulas in fp32 get right. A few ulp; numerics.md has the limits.

f(x, y, p) of one or two inputs and the numbers of forms.py; the arithmetic is that of
core/kernels/math.h.
"""

from __future__ import annotations

import triton
import triton.language as tl

from .numbers import filled, hexadecimal, horner, nan_like

_SHIFT = hexadecimal("0x1.8p52")  # adding it rounds to an integer, which is in the last bits
_LOG2E = hexadecimal("0x1.71547652b82fep0")
_LN2, _LN2_REST = hexadecimal("0x1.62e42fefa39efp-1"), hexadecimal("0x1.abc9e3b39803fp-56")
_E1, _E2 = hexadecimal("0x1.b1bbed8cba94ap-26"), hexadecimal("0x1.289df169af667p-22")
_E3, _E4 = hexadecimal("0x1.71dcc02d4a1f1p-19"), hexadecimal("0x1.a019ab4cbc664p-16")
_E5, _E6 = hexadecimal("0x1.a01a021d31baap-13"), hexadecimal("0x1.6c16c17d96ea4p-10")
_E7, _E8 = hexadecimal("0x1.1111111100a26p-7"), hexadecimal("0x1.55555555527abp-5")
_E9, _E10 = hexadecimal("0x1.5555555555580p-3"), hexadecimal("0x1.0000000000004p-1")
# ln2 again: a multiple of the first by an exponent is exact
_LN2_SHORT, _LN2_LOW = hexadecimal("0x1.62e42fefa38p-1"), hexadecimal("0x1.ef35793c7673p-45")
_LN_2_200 = hexadecimal("0x1.1542457337d43p7")


@triton.jit
def as_word(x):
    return x.to(tl.int64, bitcast=True)


@triton.jit
def as_double(word):
    return word.to(tl.float64, bitcast=True)


@triton.jit
def copy_sign(x, sign):
    return as_double((as_word(x) & 0x7FFFFFFFFFFFFFFF) | (as_word(sign) & (-1 << 63)))


@triton.jit
def power_of_2_shifted(shifted):
    """2^n from n + _SHIFT, |n| <= 1022."""
    return as_double((as_word(shifted) << 52) + (1023 << 52))


@triton.jit
def clamped(t, least: tl.constexpr, most: tl.constexpr):
    """t or the nearer end, NaN stays; and 0 between the ends, infinite where t is, finite
    elsewhere."""
    below = tl.where(most < t, filled(t, most), t)
    value = tl.where(least > below, filled(t, least), below)
    return value, (t - value) * 2.0**-100


@triton.jit
def exponential(t):
    """m, first, second of exp(t) = (1 + m) first second, |t| <= 1400: powers of two within the
    range, which their product may leave. m is expm1(t) where |t| <= 0.346."""
    n = tl.fma(t, filled(t, _LOG2E), filled(t, _SHIFT)) - _SHIFT
    r = tl.fma(n, filled(n, -_LN2_REST), tl.fma(n, filled(n, -_LN2), t))
    p = horner(horner(horner(filled(r, _E1), r, _E2), r, _E3), r, _E4)
    p = horner(horner(horner(p, r, _E5), r, _E6), r, _E7)
    p = horner(horner(horner(p, r, _E8), r, _E9), r, _E10)
    shifted = tl.fma(n, filled(n, 0.5), filled(n, _SHIFT))
    half = shifted - _SHIFT
    return tl.fma(r * r, p, r), power_of_2_shifted(shifted), power_of_2_shifted(n - half + _SHIFT)


@triton.jit
def log_ratio(a, b, difference):
    """ln(a / b) for positive normal numbers; `difference` is a - b, with more digits where they
    cancel. With p = 2^n near a / b: n ln2 + 2 atanh(f), f = (a - p b) / (a + p b), |f| <= 0.2004.
    """
    k = (as_word(a) - as_word(b) + (1 << 51)) & (-1 << 52)
    pb = as_double(as_word(b) + k)
    n = (k >> 52).to(tl.float64)
    f = tl.where(k == 0, difference, a - pb) / (a + pb)
    s = f * f
    q = horner(horner(horner(filled(s, 2.0 / 21), s, 2.0 / 19), s, 2.0 / 17), s, 2.0 / 15)
    q = horner(horner(horner(q, s, 2.0 / 13), s, 2.0 / 11), s, 2.0 / 9)
    q = horner(horner(horner(q, s, 2.0 / 7), s, 2.0 / 5), s, 2.0 / 3)
    rest = tl.fma(f * s, q, n * _LN2_LOW)
    return tl.fma(n, filled(n, _LN2_SHORT), f + f + rest)


# ---- elu ----


@triton.jit
def elu(x, y, p):
    """p: scale, scale alpha, inputScale. Below -60 expm1 is -1; above 1400 the result is infinite,
    unless scale alpha is 0."""
    t = x * p[2]
    within, beyond = clamped(t, -60.0, 1400.0)
    m, first, second = exponential(within)
    of_first = as_double((2046 << 52) - as_word(first))  # 1 / first
    number = tl.fma(second, m, second - of_first)  # expm1 / first
    whole = number + tl.where(beyond > 0, beyond, filled(x, 0.0))
    return tl.where(x > 0, p[0] * x, p[1] * copy_sign(whole, t) * first)


@triton.jit
def elu_backward(g, x, p):
    """p: scale, scale alpha inputScale, inputScale. The exponential of a number is neither 0 nor
    infinite."""
    within, beyond = clamped(x * p[2], -1400.0, 1400.0)
    m, first, second = exponential(within)
    number = tl.where(beyond == float("-inf"), filled(x, 0.0), 1.0 + m)
    power = number + tl.where(beyond > 0, beyond, filled(x, 0.0))
    return tl.where(x > 0, g * p[0], g * p[1] * power * first * second)


@triton.jit
def elu_backward_result(g, v, p):
    """p: scale, inputScale, high, low, where high + low = scale alpha. v and high may cancel: that
    is exact."""
    return tl.where(v > 0, g * p[0], g * p[1] * ((v + p[2]) + p[3]))


# ---- logit ----


@triton.jit
def log_odds(z):
    """ln(z / (1 - z)), 0 < z < 1, which may be subnormal; infinite at the ends, else NaN."""
    tiny = z < 2.0**-900
    raised = tl.where(tiny, z * 2.0**200, z)
    more = tl.where(tiny, filled(z, _LN_2_200), filled(z, 0.0))
    result = log_ratio(raised, 1.0 - z, 2.0 * z - 1.0) - more
    ends = tl.where(z == 1, filled(z, float("inf")), nan_like(z))
    ends = tl.where(z == 0, filled(z, float("-inf")), ends)
    return tl.where((z > 0) & (z < 1), result, ends)


@triton.jit
def logit(x, y, p):
    """p: eps < 1/2; eps < 0: no clamp, and outside of 0 to 1 the result is NaN. x > 1 - eps as if
    1 - eps were not rounded: 1 - x is rounded only for x below 1/2, where it is above eps."""
    above = 1.0 - x < p[0]
    result = log_odds(tl.where((x < p[0]) | above, p[0], x))
    return tl.where(above, 0.0 - result, result)


@triton.jit
def logit_grad(x, dy, p):
    """p: low, outside. With m, the smaller of x and 1 - x, which is exact, x (1 - x) is
    m (1 - m)."""
    c = 1.0 - x
    m = tl.where(x < c, x, c)
    return tl.where(m < p[0], p[1], dy / (m * (1.0 - m)))
