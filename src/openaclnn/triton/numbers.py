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

_H1, _H2 = hexadecimal("0x1.5f76c6p-10"), hexadecimal("0x1.3cedbcp-7")
_H3, _H4 = hexadecimal("0x1.c6ae66p-5"), hexadecimal("0x1.ebf9b2p-3")
_H5 = hexadecimal("0x1.62e432p-1")

_N1, _N2 = hexadecimal("0x1.446ca6p-13"), hexadecimal("0x1.5f08bep-10")
_N3, _N4 = hexadecimal("0x1.3b29e4p-7"), hexadecimal("0x1.c6af6cp-5")
_N5, _N6 = hexadecimal("0x1.ebfbe0p-3"), hexadecimal("0x1.62e430p-1")

_SHIFT_F64 = hexadecimal("0x1.8p52")
_P1, _P2 = hexadecimal("0x1.00dc67a00d4e2p-16"), hexadecimal("0x1.44402310dd4a7p-13")
_P3, _P4 = hexadecimal("0x1.5d874c5573d54p-10"), hexadecimal("0x1.3b2a1b4d30e8ep-7")
_P5, _P6 = hexadecimal("0x1.c6b08dc5fddb2p-5"), hexadecimal("0x1.ebfbe04610fcdp-3")
_P7 = hexadecimal("0x1.62e42fef95e69p-1")


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
    """log2(x), relative error 2^-22 outside of 1/2 to 2; rounded once in the interpreter."""
    if INTERPRETED:
        return tl.log2(x)
    else:
        return tl.inline_asm_elementwise(
            "lg2.approx.f32 $0, $1;", "=f,f", [x], dtype=tl.float32, is_pure=True, pack=1
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
def reduce_2(x, high, low):
    """r, n and the bits of 2^n: x (high + low) = n + r, |r| <= 0.5001, r rounded at 2^-25; for
    |x (high + low)| < 126."""
    high = like(x, high)
    shifted = tl.fma(x, high, filled(x, _SHIFT))
    n = shifted - _SHIFT
    r = tl.fma(x, like(x, low), tl.fma(x, high, negative(n)))
    return r, n, as_word(shifted) << 23


@triton.jit
def exp2_half(f):
    """2^f, relative error 2^-22.6."""
    p = horner(horner(horner(filled(f, _H1), f, _H2), f, _H3), f, _H4)
    return horner(horner(p, f, _H5), f, 1.0)


@triton.jit
def exp2m1_half(f):
    """2^f - 1, relative error 2^-25.5."""
    p = horner(horner(horner(filled(f, _N1), f, _N2), f, _N3), f, _N4)
    return f * horner(horner(p, f, _N5), f, _N6)


@triton.jit
def power_in_two(n, least: tl.constexpr):
    """2^n as two factors, the first of them 2^max(n, least); for n > least - 127."""
    a = tl.where(n < least, filled(n, least), n)
    return as_float(as_word(a + _SHIFT) << 23), as_float(as_word(n - a + _SHIFT) << 23)


@triton.jit
def power_of_2(u):
    """In double: scale and fraction of 2^u = scale (1 + fraction), |u| <= 1022, error 2^-31."""
    shifted = u + _SHIFT_F64
    f = u - (shifted - _SHIFT_F64)
    q = filled(u, _P1) * f + _P2
    q = (((q * f + _P3) * f + _P4) * f + _P5) * f + _P6
    q = q * f + _P7
    bits = (shifted.to(tl.int64, bitcast=True) << 52) + (1023 << 52)
    return bits.to(tl.float64, bitcast=True), q * f
