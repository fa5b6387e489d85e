# SPDX-License-Identifier: Apache-2.0
"""The formulas of the element-wise rows, named like their kernels: f(x, y, p) of one or two inputs
and the numbers that forms.py makes of the attributes.

Without a suffix they compute in float or double for results as precise as that; _half: in float,
for results of 16 bits; _wide: float inputs in double, for any attributes.
They are those of core/kernels/elementwise, in the forms that are right for every input.
"""

from __future__ import annotations

import triton
import triton.language as tl

from .numbers import (
    LN2_LOW,
    as_float,
    as_word,
    exp2_half,
    exp2m1_half,
    exp_tail,
    expm1_tail,
    filled,
    hexadecimal,
    horner,
    like,
    nan_like,
    near_log2,
    near_reciprocal,
    negative,
    power_in_two,
    power_of_2,
    reduce,
    reduce_2,
)

# ---- the piecewise linear ones ----


@triton.jit
def leaky_relu(x, y, p):
    return tl.where(x > 0, x, x * p[0])


@triton.jit
def leaky_relu_backward(g, x, p):
    return tl.where(x > 0, g, g * p[0])


@triton.jit
def hardshrink(x, y, p):
    return tl.where(tl.abs(x) <= p[0], filled(x, 0.0), x)


@triton.jit
def hardshrink_backward(g, x, p):
    return tl.where(tl.abs(x) <= p[0], filled(x, 0.0), g)


# ---- elu ----


@triton.jit
def copy_sign(x, sign):
    return as_float((as_word(x) & 0x7FFFFFFF) | (as_word(sign) & -0x80000000))


@triton.jit
def elu(x, y, p):
    """p: scale, high, low, where high + low = scale alpha > 0; inputScale is 1."""
    scale, high, low = p[0], p[1], p[2]
    t = tl.where(x < -25.0, filled(x, -25.0), x)
    r, n, power_bits = reduce(t)
    q = tl.fma(r * r, expm1_tail(r), n * LN2_LOW)
    power = as_float(power_bits)
    whole = power - 1.0
    main = tl.fma(power, r, whole)
    small = tl.fma(power, q, tl.fma(power, r, whole - main))
    total = main + small
    rest = small - (total - main)
    factor = like(x, high)
    k = total * factor
    lost = tl.fma(total, like(x, low), tl.fma(total, factor, negative(k)))
    result = copy_sign(k + tl.fma(rest, factor, lost), x)
    return tl.where(x > 0, scale * x, tl.where(x == x, result, nan_like(x)))


@triton.jit
def elu_half(x, y, p):
    """p: scale, scale alpha, slope from `linear` to 0, bound, linear, high, low, where high + low
    is inputScale log2(e)."""
    scale, factor, slope, bound, linear = p[0], p[1], p[2], p[3], p[4]
    above = x > linear
    below = tl.where(above, linear, x)
    r, _, power_bits = reduce_2(tl.where(below < bound, bound, below), p[5], p[6])
    power = as_float(power_bits)
    result = tl.fma(power, exp2m1_half(r), negative(1.0 - power)) * factor
    return tl.where(above, tl.where(x > 0, scale, slope) * x, result)


@triton.jit
def elu_wide(x, y, p):
    """p: scale, scale alpha, inputScale log2(e)."""
    wide = x.to(tl.float64)
    u = wide * p[2]
    power, fraction = power_of_2(tl.where(u < -1022.0, filled(u, -1022.0), u))
    e = power * fraction - (1.0 - power)
    e = tl.where(u > 1022.0, u * 2.0**760, e)
    return tl.where(x > 0, p[0].to(tl.float32) * x, (e * p[1]).to(tl.float32))


# ---- the gradient of elu ----


@triton.jit
def elu_backward(g, x, p):
    """p: scale, high, low, inputScale > 0, bound, lower, where high + low = 2^32 scale alpha
    inputScale.

    exp(inputScale x) is a product of two factors, and x is clamped to a bound, where the result is
    0. A large g is multiplied by 2^-100, and its bound is lower.
    """
    scale, high, low, rate = p[0], p[1], p[2], p[3]
    large = tl.abs(g) >= 2.0**30
    bound = tl.where(large, p[5], p[4])
    less = tl.where(large, g * 2.0**-100, g)
    more = tl.where(large, filled(g, 100.0 - 32.0), filled(g, -32.0))
    below = x < bound
    t = tl.where(below, bound, x)
    rates, factor = like(x, rate), like(x, high)
    product = t * rate
    r, n, _ = reduce(product)
    first, second = power_in_two(n + more, -126.0)

    # exp(inputScale x) = 2^n (1 + r + q); c holds what the product and n ln2 lost
    c = tl.fma(n, filled(x, LN2_LOW), tl.fma(t, rates, negative(product)))
    tail = tl.fma(r * r, exp_tail(r), c)
    q = tl.fma(c, r + tail, tail)
    # k (1 + r) is main - rest: only the last sum rounds, and it keeps the sign of zero
    k = less * high
    one_r = 1.0 + r
    main = k * one_r
    rest = tl.fma(r, negative(k), main - k)
    excess = tl.fma(less, negative(like(x, low)), tl.fma(less, negative(factor), k))
    lost = tl.fma(excess, one_r, rest)
    mantissa = main - tl.fma(q, negative(k), lost)

    result = mantissa * first * tl.where(below, filled(x, 0.0), second)
    result = tl.where(result == result, result, g * ((x - x) + high))
    return tl.where(x > 0, g * scale, result)


