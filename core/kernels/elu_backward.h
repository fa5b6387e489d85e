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

// g (v > 0 ? scale : inputScale (v + alpha scale)) in double: v + alpha scale is exact where it
// cancels
struct elu_backward_result {
  float scale;
  double input_scale, shift;
  float operator()(float g, float v) const {
    const double y = g * input_scale * (v + shift);
    return v > 0 ? g * scale : static_cast<float>(y);
  }
};

// For results of 16 bits, where no product but the last can leave the range: inputScale is at
// most 1. alpha scale is high + low, and v + high is exact where it cancels.
struct elu_backward_result_half {
  float scale, input_scale, high, low;
  float operator()(float g, float v) const {
    return (v > 0 ? scale : ((v + high) + low) * input_scale) * g;
  }
};

// In float, wherever exp(inputScale x) is above e^-64 and the result is finite.
struct elu_backward_quick {
  static constexpr bool finite = false;
  float scale;
  elu_backward_wide wide;
  uint32_t limit;  // the bits of -64 / inputScale; those of smaller numbers are larger, those of
                   // positive ones smaller

  template <class V>
  auto unusual(V, V x) const {
    return bits_of(x);
  }
  float general(float g, float x) const { return wide(g, x); }
};

// g (high + low) exp(…) 2^-32, where high + low = 2^32 scale alpha inputScale: nothing underflows
// that the result does not. If `unit`, scale, alpha and inputScale are 1.
template <bool unit>
struct elu_backward_single : elu_backward_quick {
  static constexpr int together = unit ? 4 : 2;
  float input_scale, high, low;
  template <class V>
  V quick(V g, V x) const {
    const V rate = all_of<V>(input_scale), factor = all_of<V>(high);
    const ReducedF32<V> t = reduce(unit ? x : x * rate);
    // exp(inputScale x) = 2^n exp(r - c) = 2^n (1 + r + q); c holds what the product and n ln2 lost
    const V n_low = t.n * all_of<V>(kLn2Low);
    const V minus_c = unit ? n_low : fused(t.n, all_of<V>(kLn2Low), fused(x, rate, -(x * rate)));
    const V tail = fused(t.r * t.r, exp_tail_single(t.r), minus_c);
    const V q = fused(minus_c, t.r + tail, tail);
    // k (1 + r) is main - rest: the last sum alone rounds, and keeps the sign of zero
    const V k = g * factor, one_r = all_of<V>(1) + t.r, main = k * one_r;
    const V rest = fused_minus(t.r, k, main - k);
    const V excess = fused_minus(g, all_of<V>(low), fused_minus(g, factor, k));  // k - g factor
    const V lost = unit ? rest : fused(excess, one_r, rest);
    const V y = (main - fused_minus(q, k, lost)) * float_of(t.power - (32u << 23));
    return x > 0 ? (unit ? g : g * all_of<V>(scale)) : y;
  }
};

struct elu_backward_half : elu_backward_quick {
  float factor;
  RateF32 rate;
  template <class V>
  V quick(V g, V x) const {
    const Reduced2F32<V> t = reduce_2(x, rate);
    const V e = exp2_half(t.f) * float_of(t.power);  // adding exponents would lose NaN
    return (x > 0 ? all_of<V>(scale) : e * all_of<V>(factor)) * g;
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
    const double factor = scale * alpha * input_scale;
    const auto positive = static_cast<float>(scale);
    const elu_backward_wide wide(alpha, scale, input_scale);
    if (is_result) {
      const double shift = scale * alpha;
      if constexpr (__is_same(M, Half)) {
        if (within(shift, 0x1p-20, 0x1p20) && within(input_scale, 0x1p-20, 1)) {
          const auto high = static_cast<float>(shift), low = static_cast<float>(shift - high);
          return loop(
              elu_backward_result_half{positive, static_cast<float>(input_scale), high, low});
        }
      }
      loop(elu_backward_result{positive, input_scale, shift});
    } else if (input_scale > 0 && within(input_scale, 0x1p-60, 0x1p60) &&
               within(factor, 0x1p-20, 0x1p60)) {
      const elu_backward_quick quick{positive, wide,
                                     bits_of(static_cast<float>(-64 / input_scale))};
      if constexpr (__is_same(M, Half)) {
        loop(elu_backward_half{quick, static_cast<float>(factor), RateF32(input_scale * kLog2e)});
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
