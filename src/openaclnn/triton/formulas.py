# SPDX-License-Identifier: Apache-2.0
"""The formulas of the element-wise rows, named like their kernels: f(x, y, p) of one or two inputs
and the numbers that forms.py makes of the attributes.

Without a suffix they compute in fp32 for results as precise as that (the piecewise linear ones also
in fp64); _half: in fp32, for results of 16 bits. exact.py computes in fp64, for any attributes.
"""

from __future__ import annotations

import triton
import triton.language as tl

from .numbers import (
    LN2_LOW,
    as_float,
    as_word,
    exp2m1_over,
    exp_tail,
    expm1_tail,
    filled,
    like,
    nan_like,
    near_exp2,
    negative,
    power_in_two,
    reduce,
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
    """p: scale, scale alpha, slope, inputScale log2(e), where slope is scale alpha inputScale."""
    u = tl.minimum(x, filled(x, 0.0)) * p[3]  # 0 for NaN
    far = tl.fma(near_exp2(u), like(x, p[1]), like(x, 0.0 - p[1]))
    near = tl.where(x > 0, p[0], p[2]) * x * exp2m1_over(u)  # scale x above 0
    return tl.where(u > -0.7, near, far)


@triton.jit
def elu_half_even(x, y, p):
    """The same where the slope is the scale."""
    u = tl.minimum(x, filled(x, 0.0)) * p[3]
    far = tl.fma(near_exp2(u), like(x, p[1]), like(x, 0.0 - p[1]))
    return tl.where(u > -0.7, p[0] * x * exp2m1_over(u), far)


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
def elu_backward_bf16(g, x, p):
    """p: scale, 2^-2s factor, inputScale log2(e) / 2, s, where factor is scale alpha inputScale.

    The power is 2^-2s e e. A finite x gives no 0, and so an infinite g never NaN; -inf gives 0.
    """
    least = tl.fma(x, filled(x, 2.0**-149), filled(x, -125.0))
    u = tl.fma(x, like(x, p[2]), like(x, p[3]))
    e = near_exp2(tl.maximum(u, least))  # NaN where both are
    return tl.where(x > 0, p[0] * g, g * (e * p[1]) * e)


@triton.jit
def elu_backward_fp16(g, x, p):
    """p: scale, factor, high, low, bound, where high + low log2(e) is inputScale log2(e), and high
    has 13 bits: its product is exact."""
    t = tl.maximum(x, like(x, p[4]), propagate_nan=tl.PropagateNan.ALL)
    e = near_exp2(t * p[2])
    e = tl.fma(e, t * p[3], e)
    exists = tl.where(x == float("-inf"), filled(x, 0.0), e)  # 0 times an infinite g is NaN
    return tl.where(x > 0, p[0] * g, g * (exists * p[1]))


@triton.jit
def elu_backward_result_half(g, v, p):
    """p: scale, inputScale, high, low, where high + low = alpha scale."""
    total = (v + p[2]) + p[3]
    return tl.where(v > 0, p[0], total * p[1]) * g
