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
    like,
    nan_like,
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
    lost = tl.fma(total, like(x, low), tl.fma(total, factor, -k))
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
    result = tl.fma(power, exp2m1_half(r), -(1.0 - power)) * factor
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
    c = tl.fma(n, filled(x, LN2_LOW), tl.fma(t, rates, -product))
    tail = tl.fma(r * r, exp_tail(r), c)
    q = tl.fma(c, r + tail, tail)
    # k (1 + r) is main - rest: only the last sum rounds, and it keeps the sign of zero
    k = less * high
    one_r = 1.0 + r
    main = k * one_r
    rest = tl.fma(r, -k, main - k)
    excess = tl.fma(less, like(x, -low), tl.fma(less, -factor, k))
    lost = tl.fma(excess, one_r, rest)
    mantissa = main - tl.fma(q, -k, lost)

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

_L1, _L2 = hexadecimal("0x1.9927420000000p-3"), hexadecimal("0x1.5555b80000000p-2")
_L0 = hexadecimal("0x1.3730920000000p-3")
_LOG_HIGH, _LOG_LOW = hexadecimal("0x1.62e4p-1"), hexadecimal("0x1.7f7d1cp-20")  # 15 digits first


@triton.jit
def odds(z):
    """For the smaller z of the argument and its complement, which is exact where it is the smaller:
    n and p = 2^n near z / c with c = 1 - z, and the numerator and denominator of
    f = (z - p c) / (z + p c), |f| <= 0.2004, each as high + low. z < 2^-100 counts 2^64 fold."""
    z = tl.where(z > 0.5, 1.0 - z, z)
    tiny = z < 2.0**-100
    z = tl.where(tiny, z * 2.0**64, z)
    k = (as_word(z) - as_word(1.0 - z) + 0x00400000) & -0x00800000
    p = as_float(k + 0x3F800000)
    n = as_float((k >> 23) + 0x4B400000) - 12582912.0
    n = tl.where(tiny, n - 64.0, n)
    one_p = 1.0 + p  # exact, but for p < 2^-23, where the result is below -15
    product = z * one_p
    top = tl.fma(z, one_p, -p)
    top_low = ((product - p) - top) + tl.fma(z, one_p, -product)
    bottom = (z + z) - top
    return n, top, top_low, bottom, ((z + z) - bottom) - top - top_low


@triton.jit
def ends_of_logit(z, result):
    """`result`, which is that of the smaller one, between 0 and 1; NaN outside."""
    result = tl.where(z > 0.5, -result, result)
    at_end = tl.where(z == 0, filled(z, float("-inf")), nan_like(z))
    at_end = tl.where(z == 1, filled(z, float("inf")), at_end)
    return tl.where((z > 0) & (z < 1), result, at_end)


@triton.jit
def log_odds(z):
    """ln(z / (1 - z)) = n ln2 + 2 atanh(f): error 0.6 ulp, because f keeps what it lost."""
    n, top, top_low, bottom, bottom_low = odds(z)
    inverse = tl.div_rn(filled(z, 1.0), bottom)
    f = top * inverse
    lack = tl.fma(-f, bottom, top) + top_low
    f_low = tl.fma(-f, bottom_low, lack) * inverse
    s, twice = f * f, f + f
    q = horner3(s)
    main = n * _LOG_HIGH
    y = main + twice
    lost = twice - (y - main)
    tail = tl.fma(n, filled(z, _LOG_LOW), tl.fma(twice * s, q, f_low + f_low)) + lost
    return ends_of_logit(z, y + tail)


@triton.jit
def horner3(s):
    """(atanh(f) - f) / f^3 with s = f^2: relative error of atanh 2^-28."""
    p = tl.fma(filled(s, _L0), s, filled(s, _L1))
    return tl.fma(p, s, filled(s, _L2))


@triton.jit
def log_odds_half(z):
    n, top, _, bottom, _ = odds(z)
    f = tl.div_rn(top, bottom)
    s, twice = f * f, f + f
    tail = tl.fma(twice * s, horner3(s), n * _LOG_LOW)
    return ends_of_logit(z, tl.fma(n, filled(z, _LOG_HIGH), twice + tail))


@triton.jit
def clamp(x, low, high):
    x = tl.where(x < low, low, x)
    return tl.where(x > high, high, x)


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
    return log_odds_half(x)


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
    d = tl.fma(-f, wide, wide)
    d_low = tl.fma(-f, wide, wide - d)
    inverse = tl.div_rn(filled(x, 1 - 2.0**-22), d)
    e = tl.fma(d_low, -inverse, tl.fma(d, -inverse, filled(x, 1.0)))
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
