// SPDX-License-Identifier: Apache-2.0
// elu and its gradient in double, for float inputs and all attributes. There no product of
// attributes leaves the range, nothing cancels and float inputs are exact. A rate is inputScale
// log2(e), u is x rate.
#pragma once

#include "core/kernels/math.h"

namespace openaclnn::OPENACLNN_ISA {
namespace {

// 2^u within the range of double: beyond 2^±1022, results in float do not change any more.
inline constexpr double kEnd = 1022;

// The x <= 0 at which u is ±kEnd, as a float.
inline bool has_bound(double input_scale) { return within(input_scale, 0x1p-100, 0x1p127); }
inline float bound_of(double rate) { return static_cast<float>(-kEnd / magnitude(rate)); }

inline double expm1_of(Power power) {
  return power.scale * power.fraction - (1 - power.scale);  // 0 - (1 - 1) keeps the sign of x = -0
}
inline double exp_of(Power power) { return power.scale + power.scale * power.fraction; }

// The forms keep this of the attributes. `factor` is that of the exponential; `bound` counts only
// where inputScale has one.
struct elu_attributes {
  float scale, bound;
  double rate, factor;
  elu_attributes(double scale, double input_scale, double factor)
      : scale(static_cast<float>(scale)),
        bound(bound_of(input_scale * kLog2e)),
        rate(input_scale * kLog2e),
        factor(factor) {}
};

// This form is for an inputScale that has a bound, and a scale alpha that is not 0.
struct elu_wide : elu_attributes {
  float operator()(float x) const {
    const double y = expm1_of(power_of_2((x < bound ? bound : x) * rate)) * factor;
    return x > 0 ? scale * x : static_cast<float>(y);
  }
};

// This form is for an inputScale that has a bound.
struct elu_backward_wide : elu_attributes {
  double at_infinity = rate > 0 ? 0 : __builtin_inf();
  float operator()(float g, float x) const {
    const double e = exp_of(power_of_2((x < bound ? bound : x) * rate));
    const double y = g * factor * (x < -0x1.fffffep127f ? at_infinity : e);
    return x > 0 ? g * scale : static_cast<float>(y);
  }
};

// What follows is for all attributes. u, a product of floats, is infinite only if one of them is;
// as a double it is at most 2^257, so a clamped u differs from an infinite one.
inline Power power_to_end(double u) { return power_of_2(u < -kEnd ? -kEnd : u); }
// Returns at least 2^769 if u is above the end, which makes the result infinite even for the least
// g and attributes, whose product is 2^-596. The value is infinite if u is.
inline double or_beyond(double u, double power) { return u > kEnd ? u * 0x1p760 : power; }

struct elu_rare : elu_attributes {
  float operator()(float x) const {
    const double u = x * rate, y = or_beyond(u, expm1_of(power_to_end(u))) * factor;
    return x > 0 ? scale * x : static_cast<float>(y);
  }
};

struct elu_backward_rare : elu_attributes {
  float operator()(float g, float x) const {
    const double u = x * rate, e = u < -0x1p1000 ? 0 : exp_of(power_to_end(u));
    return x > 0 ? g * scale : static_cast<float>(g * factor * or_beyond(u, e));
  }
};

}  // namespace
}  // namespace openaclnn::OPENACLNN_ISA
