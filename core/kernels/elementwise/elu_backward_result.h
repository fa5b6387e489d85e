// SPDX-License-Identifier: Apache-2.0
// The gradient of elu from its result v, g (v > 0 ? scale : inputScale (v + alpha scale)).
#pragma once

#include "core/kernels/elementwise/formula.h"
#include "core/kernels/math.h"

namespace openaclnn::OPENACLNN_ISA {
namespace {

// This form computes in double, for all attributes: g inputScale is exact, v + alpha scale is exact
// where it cancels, and what is rounded keeps 29 binary digits more than the result has.
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

// This form gives results of 16 bits, and zeros and NaN of any size where inputScale is 0. No
// product but the last leaves the range, because inputScale is at most 1. alpha scale is high +
// low, and v + high is exact where it cancels.
struct elu_backward_result_half {
  float scale, input_scale, high, low;
  template <class V>
  V operator()(V g, V v) const {
    const V sum = (v + all_of<V>(high)) + all_of<V>(low);
    return (v > 0 ? all_of<V>(scale) : sum * all_of<V>(input_scale)) * g;
  }
};

// This form computes in float and takes 0.5 (if `unit`: inputScale is 1) to 0.6 of the time of the
// form in double. alpha scale is high + low; if `exact`, low is 0. sum is v + high, and its
// rounding error is exact: Dekker's, if `ordered`, which is right for |v| <= high, or Knuth's. t is
// sum inputScale, `fused` gives its rounding error exactly, and t_lost holds both errors and
// low inputScale. t_lost and g t_lost round too, but lose at most 2^-31 of the result. t and
// t_lost, or g if `unit`, are 2^32 times as large, because a subnormal g t_lost would lose more.
// `little`, 2^-60 high, is added to v and changes a result at a tie at most: without it the
// rounding error would be subnormal where v is, and it is multiplied (formula.h).
template <bool unit, bool exact>
struct elu_backward_result_single {
  static constexpr bool finite = false;
  uint32_t limit;
  elu_backward_result wide;
  float rate, high, low, little;  // rate: 2^32 inputScale
  uint32_t least;                 // the bits of the least sum
  explicit elu_backward_result_single(const elu_backward_result& wide)
      : wide(wide),
        rate(static_cast<float>(wide.input_scale * 0x1p32)),
        high(static_cast<float>(wide.shift)),
        low(static_cast<float>(wide.shift - high)),
        little(high * 0x1p-60f) {
    least = exact ? 0 : bits_of(high * 0x1p-16f);
    limit = 0x7f800000 - least;
  }

  // Results of elu are -high or more, and their sum is 0 or more, unless they were rounded to 16
  // bits. Where v + high cancels, low may be as large as the sum, and the rounding error of t_lost
  // would show, or the sign would be wrong.
  template <class V>
  auto unusual(V, V v) const {
    return exact ? bits_of(sum(v)) : bits_of(sum(v)) - least;
  }
  template <class V>
  V sum(V v) const {
    return (v + all_of<V>(little)) + all_of<V>(high);
  }
  template <class V>
  struct Terms {
    V t, y;  // y is NaN where g or v is infinite; there g t is the result
  };
  template <bool ordered, class V>
  Terms<V> terms(V g, V given) const {
    const V v = given + all_of<V>(little), shift = all_of<V>(high), factor = all_of<V>(rate);
    const V s = sum(given), part = s - v;
    const V rest = ordered ? v - (s - shift) : (v - (s - part)) + (shift - part);
    const V s_lost = exact ? rest : rest + all_of<V>(low);
    const V t = unit ? s : s * factor;
    const V t_lost = unit ? s_lost : fused(s_lost, factor, fused(s, factor, -t));
    const V large = unit ? g * all_of<V>(0x1p32f) : g;
    const V y = fused(large, t, large * t_lost) * all_of<V>(0x1p-32f);
    const auto negative = (bits_of(g) ^ bits_of(t)) & 0x80000000;  // where g is 0, y may be +0
    return {t, float_of(bits_of(y) | negative)};
  }
  template <class V>
  V either(V g, V v, V y) const {
    return v > 0 ? g * all_of<V>(wide.scale) : y;
  }

  template <class V>
  V quick(V g, V v) const {
    return either(g, v, terms<true>(g, v).y);
  }

  // `general` computes what overflows, too.
  struct Careful {
    static constexpr bool finite = true;
    uint32_t limit;
    elu_backward_result_single form;

    template <class V>
    auto unusual(V g, V v) const {
      const V y = form.either(g, v, form.template terms<false>(g, v).y);
      const auto overflow = zero_unless((g - g) + (v - v) == 0, bits_of(y - y)) << 1;
      if constexpr (exact) return overflow;
      return larger(~bits_of(form.sum(v)) | 0x80000000, overflow);
    }
    template <class V>
    V quick(V g, V v) const {
      const Terms<V> t = form.template terms<false>(g, v);
      return canonical(form.either(g, v, t.y == t.y ? t.y : g * t.t));
    }
    float general(float g, float v) const { return form.wide(g, v); }
  };
  Careful careful() const { return {exact ? 0 : ~least, *this}; }  // ~least: of |sum|
};

// Calls loop(form) for results in float.
template <bool to_half>
inline void visit_elu_backward_result(double alpha, double scale, double input_scale,
                                      const auto& loop) {
  const double shift = scale * alpha;
  const auto positive = static_cast<float>(scale), rate = static_cast<float>(input_scale);
  const auto high = static_cast<float>(shift), low = static_cast<float>(shift - high);
  const bool flat = input_scale == 0, half = to_half && within(input_scale, 0x1p-20, 1);
  if ((flat || half) && within(shift, 0x1p-20, 0x1p100))
    return loop(elu_backward_result_half{positive, rate, high, low});
  const elu_backward_result wide{positive, input_scale, shift};
  // Results of elu are subnormal where alpha scale is, and multiplying them in float takes 8 times
  // as long as converting them (bf16, 64 Ki: 320 instead of 39 us). Where alpha scale is negative,
  // they do not tell the sign of x, and there is no fast form.
  const bool usual = shift >= 0x1p-20 && shift <= 0x1p60;  // not NaN
  if (!within(input_scale, 0x1p-20, 0x1p20) || !usual) return loop(wide);
  if constexpr (!to_half) {  // which has its form for 1
    if (input_scale == 1 && low == 0) return loop(elu_backward_result_single<true, true>(wide));
    if (input_scale == 1) return loop(elu_backward_result_single<true, false>(wide));
    if (low == 0) return loop(elu_backward_result_single<false, true>(wide));
  }
  loop(elu_backward_result_single<false, false>(wide));
}

}  // namespace
}  // namespace openaclnn::OPENACLNN_ISA
