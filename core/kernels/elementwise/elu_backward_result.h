// SPDX-License-Identifier: Apache-2.0
// The gradient of elu from its result v, g (v > 0 ? scale : inputScale (v + alpha scale)).
#pragma once

#include "core/kernels/elementwise/formula.h"
#include "core/kernels/math.h"

namespace openaclnn::OPENACLNN_ISA {
namespace {

// In double, for all attributes: g inputScale is exact, v + alpha scale is exact where it cancels,
// and what is rounded keeps 29 digits more than the result has.
struct elu_backward_result {
  float scale;
  double input_scale, shift;
  template <class V>
  V operator()(V g, V v) const {
    const auto below = [this](auto g, auto v) { return g * input_scale * (v + shift); };
    const V y = in_double(below, g, v);
    return v > 0 ? g * all_of<V>(scale) : y;
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

// In float, in two thirds of the time. inputScale (v + alpha scale) is t + lost, where the rounding
// error of the sum is exact (Knuth) and that of the product with inputScale is, and g t keeps what
// it loses, so that only the last difference rounds. If `unit`, inputScale is 1; if `exact`, low is
// 0. `little` is 2^-60 high: it changes no result, and no subnormal v is multiplied (formula.h).
template <bool unit, bool exact>
struct elu_backward_result_single {
  static constexpr bool finite = false;
  uint32_t limit;
  elu_backward_result wide;
  float rate, high, low, little;  // inputScale, and alpha scale in two parts
  elu_backward_result_single(const elu_backward_result& wide)
      : wide(wide),
        rate(static_cast<float>(wide.input_scale)),
        high(static_cast<float>(wide.shift)),
        low(static_cast<float>(wide.shift - high)),
        little(high * 0x1p-60f) {
    limit = exact ? 0 : ~bits_of(unit ? 0x1p-149f : magnitude(high) * 0x1p-18f);
  }

  // Where v + high cancels, low may be as large: if `unit`, the sum is low, whose sign `quick`
  // would lose where g is 0; if not, the rounding error of low inputScale would show.
  template <class V>
  auto unusual(V g, V v) const {
    if constexpr (exact) return bits_of(g) & 0u;
    return ~bits_of((v + all_of<V>(little)) + all_of<V>(high)) | 0x80000000;
  }
  template <class V>
  struct Terms {
    V product, y;  // g t, which has the right sign and infinity where y is NaN
  };
  template <class V>
  Terms<V> terms(V g, V given) const {
    const V v = given + all_of<V>(little), shift = all_of<V>(high), factor = all_of<V>(rate);
    const V sum = v + shift, part = sum - v, rest = (v - (sum - part)) + (shift - part);
    const V sum_lost = exact ? rest : rest + all_of<V>(low);
    const V t = unit ? sum : sum * factor;
    const V t_lost = unit ? sum_lost : fused(sum_lost, factor, fused(sum, factor, -t));
    const V product = g * t;
    // By how much the product is too large; +0 where that is 0 or underflows, so that a difference
    // keeps its sign.
    const V excess = fused_minus(g, t, product) - g * t_lost;
    return {product, product - excess};
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

  // An infinite g or v makes y NaN, and the product is the result. `general` computes what
  // overflows.
  struct Careful {
    static constexpr bool finite = true;
    uint32_t limit;
    elu_backward_result_single form;

    template <class V>
    auto unusual(V g, V v) const {
      const V y = form.quick(g, v);
      const auto overflow = zero_unless((g - g) + (v - v) == 0, bits_of(y - y)) << 1;
      if constexpr (unit || exact) return overflow;
      return larger(form.unusual(g, v), overflow);
    }
    template <class V>
    V quick(V g, V v) const {
      const Terms<V> t = form.terms(g, v);
      const V y = t.y == t.y ? t.y : t.product;
      if constexpr (!unit || exact) return with_one_nan(form.either(g, v, y));
      const V less = all_of<V>(form.low);
      return with_one_nan(form.either(g, v, v == -all_of<V>(form.high) ? g * less : y));
    }
    float general(float g, float v) const { return form.general(g, v); }
  };
  Careful careful() const { return {unit ? 0 : limit, *this}; }
};

// Calls loop(form) for results in float.
template <bool to_half>
inline void visit_elu_backward_result(double alpha, double scale, double input_scale,
                                      const auto& loop) {
  const double shift = scale * alpha;
  const auto positive = static_cast<float>(scale), rate = static_cast<float>(input_scale);
  const auto high = static_cast<float>(shift), low = static_cast<float>(shift - high);
  if (input_scale == 0 && magnitude(shift) < 0x1p100) {
    const float sign = shift > high ? 1.0f : shift < high ? -1.0f : -0.0f;
    return loop(elu_backward_result_flat{positive, rate, high, sign});
  }
  if constexpr (to_half) {
    if (within(shift, 0x1p-20, 0x1p100) && within(input_scale, 0x1p-20, 1))
      return loop(elu_backward_result_half{positive, rate, high, low});
  }
  const elu_backward_result wide{positive, input_scale, shift};
  if (!within(input_scale, 0x1p-20, 0x1p20) || !within(shift, 0x1p-20, 0x1p60)) return loop(wide);
  if constexpr (!to_half) {  // which has its form for 1
    if (input_scale == 1 && low == 0) return loop(elu_backward_result_single<true, true>(wide));
    if (input_scale == 1) return loop(elu_backward_result_single<true, false>(wide));
    if (low == 0) return loop(elu_backward_result_single<false, true>(wide));
  }
  loop(elu_backward_result_single<false, false>(wide));
}

}  // namespace
}  // namespace openaclnn::OPENACLNN_ISA
