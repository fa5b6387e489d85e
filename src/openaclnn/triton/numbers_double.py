# SPDX-License-Identifier: Apache-2.0
"""Arithmetic in fp64 with digits to spare: sums and products as high + low, and the exponential.

It is that of core/kernels/math.h and core/kernels/fused.h.
"""

from __future__ import annotations

import triton
import triton.language as tl

from .numbers import filled, hexadecimal, horner, negative

SHIFT = hexadecimal("0x1.8p52")
_LOG2E = hexadecimal("0x1.71547652b82fep0")
_LN2_HIGH, _LN2_LOW = hexadecimal("0x1.62e42fefa39efp-1"), hexadecimal("0x1.abc9e3b39803fp-56")
_E1, _E2 = hexadecimal("0x1.1f96509506ba1p-29"), hexadecimal("0x1.af60319548853p-26")
_E3, _E4 = hexadecimal("0x1.27e4c5089940ep-22"), hexadecimal("0x1.71ddf78ff6ed7p-19")
_E5, _E6 = hexadecimal("0x1.a01a01b0fd7c0p-16"), hexadecimal("0x1.a01a01b02b767p-13")
_E7, _E8 = hexadecimal("0x1.6c16c16c14370p-10"), hexadecimal("0x1.111111110f612p-7")
_E9, _E10 = hexadecimal("0x1.555555555555ap-5"), hexadecimal("0x1.5555555555559p-3")


@triton.jit
def as_word(x):
    return x.to(tl.int64, bitcast=True)


@triton.jit
def as_double(word):
    return word.to(tl.float64, bitcast=True)


@triton.jit
def sum_of(a, b):
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


@triton.jit
def product_of(a, b):
    product = a * b
    return product, tl.fma(a, b, negative(product))


@triton.jit
def times(a, a_low, b, b_low):
    high, low = product_of(a, b)
    return high, low + tl.fma(a, b_low, a_low * b)


@triton.jit
def power_of_2(n):
    """2^n for integers |n| <= 1022."""
    return as_double((as_word(n + SHIFT) << 52) + (1023 << 52))


@triton.jit
def power_in_steps(shift):
    """2^shift = step step last: if a number is multiplied by the three in turn, each product lies
    between it and the result."""
    third = (shift * (1.0 / 3.0) + SHIFT) - SHIFT
    return power_of_2(third), power_of_2(shift - 2.0 * third)


@triton.jit
def exp_exact(high, low):
    """n, r, half_square and q of exp(high + low) = 2^n (1 + r + half_square + q), |high| <= 2^12:
    r is exact, and the sum has a relative error of 2^-61."""
    n = tl.fma(high, filled(high, _LOG2E), filled(high, SHIFT)) - SHIFT
    r = tl.fma(n, filled(n, -_LN2_HIGH), high)
    c = tl.fma(n, filled(n, -_LN2_LOW), low)
    p = horner(horner(horner(filled(r, _E1), r, _E2), r, _E3), r, _E4)
    p = horner(horner(horner(p, r, _E5), r, _E6), r, _E7)
    p = horner(horner(horner(p, r, _E8), r, _E9), r, _E10)
    square = r * r
    half = 0.5 * square
    tail = tl.fma(square * r, p, tl.fma(filled(r, 0.5), tl.fma(r, r, negative(square)), c))
    return n, r, half, tl.fma(c, r + (half + tail), tail)


@triton.jit
def expm1_exact(t, low, falling: tl.constexpr):
    """expm1(t + low) = 2^waiting (sum + rest): `rest` is below 0.04 of the sum. If `falling`,
    t <= 0. From 2^54 on the 1 is too small for the first sum to be exact."""
    n, r, half, q = exp_exact(t, low)
    kept = n if falling else tl.where(n < 60.0, n, 60.0)
    one = filled(n, 1.0) if falling else tl.where(n < 54.0, filled(n, 1.0), 0.0)
    power = power_of_2(kept)
    whole = power - one
    first, second = power * r, power * half
    part = whole + first
    total = part + second
    lost = (first - (part - whole)) + (second - (total - part))
    of_whole = (power - (whole + one)) + (filled(n, 0.0) if falling else one - 1.0)
    return total, lost + of_whole + power * q, n - kept


@triton.jit
def scaled(x):
    """x as value 2^exponent with a value from 2^-500 to 2^500, or 0, infinity or NaN."""
    tiny, huge = tl.abs(x) < 2.0**-500, tl.abs(x) > 2.0**500
    value = tl.where(tiny, x * 2.0**600, tl.where(huge, x * 2.0**-600, x))
    return value, tl.where(tiny, filled(x, -600.0), tl.where(huge, filled(x, 600.0), 0.0))


@triton.jit
def is_usual(x):
    """Neither 0 nor infinite nor NaN."""
    return (tl.abs(x) > 0.0) & (tl.abs(x) < float("inf"))


@triton.jit
def power_times(high, low, exponent):
    """(high + low) 2^exponent."""
    exponent = tl.where(exponent > 3000.0, 3000.0, exponent)
    step, last = power_in_steps(tl.where(exponent < -3000.0, -3000.0, exponent))
    return (high + low) * step * step * last
