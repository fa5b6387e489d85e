# SPDX-License-Identifier: Apache-2.0
"""Exponentials without the approximate instructions of GPUs: multiplications, fused ones, additions
and integers, so that every GPU and Triton's interpreter give the same bits. The two approximate
instructions are for results that do not show their errors, or correct them.

Coefficients and errors are those of core/kernels/math.h.
"""

from __future__ import annotations

import triton
import triton.language as tl


def hexadecimal(text: str) -> tl.constexpr:
    return tl.constexpr(float.fromhex(text))


INTERPRETED = tl.constexpr(triton.knobs.runtime.interpret)  # it knows no instructions

_SHIFT = hexadecimal("0x1.8000fep23")  # adding it rounds and leaves n + 127 in the last bits
_LOG2E = hexadecimal("0x1.715476p0")
LN2_HIGH, LN2_LOW = hexadecimal("0x1.62e430p-1"), hexadecimal("0x1.05c610p-29")  # high - low

_E1, _E2 = hexadecimal("0x1.6db692p-10"), hexadecimal("0x1.123d12p-7")
_E3, _E4 = hexadecimal("0x1.55545cp-5"), hexadecimal("0x1.55548cp-3")

_M1, _M2 = hexadecimal("0x1.9e7d64p-13"), hexadecimal("0x1.6d3aa0p-10")
_M3, _M4 = hexadecimal("0x1.1112d4p-7"), hexadecimal("0x1.5554f8p-5")
_M5 = hexadecimal("0x1.555554p-3")

_Q1, _Q2 = hexadecimal("0x1.9e6736p-10"), hexadecimal("0x1.c04028p-7")
_Q3, _Q4 = hexadecimal("0x1.47cd9cp-4"), hexadecimal("0x1.62e352p-2")


@triton.jit
def filled(like, value: tl.constexpr):
    return tl.full(like.shape, value, like.dtype)


@triton.jit
def like(x, number):
    """A number in each element of x. (0 + number would lose -0.)"""
    return tl.broadcast_to(number, x.shape)


@triton.jit
def horner(p, x, coefficient: tl.constexpr):
    """p x + coefficient, rounded once."""
    return tl.fma(p, x, filled(x, coefficient))


@triton.jit
def nan_like(x):
    return filled(x, float("nan"))


@triton.jit
def negative(x):
    """-x, also of 0: Triton's -x is 0 - x. It costs nothing where it is an operand."""
    return x * -1.0


@triton.jit
def near_reciprocal(x):
    """1 / x for 2^-126 <= |x| <= 2^126, relative error 2^-23; exact in the interpreter. 0 becomes
    infinite, and a larger number 0."""
    if INTERPRETED:
        return 1.0 / x
    else:
        return tl.inline_asm_elementwise(
            "rcp.approx.ftz.f32 $0, $1;", "=f,f", [x], dtype=tl.float32, is_pure=True, pack=1
        )


@triton.jit
def near_log2(x):
    """log2(x) for x >= 2^-126, relative error 2^-22, absolute between 1/2 and 2; rounded once in
    the interpreter."""
    if INTERPRETED:
        return tl.log2(x)
    else:
        return tl.inline_asm_elementwise(
            "lg2.approx.ftz.f32 $0, $1;", "=f,f", [x], dtype=tl.float32, is_pure=True, pack=1
        )


@triton.jit
def near_exp2(x):
    """2^x, relative error 2^-22, and 0 for x < -126; rounded once in the interpreter."""
    if INTERPRETED:
        return tl.where(x < -126, filled(x, 0.0), tl.exp2(x))
    else:
        return tl.inline_asm_elementwise(
            "ex2.approx.ftz.f32 $0, $1;", "=f,f", [x], dtype=tl.float32, is_pure=True, pack=1
        )


@triton.jit
def as_word(x):
    return x.to(tl.int32, bitcast=True)


@triton.jit
def as_float(word):
    return word.to(tl.float32, bitcast=True)


@triton.jit
def reduce(t):
    """r, n and the bits of 2^n: t = n ln2 + r + n LN2_LOW, |r| <= 0.347, for |t| < 87."""
    shifted = tl.fma(t, filled(t, _LOG2E), filled(t, _SHIFT))
    n = shifted - _SHIFT
    r = tl.fma(n, filled(t, -LN2_HIGH), t)
    return r, n, as_word(shifted) << 23


@triton.jit
def exp_tail(r):
    """p of exp(r) = 1 + r + r^2 p, relative error of exp 2^-27.4."""
    p = horner(horner(filled(r, _E1), r, _E2), r, _E3)
    return horner(horner(p, r, _E4), r, 0.5)


@triton.jit
def expm1_tail(r):
    """The same p with more terms: expm1(r) = r + r^2 p has a relative error of 2^-31."""
    p = horner(horner(filled(r, _M1), r, _M2), r, _M3)
    return horner(horner(horner(p, r, _M4), r, _M5), r, 0.5)


@triton.jit
def exp2m1_over(u):
    """(2^u - 1) / (u ln2) for -0.7 <= u <= 0, relative error 2^-23.6; 1 at 0."""
    q = horner(horner(horner(filled(u, _Q1), u, _Q2), u, _Q3), u, _Q4)
    return horner(q, u, 1.0)


@triton.jit
def power_in_two(n, least: tl.constexpr):
    """2^n as two factors, the first of them 2^max(n, least); for n > least - 127."""
    a = tl.where(n < least, filled(n, least), n)
    return as_float(as_word(a + _SHIFT) << 23), as_float(as_word(n - a + _SHIFT) << 23)
