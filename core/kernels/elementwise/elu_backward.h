// SPDX-License-Identifier: Apache-2.0
// The gradient of elu from its input, g (x > 0 ? scale : inputScale alpha scale exp(inputScale x)),
// or from its result (elu_backward_result.h).
#pragma once

#include "core/kernels/elementwise/elu_backward_result.h"
#include "core/kernels/elementwise/elu_double.h"
#include "core/kernels/elementwise/formula.h"
#include "core/kernels/math.h"

namespace openaclnn::OPENACLNN_ISA {
namespace {

// The quick forms in float derive from this one. They are right for every x with exp(inputScale x)
// above e^-64 and a finite result.
struct elu_backward_quick {
  static constexpr bool finite = false;
  float scale, factor;  // of exp(inputScale x)
  elu_backward_wide wide;
  uint32_t limit;  // the bits of -64 / inputScale; those of smaller numbers are larger, those of
                   // positive ones smaller

  template <class V>
  auto unusual(V, V x) const {
    return bits_of(x);
  }
  float general(float g, float x) const { return wide(g, x); }
};

// The careful form of `quick` is right for all g and x. exp(inputScale x) is the product of two
// factors, and x is clamped to a lower bound, where the result is 0. If g is above kLarge, the
// result would not be 0 there; such a g is multiplied by 2^-kMore, which changes no digits, and its
// bound is lower. Below the bound a form may multiply by 0 instead of a power of two that
// underflows, which takes 100 cycles on some processors (20 % of -inf: 0.85 -> 0.30 ns an element).
// The largest factor of exp that both bounds allow is kFactor.
template <class Quick>
struct elu_backward_careful : NoDoubts {
  static constexpr int unroll = 2;
  Quick form;
  float bound, lower;
  explicit elu_backward_careful(const Quick& quick)
      : form(quick),
        bound(float_of(quick.limit) * (152.0f / 64)),
        lower(float_of(quick.limit) * (Quick::kLower / 64)) {}

  template <class V>
  V quick(V g, V x) const {
    const auto large = (bits_of(g) & 0x7fffffff) >= bits_of(Quick::kLarge);
    const V least = large ? all_of<V>(lower) : all_of<V>(bound);
    const V less = large ? g * all_of<V>(Quick::kLess) : g;
    const V more = large ? all_of<V>(Quick::kMore) : V{};
    const auto below = x < least;
    return canonical(form.carefully(g, x, less, below, below ? least : x, more));
  }
};

// g (high + low) exp(…) 2^-32, where high + low = 2^32 scale alpha inputScale: nothing underflows
// that the result does not. If `unit`, scale, alpha and inputScale are 1.
template <bool unit>
struct elu_backward_single : elu_backward_quick {
  static constexpr int unroll = unit ? 4 : 2;
  float input_scale, high, low;

  // If `unit`, 2^-60 is added, which changes no result, so that a subnormal x is not multiplied
  // (formula.h).
  template <class V>
  Reduced<V> reduced(V x) const {
    return reduce(unit ? x + all_of<V>(0x1p-60f) : x * all_of<V>(input_scale));
  }

  // g (high + low) exp(r - c)
  template <class V>
  V mantissa(V g, V x, const Reduced<V>& t) const {
    const V rate = all_of<V>(input_scale), factor = all_of<V>(high);
    // exp(inputScale x) = 2^n exp(r - c) = 2^n (1 + r + q); c holds what the product and n ln2 lost
    const V n_low = t.n * all_of<V>(kLn2Low);
    const V minus_c = unit ? n_low : fused(t.n, all_of<V>(kLn2Low), fused(x, rate, -(x * rate)));
    const V tail = fused(t.r * t.r, exp_tail_single(t.r), minus_c);
    const V q = fused(minus_c, t.r + tail, tail);
    // k (1 + r) is main - rest: only the last sum rounds, and it keeps the sign of zero
    const V k = g * factor, one_r = all_of<V>(1) + t.r, main = k * one_r;
    const V rest = fused_minus(t.r, k, main - k);
    const V excess = fused_minus(g, all_of<V>(low), fused_minus(g, factor, k));  // k - g factor
    const V lost = unit ? rest : fused(excess, one_r, rest);
    return main - fused_minus(q, k, lost);
  }

