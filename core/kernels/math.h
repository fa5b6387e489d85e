// SPDX-License-Identifier: Apache-2.0
// This file has exp and expm1 in several strengths, without branches and without libm. They give
// the same bits on every instruction set, because -ffp-contract=off holds everywhere and a fused
// multiply-add is always written out. Coefficients are minimax (Remez at 40 digits); the errors
// named are those of the polynomials. tests/operators/test_exhaustive.py shows that the results
// built on them keep their promise.
#pragma once

#include "core/kernels/conditions.h"

namespace openaclnn::OPENACLNN_ISA {
namespace {

// Adding this rounds to an integer n, which is then in the last bits.
inline constexpr double kShiftF64 = 0x1.8p52;
// Adding this rounds too and leaves n + 127 in the last nine bits: shifted left by 23 they are the
// bits of 2^n, for -127 < n < 128.
inline constexpr float kShiftToPower = 0x1.8000fep23f;

// Returns a polynomial of x by Horner's rule, each step rounded once; the coefficient of the
// highest power comes first.
template <class V, class... C>
[[gnu::always_inline]] inline V polynomial(V x, auto first, C... rest) {
  V p = all_of<V>(first);
  ((p = fused(p, x, all_of<V>(rest))), ...);
  return p;
}

// ---- float ----

inline constexpr float kLn2High = 0x1.62e430p-1f, kLn2Low = 0x1.05c610p-29f;

// An argument without its multiple n of ln2, or of 1.
template <class V>
struct Reduced {
  V r, n;
  decltype(bits_of(V{})) power;  // the bits of 2^n
};

// t = n kLn2High + r with |r| <= 0.347, for |t| < 87. r is exact, because kLn2High and the
// difference both fit in 24 binary digits.
template <class V>
inline Reduced<V> reduce(V t) {
  const V shift = all_of<V>(kShiftToPower);
  const V shifted = fused(t, all_of<V>(0x1.715476p0f), shift), n = shifted - shift;
  return {fused_minus(n, all_of<V>(kLn2High), t), n, bits_of(shifted) << 23};
}

// Returns p(r) of exp(r) = 1 + r + r^2 p(r), |r| <= 0.3475, relative error of exp 2^-27.4.
template <class V>
inline V exp_tail_single(V r) {
  return polynomial(r, 0x1.6db692p-10f, 0x1.123d12p-7f, 0x1.55545cp-5f, 0x1.55548cp-3f, 0x1p-1f);
}

// Returns the same p with more terms: expm1(r) = r + r^2 p(r) has a relative error of 2^-31.
template <class V>
inline V expm1_tail_single(V r) {
  return polynomial(r, 0x1.9e7d64p-13f, 0x1.6d3aa0p-10f, 0x1.1112d4p-7f, 0x1.5554f8p-5f,
                    0x1.555554p-3f, 0x1p-1f);
}

// A positive number as high + low, both positive, so that products keep the sign of a zero.
struct RateF32 {
  float high, low;
  explicit RateF32(double rate) : high(static_cast<float>(rate)) {
    if (high > rate) high = float_of(bits_of(high) - 1);
    low = static_cast<float>(rate - high);
  }
};

// x * rate = n + r, |r| <= 0.5001, for results of 16 bits: r rounds at 2^-25. Right for |x * rate|
// < 126.
template <class V>
inline Reduced<V> reduce_2(V x, RateF32 rate) {
  const V high = all_of<V>(rate.high), shift = all_of<V>(kShiftToPower);
  const V shifted = fused(x, high, shift), n = shifted - shift;
  const V r = fused(x, high, -n);  // with these signs -0 stays -0
  return {fused(x, all_of<V>(rate.low), r), n, bits_of(shifted) << 23};
}

// 2^f, relative error 2^-22.6
template <class V>
inline V exp2_half(V f) {
  return polynomial(f, 0x1.5f76c6p-10f, 0x1.3cedbcp-7f, 0x1.c6ae66p-5f, 0x1.ebf9b2p-3f,
                    0x1.62e432p-1f, 1.0f);
}

// ---- double, for `exact` formulas: a few ulp. (GCC vectorises fused products, but for v2) ----

inline constexpr double kLog2e = 0x1.71547652b82fep0;

// exp(t) = (1 + m) first second, for |t| <= 1400. Both are powers of two within the range, which
// their product may leave. m is expm1(t) where |t| <= 0.346.
struct Exponential {
  double m, first, second;
};

inline double power_of_2_shifted(double shifted) {  // 2^n from n + kShiftF64, |n| <= 1022
  return double_of((bits_of(shifted) << 52) + (uint64_t{1023} << 52));
}

// t, or the nearer end; NaN stays. `beyond` is 0 between the ends, infinite where t is, and finite
// elsewhere.
struct Clamped {
  double value, beyond;
};
inline Clamped clamped(double t, double least, double most) {
  const double below = most < t ? most : t, value = least > below ? least : below;
  return {value, (t - value) * 0x1p-100};
}

inline Exponential exponential(double t) {
  const double n = fused(t, kLog2e, kShiftF64) - kShiftF64;
  const double r = fused(n, -0x1.abc9e3b39803fp-56, fused(n, -0x1.62e42fefa39efp-1, t));  // - n ln2
  // expm1(r) = r + r^2 p(r), |r| <= 0.3466, relative error 2^-53
  const double p = polynomial(r, 0x1.b1bbed8cba94ap-26, 0x1.289df169af667p-22,
                              0x1.71dcc02d4a1f1p-19, 0x1.a019ab4cbc664p-16, 0x1.a01a021d31baap-13,
                              0x1.6c16c17d96ea4p-10, 0x1.1111111100a26p-7, 0x1.55555555527abp-5,
                              0x1.5555555555580p-3, 0x1.0000000000004p-1);
  const double shifted = fused(n, 0.5, kShiftF64), half = shifted - kShiftF64;
  return {fused(r * r, p, r), power_of_2_shifted(shifted),
          power_of_2_shifted((n - half) + kShiftF64)};
}

// ln(a / b) for positive normal numbers; `difference` is a - b, with more digits where a and b
// cancel. With the power of two p = 2^n near a / b,
//     ln(a / b) = n ln2 + 2 atanh(f),    f = (a - p b) / (a + p b),    |f| <= 0.2004.
inline double log_ratio(double a, double b, double difference) {
  const uint64_t k = (bits_of(a) - bits_of(b) + (uint64_t{1} << 51)) & (uint64_t{0xfff} << 52);
  const double pb = double_of(bits_of(b) + k);
  const double n = double_of(((k + (uint64_t{1} << 62)) >> 52) | bits_of(0x1p52)) - (0x1p52 + 1024);
  const double f = (k == 0 ? difference : a - pb) / (a + pb), s = f * f;
  const double p = polynomial(s, 2.0 / 21, 2.0 / 19, 2.0 / 17, 2.0 / 15, 2.0 / 13, 2.0 / 11,
                              2.0 / 9, 2.0 / 7, 2.0 / 5, 2.0 / 3);
  const double rest = fused(f * s, p, n * 0x1.ef35793c7673p-45);
  return fused(n, 0x1.62e42fefa38p-1, f + f + rest);  // ln2; the product is exact
}

}  // namespace
}  // namespace openaclnn::OPENACLNN_ISA
