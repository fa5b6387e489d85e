# SPDX-License-Identifier: Apache-2.0
"""The formulas that approximate, in fp64: at most 1 ulp for all attributes.

They are those of core/kernels/elementwise/elu_double.h and logit_double.h.
"""

from __future__ import annotations

import triton
import triton.language as tl

from .numbers import filled, hexadecimal, horner, like, nan_like, negative
from .numbers_double import (
    as_double,
    as_word,
    exp_exact,
    expm1_exact,
    is_usual,
    power_in_steps,
    power_of_2,
    power_times,
    product_of,
    scaled,
    sum_of,
    times,
)


@triton.jit
def copy_sign(x, sign):
    return as_double((as_word(x) & 0x7FFFFFFFFFFFFFFF) | (as_word(sign) & (-1 << 63)))


# ---- elu ----


@triton.jit
def elu(x, y, p):
    """p: scale, high, low for inputScale 1, with high + low = scale alpha > 0."""
    high = like(x, p[1])
    total, rest, _ = expm1_exact(tl.where(x < -60.0, filled(x, -60.0), x), filled(x, 0.0), True)
    y = total * high
    lost = tl.fma(total, like(x, p[2]), tl.fma(total, high, negative(y)))
    result = copy_sign(y + tl.fma(rest, high, lost), x)
    return tl.where(x > 0, p[0] * x, tl.where(x == x, result, nan_like(x)))


@triton.jit
def elu_with_rate(x, p, falling: tl.constexpr):
    """p: scale, inputScale, high, low, rate, exponent, small_exponent, where scale alpha is
    (high + low) 2^exponent, and rate is the mantissa of inputScale. Mantissas are multiplied as
    high + low, exponents added, so that only the result can leave the range."""
    scale, input_scale = p[0], like(x, p[1])
    high, low = like(x, p[2]), like(x, p[3])
    small_high, small_low = times(high, low, like(x, p[4]), filled(x, 0.0))
    product = x * input_scale
    t = tl.where(product < -60.0, filled(x, -60.0), product)
    if not falling:
        t = tl.where(product > 4000.0, filled(x, 4000.0), t)
    lost_product = tl.fma(x, input_scale, negative(product))
    total, rest, waiting = expm1_exact(t, tl.where(t == product, lost_product, 0.0), falling)

    is_small, is_tiny = tl.abs(product) < 2.0**-100, tl.abs(x) < 2.0**-500
    a = tl.where(is_small, tl.where(is_tiny, x * 2.0**600, x), total)
    a_low = tl.where(is_small, filled(x, 0.0), rest)
    b, b_low = tl.where(is_small, small_high, high), tl.where(is_small, small_low, low)
    y = a * b
    lost = tl.fma(negative(a_low), b, tl.fma(negative(a), b_low, tl.fma(negative(a), b, y)))

    exponent = p[5] + waiting
    small_exponent = tl.where(is_tiny, filled(x, -600.0), filled(x, 0.0)) + p[6]
    exponent = tl.where(is_small, small_exponent, tl.where(exponent > 3000.0, 3000.0, exponent))
    step, last = power_in_steps(exponent)
    return tl.where(x > 0, scale * x, (y - lost) * step * step * last)


@triton.jit
def elu_falling(x, y, p):
    return elu_with_rate(x, p, True)


@triton.jit
def elu_growing(x, y, p):
    return elu_with_rate(x, p, False)


@triton.jit
def elu_rare(x, y, p):
    """For attributes that are 0, infinite or NaN. p: scale, -scale alpha, the product of their
    mantissas, and the sign of inputScale, or itself: all that matters of expm1 is its sign and
    whether it is 0, infinite or -1."""
    t = x * p[3]
    return tl.where(x > 0, p[0] * x, tl.where(t < 0, like(x, p[1]), t * p[2]))


# ---- the gradient of elu ----


@triton.jit
def elu_backward(g, x, p):
    """p: scale, inputScale, exponent, high, low, where (high + low) 2^exponent = scale alpha
    inputScale. Where a factor is 0, infinite or NaN, their product alone decides."""
    scale, input_scale, factor = p[0], like(x, p[1]), like(x, p[3])
    product = x * input_scale
    t = tl.where(product > 4000.0, filled(x, 4000.0), product)
    t = tl.where(product < -4000.0, filled(x, -4000.0), t)
    low = tl.where(t == product, tl.fma(x, input_scale, negative(product)), 0.0)
    n, r, half, q = exp_exact(t, low)
    first, first_low = sum_of(filled(r, 1.0), r)
    power, power_low = sum_of(first, half)
    gradient, exponent = scaled(g)
    y, y_low = times(gradient, filled(g, 0.0), factor, like(x, p[4]))
    y, y_low = times(y, y_low, power, power_low + first_low + q)
    number = power_times(y, y_low, n + p[2] + exponent)

    infinite = (tl.abs(x) == float("inf")) | (tl.abs(input_scale) == float("inf"))
    limit = tl.where(product > 0, float("inf"), tl.where(product < 0, filled(x, 0.0), product))
    whole = tl.where(infinite | (x != x), limit, 1.0)
    usual = is_usual(g) & is_usual(factor) & is_usual(whole)
    result = tl.where(usual, number, gradient * factor * whole)
    return tl.where(x > 0, g * scale, result)