  template <class V>
  V either(V g, V x, V y) const {
    return x > 0 ? (unit ? g : g * all_of<V>(scale)) : y;
  }
  template <class V>
  V quick(V g, V x) const {
    const Reduced<V> t = reduced(x);
    return either(g, x, mantissa(g, x, t) * float_of(t.power - (32u << 23)));
  }

  static constexpr float kLarge = 0x1p30f, kMore = 100, kLess = 0x1p-100f, kLower = 221.5f;
  static constexpr double kFactor = 0x1p38;  // kLarge kFactor e^-152 and 2^128 kFactor e^-221.5 are
                                             // below 2^-150
  // An infinite g makes the mantissa NaN. The result is then NaN for x = -infinity and x = NaN, and
  // an infinity with the sign of g alpha scale for other x.
  template <class V>
  V carefully(V g, V x, V less, auto below, V bounded, V more) const {
    const Reduced<V> t = reduced(bounded);
    const PowerInTwo<V> power(t.n + (more - all_of<V>(32)), -126);
    const V y = mantissa(less, bounded, t) * power.first * (below ? V{} : power.second);
    return either(g, x, y == y ? y : g * ((x - x) + all_of<V>(high)));
  }

  auto careful() const { return elu_backward_careful<elu_backward_single>(*this); }
};

// `rate` is |inputScale| log2(e), because its parts must be positive.
template <bool growing>
struct elu_backward_half : elu_backward_quick {
  RateF32 rate;
  float little;  // |2^-60 / inputScale|, which is added like that of elu_backward_single
  template <class V>
  V quick(V g, V x) const {
    const V more = all_of<V>(little);
    const Reduced<V> t = reduce_2(growing ? more - x : more + x, rate);
    const V e = exp2_half(t.r) * float_of(t.power);  // adding exponents would lose NaN
    return (x > 0 ? all_of<V>(scale) : e * all_of<V>(factor)) * g;
  }

  static constexpr float kLarge = 0x1p50f, kMore = 62, kLess = 0x1p-62f, kLower = 199;
  static constexpr double kFactor = 0x1p24;  // the same for 2^-134
  template <class V>
  V carefully(V g, V x, V less, auto /*below*/, V bounded, V more) const {
    const Reduced<V> t = reduce_2(bounded + all_of<V>(little), rate);
    const PowerInTwo<V> power(t.n + more, -100);
    const V e = exp2_half(t.r) * power.first;
    const V exists = x < all_of<V>(-0x1.fffffep127f) ? V{} : e;  // 0 times an infinite g is NaN
    const V y = exists * all_of<V>(factor) * less * power.second;
    return x > 0 ? all_of<V>(scale) * g : y;
  }

  auto careful() const { return elu_backward_careful<elu_backward_half>(*this); }
};

// Here the factor is below 2^-20. `high` is 2^64 times the factor, so that no part of the product
// is subnormal unless the result is. If inputScale is 0, the factor is 0, and the form gives the
// zeros and NaNs of FLOAT, too.
struct elu_backward_half_tiny : elu_backward_quick {
  RateF32 rate;
  float high;
  template <class V>
  V quick(V g, V x) const {
    const Reduced<V> t = reduce_2(x, rate);
    const V e = exp2_half(t.r) * float_of(t.power);
    const V y = ((g * all_of<V>(high)) * e) * all_of<V>(0x1p-64f);
    return x > 0 ? all_of<V>(scale) * g : y;
  }
};

// A form without its careful one, whose bounds do not hold for these attributes.
template <class Form>
struct without_careful : Form {
  void careful() const = delete;
};

// Here inputScale is below 0, so the result grows with |x|. `general` also computes |g| below
// 2^-90, except 0, where the mantissa loses digits that the power of two would show.
struct elu_backward_single_growing : without_careful<elu_backward_single<false>> {
  template <class V>
  auto unusual(V g, V x) const {
    const auto size = bits_of(g) & 0x7fffffff;
    const auto small = zero_unless(size - 1 < bits_of(0x1p-90f) - 1, bits_of(V{}) - 1);
    return larger(bits_of(x), small);
  }
};

template <class M>
struct elu_backward {
  using T = typename M::T;
  double alpha, scale, input_scale;
  bool is_result;
  explicit elu_backward(const double* attributes)
      : alpha(attributes[0]),
        scale(attributes[1]),
        input_scale(attributes[2]),
        is_result(attributes[3] != 0) {}