@triton.jit
def elu_backward_half(g, x, p):
    """p: scale, factor, high, low, bound, lower, where factor is scale alpha inputScale > 0, and
    high + low inputScale log2(e) > 0."""
    scale, factor = p[0], p[1]
    large = tl.abs(g) >= 2.0**50
    bound = tl.where(large, p[5], p[4])
    less = tl.where(large, g * 2.0**-62, g)
    more = tl.where(large, filled(g, 62.0), filled(g, 0.0))
    t = tl.where(x < bound, bound, x)
    r, n, _ = reduce_2(t, p[2], p[3])
    first, second = power_in_two(n + more, -100.0)
    e = exp2_half(r) * first
    exists = tl.where(x == float("-inf"), filled(x, 0.0), e)  # 0 times an infinite g is NaN
    return tl.where(x > 0, scale * g, exists * factor * less * second)


@triton.jit
def elu_backward_wide(g, x, p):
    """p: scale, scale alpha inputScale, inputScale log2(e)."""
    u = x.to(tl.float64) * p[2]
    power, fraction = power_of_2(tl.where(u < -1022.0, filled(u, -1022.0), u))
    e = tl.where(u < -(2.0**1000), filled(u, 0.0), power + power * fraction)
    e = tl.where(u > 1022.0, u * 2.0**760, e)
    result = (g.to(tl.float64) * p[1] * e).to(tl.float32)
    return tl.where(x > 0, g * p[0].to(tl.float32), result)


@triton.jit
def elu_backward_result_half(g, v, p):
    """p: scale, inputScale, high, low, where high + low = alpha scale."""
    total = (v + p[2]) + p[3]
    return tl.where(v > 0, p[0], total * p[1]) * g


@triton.jit
def elu_backward_result_wide(g, v, p):
    """p: scale, inputScale, alpha scale."""
    result = (g.to(tl.float64) * p[1] * (v.to(tl.float64) + p[2])).to(tl.float32)
    return tl.where(v > 0, g * p[0].to(tl.float32), result)


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


# The same to |f| = 1/3: 2^-27.3
_B1, _B2 = hexadecimal("0x1.1f2472p-3"), hexadecimal("0x1.1eacd6p-3")
_B3, _B4 = hexadecimal("0x1.99d318p-3"), hexadecimal("0x1.5554fep-2")


@triton.jit
def log_odds_half(z):
    """From -1 to 2. Where z / (1 - z) is between 1/2 and 2, the result is 2 atanh(2 z - 1)."""
    c = 1.0 - z
    f = z - c
    far = near_log2(z * near_reciprocal(c)) * _LN2
    s, twice = f * f, f + f
    q = horner(horner(horner(filled(s, _B1), s, _B2), s, _B3), s, _B4)
    return tl.where(tl.abs(f) < 0.3333, tl.fma(twice * s, q, twice), far)


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
    return clamp(log_odds_half(clamp(x, p[0], p[1])), p[2], p[3])


@triton.jit
def logit_open(x, y, p):
    return log_odds(x)


@triton.jit
def logit_open_half(x, y, p):
    """p: -1, 2."""
    return log_odds_half(clamp(x, p[0], p[1]))


@triton.jit
def nan(x, y, p):
    return nan_like(x)


# ---- the gradient of logit ----


@triton.jit
def logit_grad(x, dy, p):
    """p: low, outside. dy / D with D = m - m^2 as d + d_low, where m is the smaller of x and 1 - x:
    dy / D = dy inverse + dy inverse e + …, and only the sum rounds."""
    low, outside = p[0], p[1]
    m = tl.where(x < 1.0 - x, x, 1.0 - x)
    deep = m < 2.0**-51
    more = tl.where(deep, filled(x, 2.0**24), filled(x, 1.0))
    f = tl.where(deep, filled(x, -0.0), m)
    wide = m * more
    d = tl.fma(negative(f), wide, wide)
    d_low = tl.fma(negative(f), wide, wide - d)
    inverse = tl.div_rn(filled(x, 1 - 2.0**-22), d)
    e = tl.fma(d_low, negative(inverse), tl.fma(d, negative(inverse), filled(x, 1.0)))
    e = tl.where(e == e, e, filled(x, 2.0**-20))  # d is 0 and `inverse` infinite
    g = dy * more
    result = tl.fma(g, inverse, g * (inverse * e))
    result = tl.where(m < low, outside, result)
    return tl.where(x == x, result, nan_like(x))


@triton.jit
def logit_grad_half(x, dy, p):
    """p: low, outside, high."""
    result = tl.div_rn(dy, x * (1.0 - x))
    result = tl.where(x > p[2], p[1], result)
    return tl.where(x < p[0], p[1], result)


@triton.jit
def logit_grad_wide(x, dy, p):
    wide = x.to(tl.float64)
    result = (dy.to(tl.float64) / (wide * (1.0 - wide))).to(tl.float32)  # div.rn.f64
    result = tl.where(x > p[2].to(tl.float32), p[1].to(tl.float32), result)
    return tl.where(x < p[0].to(tl.float32), p[1].to(tl.float32), result)


@triton.jit
def logit_grad_by_eps(x, dy, p):
    """p: the result for positive and for negative dy, NaN included."""
    negative = dy.to(tl.int64, bitcast=True) < 0 if dy.dtype == tl.float64 else as_word(dy) < 0
    return tl.where(negative, like(dy, p[1]), like(dy, p[0]))