@triton.jit
def elu_backward_result(g, v, p):
    """p: scale, rate, rate_exponent, high, low, exponent, where (high + low) 2^exponent = alpha
    scale and rate 2^rate_exponent = inputScale. The sum v + alpha scale may cancel."""
    rate, shift, shift_low = like(v, p[1]), like(v, p[3]), like(v, p[4])
    exponent = like(v, p[5])
    # v + shift as (high + low) 2^-by: 2^by brings both near 1, or makes one of them negligible
    is_low = (tl.abs(v) < 2.0**-300) & (exponent < -300.0)
    is_high = (tl.abs(v) > 2.0**300) | (exponent > 300.0)
    down = tl.where(exponent > 1600.0, filled(v, -1500.0), filled(v, -600.0))
    by = tl.where(is_low, filled(v, 600.0), tl.where(is_high, down, 0.0))
    half = power_of_2(tl.where(v == 0, 0.0, by / 2.0))
    by = tl.where(v == 0, -exponent, by)
    raised = exponent + by
    raised = tl.where(raised < -1000.0, -1000.0, raised)
    step = power_of_2(tl.where(raised > 1000.0, 1000.0, raised))
    raw, raw_low = sum_of(v * half * half, shift * step)
    high, low = sum_of(raw, raw_low + shift_low * step)
    gradient, g_exponent = scaled(g)
    total, total_exponent = scaled(high)
    y, y_low = times(gradient, filled(g, 0.0), rate, filled(g, 0.0))
    y, y_low = times(y, y_low, total, low * power_of_2(-total_exponent))
    number = power_times(y, y_low, total_exponent - by + g_exponent + p[2])

    plain = v + shift  # of infinities and NaNs; zeros keep what they are
    finite = tl.abs(plain) < float("inf")
    usual = finite & is_usual(g) & is_usual(rate) & (high != 0)
    zero = tl.where(high == 0, raw, high)  # with its sign
    special = gradient * rate * tl.where(finite, zero, plain)
    return tl.where(v > 0, g * p[0], tl.where(usual, number, special))


# ---- logit ----

_LN2_HIGH, _LN2_LOW = hexadecimal("0x1.62e42fefa38p-1"), hexadecimal("0x1.ef35793c7673p-45")


@triton.jit
def log_odds(z):
    """ln(z / (1 - z)), 0 <= z <= 1. With p = 2^n near z / c, c = 1 - z:
    n ln2 + 2 atanh(f), f = (z - p (1 - z)) / (z + p (1 - z)), |f| <= 0.2004."""
    tiny = z < 2.0**-60  # there 1 - z does not count, and z may be a subnormal
    c = tl.where(tiny, filled(z, 1.0), 1.0 - z)
    missing = tl.where(tiny, filled(z, 0.0), (1.0 - c) - z)  # 1 - z = c + missing
    raised = tl.where(tiny, z * 2.0**600, z)
    k = (as_word(raised) - as_word(c) + (1 << 51)) & (-1 << 52)
    b, power = as_double(as_word(c) + k), as_double(k + (1023 << 52))
    n = (k >> 52).to(tl.float64) - tl.where(tiny, filled(z, 600.0), filled(z, 0.0))
    lost = missing * power  # p (1 - z) = b + lost
    top = raised - b  # exact, because b is near
    bottom, bottom_low = sum_of(raised, b)
    f = (top - lost) / bottom
    product, product_low = product_of(f, bottom)
    lack = ((top - product) - product_low) - lost - f * (bottom_low + lost)
    f_low = lack / bottom
    s = f * f
    q = horner(horner(horner(filled(s, 2.0 / 25), s, 2.0 / 23), s, 2.0 / 21), s, 2.0 / 19)
    q = horner(horner(horner(horner(q, s, 2.0 / 17), s, 2.0 / 15), s, 2.0 / 13), s, 2.0 / 11)
    q = horner(horner(horner(horner(q, s, 2.0 / 9), s, 2.0 / 7), s, 2.0 / 5), s, 2.0 / 3)
    y, y_low = sum_of(n * _LN2_HIGH, f + f)  # the product is exact
    result = y + (y_low + tl.fma(n, filled(n, _LN2_LOW), tl.fma(f * s, q, f_low + f_low)))
    at_end = tl.where(z == 0, filled(z, float("-inf")), nan_like(z))
    at_end = tl.where(z == 1, filled(z, float("inf")), at_end)
    return tl.where((z > 0) & (z < 1), result, at_end)


@triton.jit
def logit(x, y, p):
    """p: eps, the result there. The clamp compares as if 1 - eps were not rounded."""
    eps, at_eps = p[0], p[1]
    result = log_odds(x)
    clamped = tl.where(1.0 - x < eps, 0.0 - at_eps, result)
    clamped = tl.where(x < eps, at_eps, clamped)
    bounded = tl.where(eps > 0.5, at_eps, clamped)  # the lower bound wins
    bounded = tl.where(eps == eps, bounded, nan_like(x))
    return tl.where((eps < 0) | (x != x), result, bounded)


@triton.jit
def logit_grad(x, dy, p):
    """p: low, outside. The quotient of dy and d = m - m^2 as high + low is corrected once by its
    remainder, which must not underflow."""
    low, outside = p[0], p[1]
    c = 1.0 - x
    m = tl.where(x < c, x, c)
    d = tl.fma(negative(m), m, m)
    d_low = tl.fma(negative(m), m, m - d)
    tiny = tl.abs(dy) < 2.0**-900
    raised = tl.where(tiny, dy * 2.0**120, dy)
    q = raised / d
    lack = tl.fma(negative(q), d, raised) - q * d_low
    corrected = (q + lack / d) * tl.where(tiny, filled(x, 2.0**-120), filled(x, 1.0))
    simple = ~((m >= 2.0**-60) & (tl.abs(corrected) < float("inf")) & (dy != 0))
    result = tl.where(simple, dy / (m * (1.0 - m)), corrected)
    return tl.where((x < low) | (c < low), outside, result)