  template <class Loop>
  void visit(const Loop& loop) const {
    if constexpr (__is_same(M, Double)) {
      if (is_result) return loop(elu_backward_result_double(alpha, scale, input_scale));
      loop(elu_backward_double(alpha, scale, input_scale));
    } else {
      visit_float(loop);
    }
  }

  template <class Loop>
  void visit_float(const Loop& loop) const {
    constexpr bool to_half = __is_same(M, Half);
    if (is_result) return visit_elu_backward_result<to_half>(alpha, scale, input_scale, loop);
    const double factor = scale * alpha * input_scale;
    const auto positive = static_cast<float>(scale);
    const elu_backward_wide wide{{scale, input_scale, factor}};
    const elu_backward_quick quick{positive, static_cast<float>(factor), wide,
                                   bits_of(static_cast<float>(-64 / magnitude(input_scale)))};
    const double least = !to_half && input_scale < 0 ? 0x1p-20 : 0x1p-120;
    if (within(input_scale, 0x1p-60, 0x1p60) && within(factor, least, 0x1p60)) {
      if constexpr (to_half) {
        visit_half(quick, factor, loop);
      } else {
        visit_single(quick, factor, loop);
      }
    } else if (input_scale == 0 && factor == 0) {  // not NaN
      loop(elu_backward_half_tiny{quick, RateF32(0), static_cast<float>(factor)});
    } else {
      loop(wide);
    }
  }

  template <class Loop>
  void visit_half(const elu_backward_quick& quick, double factor, const Loop& loop) const {
    const RateF32 rate(magnitude(input_scale) * kLog2e);
    const auto little = static_cast<float>(0x1p-60 / magnitude(input_scale));
    const bool growing = input_scale < 0, small = within(factor, 0, 0x1p-20);
    using falling = elu_backward_half<false>;
    if (growing && small) {
      loop(quick.wide);
    } else if (growing) {
      loop(without_careful<elu_backward_half<true>>{{quick, rate, little}});
    } else if (small) {
      loop(elu_backward_half_tiny{quick, rate, static_cast<float>(factor * 0x1p64)});
    } else if (within(factor, 0, falling::kFactor)) {
      loop(falling{quick, rate, little});
    } else {
      loop(without_careful<falling>{{quick, rate, little}});
    }
  }

  template <class Loop>
  void visit_single(const elu_backward_quick& quick, double factor, const Loop& loop) const {
    using falling = elu_backward_single<false>;
    if (scale == 1 && alpha == 1 && input_scale == 1)
      return loop(elu_backward_single<true>{quick, 1, 0x1p32f, 0});
    const double shifted = factor * 0x1p32;
    const auto high = static_cast<float>(shifted);
    const falling form{quick, static_cast<float>(input_scale), high,
                       static_cast<float>(shifted - high)};
    if (input_scale < 0) {
      loop(elu_backward_single_growing{{form}});
    } else if (within(factor, 0x1p-20, falling::kFactor)) {
      loop(form);
    } else {
      loop(without_careful<falling>{form});
    }
  }
};

}  // namespace
}  // namespace openaclnn::OPENACLNN_ISA
