// SPDX-License-Identifier: Apache-2.0
// The gradient of elu from its input, g (x > 0 ? scale : inputScale alpha scale exp(inputScale x)),
// or from its result.
#pragma once

#include "core/kernels/elu_wide.h"
#include "core/kernels/exact_double.h"
#include "core/kernels/formula.h"
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

// For results of 16 bits. No product but the last can leave the range, because inputScale is at
// most 1. alpha scale is high + low, and v + high is exact where it cancels.
struct elu_backward_result_half {
  float scale, input_scale, high, low;
  float operator()(float g, float v) const {
    return (v > 0 ? scale : ((v + high) + low) * input_scale) * g;
  }
};

// In float. v + alpha scale is sum + rest, where the rounding error of the sum is exact (Knuth),
// and both products keep what they lose, so that only the last sum rounds. If `unit`, inputScale is
// 1. Otherwise `general` computes |g| below 2^-50, except 0, because there g inputScale loses more
// than its remainder can hold.
template <bool unit>
struct elu_backward_result_single {
  static constexpr bool finite = false;
  static constexpr uint32_t limit = unit ? 0 : 0u - 0x26800000;  // the bits of 2^-50
  elu_backward_result wide;
  float rate, rate_low, high, low;  // inputScale and alpha scale in two parts

  template <class V>
  auto unusual(V g, V) const {
    return unit ? bits_of(g) & 0u : 0u - (bits_of(g) & 0x7fffffff);
  }
  template <class V>
  struct Terms {
    V product, y;
  };
  template <class V>
  Terms<V> terms(V g, V v) const {
    const V shift = all_of<V>(high), factor = all_of<V>(rate);
    const V sum = v + shift, part = sum - v;
    const V rest = ((v - (sum - part)) + (shift - part)) + all_of<V>(low);
    const V k = unit ? g : g * factor, product = k * sum;
    // By how much the product is too large; +0 where that is 0, so that a difference keeps its
    // sign.
    const V excess = fused_minus(k, sum, product) - k * rest;
    const V k_lost = fused(g, all_of<V>(rate_low), fused(g, factor, -k));
    const V y = product - (unit ? excess : fused_minus(k_lost, sum, excess));
    return {product, y};
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
    static constexpr uint32_t limit = elu_backward_result_single::limit;
    elu_backward_result_single form;

    template <class V>
    auto unusual(V g, V v) const {
      const V y = form.quick(g, v);
      const auto overflow = zero_unless((g - g) + (v - v) == 0, bits_of(y - y));
      return larger(form.unusual(g, v), overflow << 1);
    }
    template <class V>
    V quick(V g, V v) const {
      const Terms<V> t = form.terms(g, v);
      return with_one_nan(form.either(g, v, t.y == t.y ? t.y : t.product));
    }
    float general(float g, float v) const { return form.general(g, v); }
  };
  Careful careful() const { return {*this}; }
};

// In float, for every x with exp(inputScale x) above e^-64 and a finite result.
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
// bound is lower. The largest factor of exp that both bounds allow is kFactor.
template <class Quick>
struct elu_backward_careful : NoDoubts {
  static constexpr int together = 2;
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
    return with_one_nan(form.carefully(g, x, less, x < least ? least : x, more));
  }
  float general(float g, float x) const { return form.general(g, x); }
};

// g (high + low) exp(…) 2^-32, where high + low = 2^32 scale alpha inputScale: nothing underflows
// that the result does not. If `unit`, scale, alpha and inputScale are 1.
template <bool unit>
struct elu_backward_single : elu_backward_quick {
  static constexpr int together = unit ? 4 : 2;
  float input_scale, high, low;

  template <class V>
  ReducedF32<V> reduced(V x) const {
    return reduce(unit ? x : x * all_of<V>(input_scale));
  }

  // g (high + low) exp(r - c)
  template <class V>
  V mantissa(V g, V x, const ReducedF32<V>& t) const {
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
    const ReducedF32<V> t = reduced(x);
    return either(g, x, mantissa(g, x, t) * float_of(t.power - (32u << 23)));
  }

