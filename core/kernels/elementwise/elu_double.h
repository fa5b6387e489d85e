// SPDX-License-Identifier: Apache-2.0
// elu and its gradient in double: first for DOUBLE, which the gradient has in no product, with an
// error of at most 1 ulp for all attributes (sums and products on which that depends are kept as
// high + low), then for FLOAT and 16 bits with any attributes.
#pragma once

#include "core/kernels/math.h"

namespace openaclnn::OPENACLNN_ISA {
namespace {

// An attribute as a mantissa from 1/2 to 1 (or 0, infinity or NaN itself) and an exponent.
struct Mantissa {
  int exponent = 0;  // before value, whose initialiser sets it
  double value;
  explicit Mantissa(double x) : value(__builtin_frexp(x, &exponent)) {
    if (!(magnitude(value) <= 1) || value == 0) exponent = 0;
  }
};

// expm1(t + low) = 2^waiting (sum + rest); `rest` is below 0.04 of the sum, so its rounding error
// is below 0.05 ulp. If `falling`, t <= 0. From 2^54 on the 1 is too small for the first sum to be
// exact, and from 2^60 on it no longer affects the result.
struct Expm1F64 {
  double sum, rest, waiting;
};

template <bool falling>
inline Expm1F64 expm1_exact(double t, double low) {
  const ExpF64 e = exp_exact(t, low);
  const double kept = falling || e.n < 60 ? e.n : 60, one = falling || e.n < 54 ? 1 : 0;
  const double power = power_of_2_exact(kept), whole = power - one;
  const double first = power * e.r, second = power * e.half_square;
  const double part = whole + first, sum = part + second;
  const double lost = (first - (part - whole)) + (second - (sum - part));
  const double of_whole = (power - (whole + one)) + (falling ? 0 : one - 1);
  return {sum, lost + of_whole + power * e.q, e.n - kept};
}

// For inputScale 1, if scale alpha = high + low is far from the ends of the range.
struct elu_double_single {
  double scale, high, low;
  elu_double_single(double alpha, double scale)
      : scale(scale), high(scale * alpha), low(fused(scale, alpha, -high)) {}

  double operator()(double x) const {
    const Expm1F64 t = expm1_exact<true>(x < -60 ? -60 : x, 0);
    const double y = t.sum * high;
    const double lost = fused(t.sum, low, fused(t.sum, high, -y));
    const double result = y + fused(t.rest, high, lost);
    return x > 0 ? scale * x : __builtin_copysign(result, x);
  }
};

// Mantissas are multiplied as high + low, exponents added, so that only the result can leave the
// range; below 2^-100 expm1(t) is t. If `falling`, inputScale is not below 0.
template <bool falling>
struct elu_double {
  double scale, input_scale;
  double high, low, small_high, small_low;  // scale alpha and scale alpha inputScale, without …
  double exponent;                          // … their exponents; that of the first
  PowerInSteps usual, small, tiny;

  elu_double(double alpha, double scale, double input_scale)
      : scale(scale), input_scale(input_scale) {
    const Mantissa s(scale), a(alpha), i(input_scale);
    const Pair factor = product_of(s.value, a.value), small_factor = times(factor, {i.value, 0});
    high = factor.high, low = factor.low;
    small_high = small_factor.high, small_low = small_factor.low;
    exponent = s.exponent + a.exponent;
    const double all = exponent + i.exponent;
    // beyond these ends results are 0 or infinite, whatever x is
    const double small_exponent = all < -2400 ? -2400 : all > 3000 ? 3000 : all;
    usual = power_in_steps(exponent), small = power_in_steps(small_exponent);
    tiny = power_in_steps(small_exponent - 600);
  }

