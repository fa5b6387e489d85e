// SPDX-License-Identifier: Apache-2.0
// These are formulas in DOUBLE that no product has: the gradient of elu, logit and its gradient.
// Their error is at most 1 ulp for all attributes; sums and products on which the accuracy depends
// are kept as high + low.
#pragma once

#include "core/kernels/math.h"

namespace openaclnn::OPENACLNN_ISA {
namespace {

// An unevaluated sum; |low| is at most about an ulp of high.
struct Pair {
  double high, low;
};

inline Pair sum_of(double a, double b) {
  const double sum = a + b, part = sum - a;
  return {sum, (a - (sum - part)) + (b - part)};
}

inline Pair product_of(double a, double b) {
  const double product = a * b;
  return {product, fused(a, b, -product)};
}

// Leaves out low * low, which is below 2^-105 of the product.
inline Pair times(Pair a, Pair b) {
  const Pair y = product_of(a.high, b.high);
  return {y.high, y.low + fused(a.high, b.low, a.low * b.high)};
}

// value * 2^exponent with a value from 2^-500 to 2^500, or 0, infinity or NaN.
struct Scaled {
  double value, exponent;
  explicit Scaled(double x) : value(x), exponent(0) {
    const bool tiny = magnitude(x) < 0x1p-500, huge = magnitude(x) > 0x1p500;
    value = tiny ? x * 0x1p600 : huge ? x * 0x1p-600 : x;
    exponent = tiny ? -600 : huge ? 600 : 0;
  }
};

// An attribute as a mantissa from 1/2 to 1 (or 0, infinity or NaN itself) and an exponent.
struct Mantissa {
  int exponent = 0;  // before value, whose initialiser sets it
  double value;
  explicit Mantissa(double x) : value(__builtin_frexp(x, &exponent)) {
    if (!(magnitude(value) <= 1) || value == 0) exponent = 0;
  }
};

inline bool is_usual(double x) {  // neither 0 nor infinite nor NaN
  return all(magnitude(x) > 0, magnitude(x) < __builtin_inf());
}

// (high + low) 2^exponent.
inline double power_times(Pair y, double exponent) {
  const double most = exponent > 3000 ? 3000 : exponent < -3000 ? -3000 : exponent;
  const PowerInSteps to = power_in_steps(most);
  return (y.high + y.low) * to.step * to.step * to.last;
}

// g (x > 0 ? scale : inputScale alpha scale exp(inputScale x)). The exponential of a number is
// neither 0 nor infinite; where a factor is 0, infinite or NaN, their product alone decides.
struct elu_backward_double {
  double scale, input_scale, exponent;
  Pair factor;

  elu_backward_double(double alpha, double scale, double input_scale)
      : scale(scale), input_scale(input_scale) {
    const Mantissa a(alpha), s(scale), i(input_scale);
    factor = times(product_of(s.value, a.value), {i.value, 0});
    exponent = a.exponent + s.exponent + i.exponent;
  }

  double operator()(double g, double x) const {
    const double product = x * input_scale;
    const double t = product > 4000 ? 4000 : product < -4000 ? -4000 : product;
    const ExpF64 e = exp_exact(t, t == product ? fused(x, input_scale, -product) : 0);
    const Pair first = sum_of(1, e.r), power = sum_of(first.high, e.half_square);
    const double rest = power.low + first.low + e.q;
    const Scaled gradient(g);
    const Pair y = times(times({gradient.value, 0}, factor), {power.high, rest});
    const double number = power_times(y, e.n + exponent + gradient.exponent);

    const double infinity = __builtin_inf();
    const bool infinite = any(magnitude(x) == infinity, magnitude(input_scale) == infinity);
    const double limit = product > 0 ? infinity : product < 0 ? 0 : product;  // NaN stays
    const double whole = any(infinite, x != x) ? limit : 1;
    const bool usual = all(is_usual(g), is_usual(factor.high), is_usual(whole));
    return x > 0 ? g * scale : usual ? number : gradient.value * factor.high * whole;
  }
};

// g (v > 0 ? scale : inputScale (v + alpha scale)), where the sum may cancel.
struct elu_backward_result_double {
  double scale;
  Mantissa rate;
  Pair shift;  // alpha scale, without …
  double exponent;

  elu_backward_result_double(double alpha, double scale, double input_scale)
      : scale(scale), rate(input_scale) {
    const Mantissa a(alpha), s(scale);
    shift = product_of(s.value, a.value);
    exponent = a.exponent + s.exponent;
  }

  double operator()(double g, double v) const {
    // v + shift as (high + low) 2^-by; 2^by brings both near 1, or makes one of them negligible
    const bool low = all(magnitude(v) < 0x1p-300, exponent < -300);
    const bool high = any(magnitude(v) > 0x1p300, exponent > 300);
    const double by = v == 0 ? -exponent : low ? 600 : high ? -600 : 0;
    const double scaled_v = v * power_of_2_exact(v == 0 ? 0 : by), raised = exponent + by;
    const double step = power_of_2_exact(raised < -1000 ? -1000 : raised > 1000 ? 1000 : raised);
    const Pair sum = sum_of(scaled_v, shift.high * step);
    const Scaled gradient(g), total(sum.high);
    const double rest = (sum.low + shift.low * step) * power_of_2_exact(-total.exponent);
    const Pair y = times(times({gradient.value, 0}, {rate.value, 0}), {total.value, rest});
    const double number = power_times(y, total.exponent - by + gradient.exponent + rate.exponent);

    const double plain = v + shift.high;  // of infinities and NaNs; zeros keep what they are
    const bool finite = magnitude(plain) < __builtin_inf();
    const bool usual = all(all(finite, is_usual(g)), is_usual(rate.value), sum.high != 0);
    const double special = gradient.value * rate.value * (finite ? sum.high : plain);
    return v > 0 ? g * scale : usual ? number : special;
  }
};

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
  double p = 2.0 / 25;
  p = fused(p, s, 2.0 / 23);
  p = fused(p, s, 2.0 / 21);
  p = fused(p, s, 2.0 / 19);
  p = fused(p, s, 2.0 / 17);
  p = fused(p, s, 2.0 / 15);
  p = fused(p, s, 2.0 / 13);
  p = fused(p, s, 2.0 / 11);
  p = fused(p, s, 2.0 / 9);
  p = fused(p, s, 2.0 / 7);
  p = fused(p, s, 2.0 / 5);
  p = fused(p, s, 2.0 / 3);
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
  double low, beyond;  // outside of [low, 1 - low] is `beyond`
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
    return any(x < low, c < low) ? beyond : y;
  }
};

}  // namespace
}  // namespace openaclnn::OPENACLNN_ISA