  static constexpr float kLarge = 0x1p30f, kMore = 100, kLess = 0x1p-100f, kLower = 221.5f;
  static constexpr double kFactor = 0x1p38;  // kLarge kFactor e^-152 and 2^128 kFactor e^-221.5 are
                                             // below 2^-150
  // An infinite g makes the mantissa NaN. The result is then NaN for x = -infinity and x = NaN, and
  // an infinity with the sign of g alpha scale for other x.
  template <class V>
  V carefully(V g, V x, V less, V bounded, V more) const {
    const ReducedF32<V> t = reduced(bounded);
    const PowerInTwo<V> power(t.n + (more - all_of<V>(32)), -126);
    const V y = mantissa(less, bounded, t) * power.first * power.second;
    return either(g, x, y == y ? y : g * ((x - x) + all_of<V>(high)));
  }

  auto careful() const { return elu_backward_careful<elu_backward_single>(*this); }
};

struct elu_backward_half : elu_backward_quick {
  RateF32 rate;
  template <class V>
  V quick(V g, V x) const {
    const Reduced2F32<V> t = reduce_2(x, rate);
    const V e = exp2_half(t.f) * float_of(t.power);  // adding exponents would lose NaN
    return (x > 0 ? all_of<V>(scale) : e * all_of<V>(factor)) * g;
  }

  static constexpr float kLarge = 0x1p50f, kMore = 62, kLess = 0x1p-62f, kLower = 199;
  static constexpr double kFactor = 0x1p24;  // the same for 2^-134
  template <class V>
  V carefully(V g, V x, V less, V bounded, V more) const {
    const Reduced2F32<V> t = reduce_2(bounded, rate);
    const PowerInTwo<V> power(t.n + more, -100);
    const V e = exp2_half(t.f) * power.first;
    const V exists = x < all_of<V>(-0x1.fffffep127f) ? V{} : e;  // 0 times an infinite g is NaN
    const V y = exists * all_of<V>(factor) * less * power.second;
    return x > 0 ? all_of<V>(scale) * g : y;
  }

  auto careful() const { return elu_backward_careful<elu_backward_half>(*this); }
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
    const double factor = scale * alpha * input_scale;
    const auto positive = static_cast<float>(scale);
    const elu_backward_wide wide(alpha, scale, input_scale);
    constexpr double kMost =
        __is_same(M, Half) ? elu_backward_half::kFactor : elu_backward_single<false>::kFactor;
    if (is_result) {
      const double shift = scale * alpha;
      if constexpr (__is_same(M, Half)) {
        if (within(shift, 0x1p-20, 0x1p20) && within(input_scale, 0x1p-20, 1)) {
          const auto high = static_cast<float>(shift), low = static_cast<float>(shift - high);
          return loop(
              elu_backward_result_half{positive, static_cast<float>(input_scale), high, low});
        }
      }
      const elu_backward_result general{positive, input_scale, shift};
      if constexpr (__is_same(M, Single)) {
        const auto high = static_cast<float>(shift), low = static_cast<float>(shift - high);
        const auto rate = static_cast<float>(input_scale);
        const bool usual = within(shift, 0x1p-20, 0x1p20) && within(input_scale, 0x1p-20, 0x1p20);
        if (usual && input_scale == 1)
          return loop(elu_backward_result_single<true>{general, 1, 0, high, low});
        const auto rate_low = static_cast<float>(input_scale - rate);
        if (usual)
          return loop(elu_backward_result_single<false>{general, rate, rate_low, high, low});
      }
      loop(general);
    } else if (input_scale > 0 && within(input_scale, 0x1p-60, 0x1p60) &&
               within(factor, 0x1p-20, kMost)) {
      const elu_backward_quick quick{positive, static_cast<float>(factor), wide,
                                     bits_of(static_cast<float>(-64 / input_scale))};
      if constexpr (__is_same(M, Half)) {
        loop(elu_backward_half{quick, RateF32(input_scale * kLog2e)});
      } else {
        if (scale == 1 && alpha == 1 && input_scale == 1)
          return loop(elu_backward_single<true>{quick, 1, 0x1p32f, 0});
        const double shifted = factor * 0x1p32;
        const auto high = static_cast<float>(shifted);
        loop(elu_backward_single<false>{quick, static_cast<float>(input_scale), high,
                                        static_cast<float>(shifted - high)});
      }
    } else if (has_bound(input_scale)) {
      loop(wide);
    } else {
      loop(elu_backward_rare(alpha, scale, input_scale));
    }
  }
};

}  // namespace
}  // namespace openaclnn::OPENACLNN_ISA
