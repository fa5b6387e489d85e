// SPDX-License-Identifier: Apache-2.0
// The gradient of elu from its result v, g (v > 0 ? scale : inputScale (v + alpha scale)).
#pragma once

#include "core/kernels/elementwise/formula.h"
#include "core/kernels/math.h"

namespace openaclnn::OPENACLNN_ISA {
namespace {

// Computes g (v > 0 ? scale : inputScale (v + alpha scale)) in double, where v + alpha scale is
// exact if it cancels.
struct elu_backward_result {
  float scale;
  double input_scale, shift;
  float operator()(float g, float v) const {
    const double y = g * input_scale * (v + shift);
    return v > 0 ? g * scale : static_cast<float>(y);
  }
};

// Here inputScale is 0: y is 0 or NaN, and only its sign counts. `high` is alpha scale rounded, and
// `low` has the sign of what it lacks.
struct elu_backward_result_flat {
  float scale, zero, high, low;  // zero: inputScale, with its sign
  template <class V>
  V operator()(V g, V v) const {
    const V sum = v + all_of<V>(high);
    const V y = (g * all_of<V>(zero)) * (sum == 0 ? sum + all_of<V>(low) : sum);
    return v > 0 ? g * all_of<V>(scale) : y;
  }
};

// This form gives results of 16 bits. No product but the last leaves the range, because inputScale
// is at most 1. alpha scale is high + low, and v + high is exact where it cancels.
struct elu_backward_result_half {
  float scale, input_scale, high, low;
  template <class V>
  V operator()(V g, V v) const {
    const V sum = (v + all_of<V>(high)) + all_of<V>(low);
    return (v > 0 ? all_of<V>(scale) : sum * all_of<V>(input_scale)) * g;
  }
};

// In float. v + alpha scale is sum + rest, where the rounding error of the sum is exact (Knuth),
// and both products keep what they lose, so that only the last sum rounds. If `unit`, inputScale is
// 1. Otherwise `general` computes |g| below 2^-50, except 0, because there g inputScale loses more
// than its remainder can hold. If `exact`, low is 0. If `tiny`, high and low are 2^64 alpha scale,
// so that low is no denormal number; v is multiplied by 2^64 too, and the sums are as many times
// too large.
template <bool unit, bool exact, bool tiny = false>
struct elu_backward_result_single {
  static constexpr bool finite = false;
  static constexpr uint32_t limit = unit ? 0u - 2 : 0u - 0x26800000;  // see unusual
  elu_backward_result wide;
  float rate, high, low;  // inputScale, and alpha scale in two parts

  // If `unit`: v is -high, and the sum is low, whose sign `quick` would lose if g is 0. Otherwise
  // |g| is below 2^-50, whose bits are 0x26800000.
  template <class V>
  auto unusual(V g, V v) const {
    if constexpr (!unit) return 0u - (bits_of(g) & 0x7fffffff);
    return exact ? bits_of(g) & 0u : ~bits_of(v + all_of<V>(high));
  }
  template <class V>
  struct Terms {
    V steps, y;  // steps: rounded one by one, for infinities
  };
  template <class V>
  Terms<V> terms(V g, V given) const {
    const V v = tiny ? given * all_of<V>(0x1p64f) : given;
    const V shift = all_of<V>(high), factor = all_of<V>(rate);
    const V near = v + shift, part = near - v, lost = (v - (near - part)) + (shift - part);
    const V all_lost = exact ? lost : lost + all_of<V>(low);
    // Where v + high cancels, low may be as large: the sum takes what it can of it.
    const V sum = unit ? near : near + all_lost, rest = unit ? all_lost : all_lost - (sum - near);
    const V k = unit ? g : g * factor, product = k * sum;
    // By how much the product is too large; +0 where that is 0 or underflows, so that a difference
    // keeps its sign.
    const V excess = fused_minus(k, sum, product) - k * rest;
    const V k_lost = fused(g, factor, -k);
    const V y = product - (unit ? excess : fused_minus(k_lost, sum, excess));
    const V steps = sum == sum ? product : k * near;
    if constexpr (tiny) return {steps * all_of<V>(0x1p-64f), y * all_of<V>(0x1p-64f)};
    return {steps, y};
  }
  template <class V>
  V either(V g, V v, V y) const {
    return v > 0 ? g * all_of<V>(wide.scale) : y;
  }

  template <class V>
  V quick(V g, V v) const {
    return either(g, v, terms(g, v).y);
  }
  float general(float g, float v) const { return wide(g, v); }

  // An infinite g or v makes y NaN, and `steps` is the result. `general` computes what overflows.
  struct Careful {
    static constexpr bool finite = true;
    static constexpr uint32_t limit = unit ? 0 : elu_backward_result_single::limit;
    elu_backward_result_single form;

    template <class V>
    auto unusual(V g, V v) const {
      const V y = form.quick(g, v);
      const auto overflow = zero_unless((g - g) + (v - v) == 0, bits_of(y - y)) << 1;
      if constexpr (unit) return overflow;
      return larger(form.unusual(g, v), overflow);
    }
    template <class V>
    V quick(V g, V v) const {
      const Terms<V> t = form.terms(g, v);
      const V y = t.y == t.y ? t.y : t.steps;
      if constexpr (!unit || exact) return with_one_nan(form.either(g, v, y));
      const V less = all_of<V>(form.low);
      return with_one_nan(form.either(g, v, v == -all_of<V>(form.high) ? g * less : y));
    }
    float general(float g, float v) const { return form.general(g, v); }
  };
  Careful careful() const { return {*this}; }
};

// Calls loop(form) for results in float.
template <bool to_half>
inline void visit_elu_backward_result(double alpha, double scale, double input_scale,
                                      const auto& loop) {
  const double shift = scale * alpha;
  const auto positive = static_cast<float>(scale), rate = static_cast<float>(input_scale);
  const auto high = static_cast<float>(shift), low = static_cast<float>(shift - high);
  const elu_backward_result general{positive, input_scale, shift};
  if (input_scale == 0 && magnitude(shift) < 0x1p100) {
    const float sign = shift > high ? 1.0f : shift < high ? -1.0f : -0.0f;
    return loop(elu_backward_result_flat{positive, rate, high, sign});
  }
  if constexpr (to_half) {
    if (within(shift, 0x1p-20, 0x1p100) && within(input_scale, 0x1p-20, 1))
      return loop(elu_backward_result_half{positive, rate, high, low});
  }
  if (within(input_scale, 0x1p-20, 0x1p20)) {
    if (within(shift, 0x1p-20, 0x1p60)) {
      if constexpr (!to_half) {  // which has its form for 1
        if (input_scale == 1 && low == 0)
          return loop(elu_backward_result_single<true, true>{general, 1, high, low});
        if (input_scale == 1)
          return loop(elu_backward_result_single<true, false>{general, 1, high, low});
      }
      return loop(elu_backward_result_single<false, false>{general, rate, high, low});
    }
    if (within(shift, 0x1p-140, 0x1p-20)) {
      const double more = shift * 0x1p64;
      const auto more_high = static_cast<float>(more);
      return loop(elu_backward_result_single<false, false, true>{
          general, rate, more_high, static_cast<float>(more - more_high)});
    }
  }
  loop(general);
}

}  // namespace
}  // namespace openaclnn::OPENACLNN_ISA
