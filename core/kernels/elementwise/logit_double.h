// SPDX-License-Identifier: Apache-2.0
// logit and its gradient in DOUBLE, which no product has, have an error of at most 1 ulp for all
// attributes. Sums and products on which that depends are kept as high + low.
#pragma once

#include "core/kernels/math.h"

namespace openaclnn::OPENACLNN_ISA {
namespace {

// ln(z / (1 - z)), 0 <= z <= 1. With c = 1 - z, which is rounded, and p = 2^n near z / c,
//     ln(z / (1 - z)) = n ln2 + 2 atanh(f),    f = (z - p (1 - z)) / (z + p (1 - z)),
// |f| <= 0.2004: the first term that the series leaves out, f^26 / 27, is below 2^-65.
inline double logit_exact(double z) {
  const bool tiny = z < 0x1p-60;  // there 1 - z does not count, and z may be a subnormal
  const double c = tiny ? 1 : 1 - z, missing = tiny ? 0 : (1 - c) - z;  // 1 - z = c + missing
  const double raised = tiny ? z * 0x1p600 : z;
  const uint64_t k = (bits_of(raised) - bits_of(c) + (uint64_t{1} << 51)) & (uint64_t{0xfff} << 52);
  const double b = double_of(bits_of(c) + k), power = double_of(k + bits_of(1.0));
  const double n = double_of(((k + (uint64_t{1} << 62)) >> 52) | bits_of(0x1p52)) -
                   (0x1p52 + 1024) - (tiny ? 600 : 0);
  const double lost = missing * power;  // p (1 - z) = b + lost
  const double top = raised - b;        // exact, because b is near
  const Pair bottom = sum_of(raised, b);
  const double f = (top - lost) / bottom.high;
  // f bottom = product exactly; what product lacks of the numerator, over the denominator, is what
  // f lacks
  const Pair product = product_of(f, bottom.high);
  const double lack = ((top - product.high) - product.low) - lost - f * (bottom.low + lost);
  const double f_low = lack / bottom.high, s = f * f;
  const double p = polynomial(s, 2.0 / 25, 2.0 / 23, 2.0 / 21, 2.0 / 19, 2.0 / 17, 2.0 / 15,
                              2.0 / 13, 2.0 / 11, 2.0 / 9, 2.0 / 7, 2.0 / 5, 2.0 / 3);
  constexpr double kLn2High = 0x1.62e42fefa38p-1, kLn2Low = 0x1.ef35793c7673p-45;  // 42 digits
  const Pair y = sum_of(n * kLn2High, f + f);  // the product is exact
  return y.high + (y.low + fused(n, kLn2Low, fused(f * s, p, f_low + f_low)));
}

// The clamp compares as if 1 - eps were not rounded: x > 1 - eps becomes 1 - x < eps. 1 - x is
// rounded only for x below 1/2, where the comparison of x with eps decides.
struct logit_double {
  double eps, at_eps;  // eps < 0: no clamp
  explicit logit_double(double eps) : eps(eps), at_eps(eps >= 0 ? value_of(eps) : 0) {}

  static double value_of(double z) {
    const double infinity = __builtin_inf();
    const double ends = z == 0 ? -infinity : z == 1 ? infinity : __builtin_nan("");
    return all(z > 0, z < 1) ? logit_exact(z) : ends;
  }

  double operator()(double x) const {
    const double y = value_of(x);
    const bool below = x < eps, above = 1 - x < eps;  // false where eps < 0, but for x outside
    const double clamped = below ? at_eps : above ? 0 - at_eps : y;
    const double bounded = eps > 0.5 ? at_eps : clamped;  // the lower bound wins
    return eps < 0 || x != x ? y : eps != eps ? __builtin_nan("") : bounded;
  }
};

// Computes dy / (x (1 - x)). With m, the smaller of x and 1 - x, which is exact, d = m - m^2 is
// kept as high + low, and the quotient is corrected once by its remainder, which must not
// underflow. Where m is below 2^-60, 1 - m counts as 1.
struct logit_grad_double {
  double low, outside;  // outside of [low, 1 - low] is `outside`
  double operator()(double x, double dy) const {
    const double c = 1 - x, m = x < c ? x : c;
    const double d = fused(-m, m, m), d_low = fused(-m, m, m - d);
    const bool tiny = magnitude(dy) < 0x1p-900;
    const double raised = tiny ? dy * 0x1p120 : dy;
    const double q = raised / d, lack = fused(-q, d, raised) - q * d_low;
    const double corrected = (q + lack / d) * (tiny ? 0x1p-120 : 1);
    const bool number = all(magnitude(corrected) < __builtin_inf(), dy != 0);
    const bool simple = !all(m >= 0x1p-60, number);
    const double y = simple ? dy / (m * (1 - m)) : corrected;
    return any(x < low, c < low) ? outside : y;
  }
};

}  // namespace
}  // namespace openaclnn::OPENACLNN_ISA