  double operator()(double x) const {
    const double product = x * input_scale;
    const double t = !falling && product > 4000 ? 4000 : product < -60 ? -60 : product;
    const Expm1F64 e = expm1_exact<falling>(t, t == product ? fused(x, input_scale, -product) : 0);

    const bool is_small = magnitude(product) < 0x1p-100, is_tiny = magnitude(x) < 0x1p-500;
    const double a = is_small ? (is_tiny ? x * 0x1p600 : x) : e.sum, a_low = is_small ? 0 : e.rest;
    const double b = is_small ? small_high : high, b_low = is_small ? small_low : low;
    const double y = a * b;
    const double lost = fused(-a_low, b, fused(-a, b_low, fused(-a, b, y)));

    PowerInSteps to = usual;
    if (!falling) to = power_in_steps(exponent + e.waiting > 3000 ? 3000 : exponent + e.waiting);
    const double step = is_small ? (is_tiny ? tiny.step : small.step) : to.step;
    const double last = is_small ? (is_tiny ? tiny.last : small.last) : to.last;
    return x > 0 ? scale * x : (y - lost) * step * step * last;
  }
};

// This form is for a scale or alpha that is 0, and for attributes that are infinite or NaN. All
// that matters of expm1 is its sign and whether it is 0, infinite or -1. Infinity times scale alpha
// is computed with the mantissa of scale alpha, which may be below the range.
struct elu_double_rare {
  double scale, factor, mantissa, rate;
  elu_double_rare(double alpha, double scale, double input_scale)
      : scale(scale),
        factor(scale * alpha),
        mantissa(Mantissa(scale).value * Mantissa(alpha).value) {
    const bool finite = magnitude(input_scale) < __builtin_inf() && input_scale != 0;
    rate = finite ? __builtin_copysign(1, input_scale) : input_scale;
  }
  double operator()(double x) const {
    const double t = x * rate;
    const double y = t < 0 ? -factor : t * mantissa;
    return x > 0 ? scale * x : y;
  }
};

// Calls loop(form) with the form that the attributes need.
template <class Loop>
inline void visit_elu_double(double alpha, double scale, double input_scale, const Loop& loop) {
  constexpr double kLeast = 0x1p-1074, kMost = 0x1.fffffffffffffp1023;
  const double factor = scale * alpha;
  if (input_scale == 1 && factor >= 0x1p-60 && factor <= 0x1p60) {
    loop(elu_double_single(alpha, scale));
  } else if (within(alpha, kLeast, kMost) && within(scale, kLeast, kMost) &&
             within(input_scale, 0, kMost)) {
    if (input_scale >= 0) return loop(elu_double<true>(alpha, scale, input_scale));
    loop(elu_double<false>(alpha, scale, input_scale));
  } else {
    loop(elu_double_rare(alpha, scale, input_scale));
  }
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
    exponent = shift.high == 0 ? 0 : a.exponent + s.exponent;  // beside 0, no v is negligible
  }

  double operator()(double g, double v) const {
    // v + shift as (high + low) 2^-by; 2^by brings both near 1, or makes one of them negligible
    const bool low = all(magnitude(v) < 0x1p-300, exponent < -300);
    const bool high = any(magnitude(v) > 0x1p300, exponent > 300);
    const double down = exponent > 1600 ? -1500 : -600;  // an exponent may be 2048
    const double by = v == 0 ? -exponent : low ? 600 : high ? down : 0;
    const double half = power_of_2_exact(v == 0 ? 0 : by / 2);
    const double scaled_v = v * half * half, raised = exponent + by;
    const double step = power_of_2_exact(raised < -1000 ? -1000 : raised > 1000 ? 1000 : raised);
    const Pair raw = sum_of(scaled_v, shift.high * step);
    const Pair sum = sum_of(raw.high, raw.low + shift.low * step);  // raw.high may be 0
    const Scaled gradient(g), total(sum.high);
    const double rest = sum.low * power_of_2_exact(-total.exponent);
    const Pair y = times(times({gradient.value, 0}, {rate.value, 0}), {total.value, rest});
    const double number = power_times(y, total.exponent - by + gradient.exponent + rate.exponent);

    const double plain = v + shift.high;  // of infinities and NaNs; zeros keep what they are
    const bool finite = magnitude(plain) < __builtin_inf();
    const bool usual = all(all(finite, is_usual(g)), is_usual(rate.value), sum.high != 0);
    const double zero = sum.high == 0 ? raw.high : sum.high;  // with its sign
    const double special = gradient.value * rate.value * (finite ? zero : plain);
    return v > 0 ? g * scale : usual ? number : special;
  }
};

// The forms below compute float inputs in double, which holds the inputs exactly and every product
// of attributes; nothing cancels. A rate is inputScale log2(e), and u is x rate.

// 2^u within the range of double: beyond 2^±1022, results in float do not change any more.
inline constexpr double kEnd = 1022;

inline double expm1_of(Power power) {
  return power.scale * power.fraction - (1 - power.scale);  // 0 - (1 - 1) keeps the sign of x = -0
}
inline double exp_of(Power power) { return power.scale + power.scale * power.fraction; }

// The forms keep this of the attributes. `factor` is that of the exponential.
struct elu_attributes {
  float scale;
  double rate, factor;
  elu_attributes(double scale, double input_scale, double factor)
      : scale(static_cast<float>(scale)), rate(input_scale * kLog2e), factor(factor) {}
};

// u, a product of floats, is infinite only if one of them is; as a double it is at most 2^257, so a
// clamped u differs from an infinite one.
inline Power power_to_end(double u) { return power_of_2(u < -kEnd ? -kEnd : u); }
// Returns at least 2^769 if u is above the end, which makes the result infinite even for the least
// g and attributes, whose product is 2^-596. The value is infinite if u is.
inline double or_beyond(double u, double power) { return u > kEnd ? u * 0x1p760 : power; }

struct elu_wide : elu_attributes {
  float operator()(float x) const {
    const double u = x * rate, y = or_beyond(u, expm1_of(power_to_end(u))) * factor;
    return x > 0 ? scale * x : static_cast<float>(y);
  }
};

struct elu_backward_wide : elu_attributes {
  float operator()(float g, float x) const {
    const double u = x * rate, e = u < -0x1p1000 ? 0 : exp_of(power_to_end(u));
    return x > 0 ? g * scale : static_cast<float>(g * factor * or_beyond(u, e));
  }
};

}  // namespace
}  // namespace openaclnn::OPENACLNN_ISA
