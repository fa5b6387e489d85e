// SPDX-License-Identifier: Apache-2.0
// The gradient of elu from its input, g (x > 0 ? scale : inputScale alpha scale exp(inputScale x)),
// or from its result v, g (v > 0 ? scale : inputScale (v + alpha scale)).
#pragma once

#include "core/kernels/elementwise/formula.h"
#include "core/kernels/math.h"

namespace openaclnn::OPENACLNN_ISA {
namespace {

struct elu_backward_exact {
  double scale, factor, rate;
  explicit elu_backward_exact(const double* attributes)
      : scale(attributes[1]),
        factor(attributes[1] * attributes[0] * attributes[2]),
        rate(attributes[2]) {}

  // The exponential of a number is neither 0 nor infinite.
  double exact(double g, double x) const {
    const Clamped within = clamped(x * rate, -1400, 1400);
    const Exponential e = exponential(within.value);
    const double number = within.beyond == -__builtin_inf() ? 0 : 1 + e.m;
    const double power = number + (within.beyond > 0 ? within.beyond : 0);
    const double y = g * factor * power * e.first * e.second;
    return x > 0 ? g * scale : y;
  }
};

// Below, `fast` may be wrong. Where the exponential is greater than 1, it must not undo the 2^-32
// by which 2^32 g is kept from underflow.
inline float bound_of(double rate) {
  return static_cast<float>((rate < 0 ? -20 : -64) / magnitude(rate));
}

// Changes no exponential, but without it subnormal x were multiplied.
inline float little_of(double rate) {
  return rate == 0 ? 0 : static_cast<float>(0x1p-60 / magnitude(rate));
}

// With exp(inputScale x) = 2^n exp(r + c), where c is what the product and n ln2 have lost,
// exp(r + c) = one_r + q and k = 2^32 g scale alpha inputScale, this computes
// 2^(n - 32) (k one_r + …): only the last sum rounds, it keeps the sign of a zero, and nothing
// underflows that the result does not. If `unit`, all attributes are 1.
template <bool unit>
struct elu_backward_single : elu_backward_exact {
  static constexpr int unroll = unit ? 4 : 2;
  float bound, little, high, low;  // 2^32 scale alpha inputScale = high + low
  explicit elu_backward_single(const elu_backward_exact& e)
      : elu_backward_exact(e),
        bound(bound_of(rate)),
        little(little_of(rate)),
        high(static_cast<float>(0x1p32 * factor)),
        low(static_cast<float>(0x1p32 * factor - high)) {}

  Lanes needs_exact(FloatRegister, FloatRegister x) const { return below(x, bound); }
  template <class V>
  V fast(V g, V given) const {
    const V x = given + all_of<V>(little), scales = all_of<V>(rate), p = unit ? x : x * scales;
    const Reduced<V> t = reduce(p);
    const V n_low = t.n * all_of<V>(kLn2Low);
    const V minus_c = unit ? n_low : fused(t.n, all_of<V>(kLn2Low), fused(x, scales, -p));
    const V tail = fused(t.r * t.r, exp_tail_single(t.r), minus_c);
    const V q = fused(minus_c, t.r + tail, tail);
    const V k = g * all_of<V>(high), one_r = all_of<V>(1) + t.r, main = k * one_r;
    const V rest = fused_minus(t.r, k, main - k);  // main - k one_r
    const V excess = fused_minus(g, all_of<V>(low), fused_minus(g, all_of<V>(high), k));
    const V lost = unit ? rest : fused(excess, one_r, rest);
    const V y = (main - fused_minus(q, k, lost)) * float_of(t.power - (32u << 23));
    return given > 0 ? (unit ? g : g * all_of<V>(scale)) : y;
  }
};

// For results of 16 bits.
struct elu_backward_half : elu_backward_exact {
  float bound, little, sign;
  RateF32 rate_2;
  explicit elu_backward_half(const elu_backward_exact& e)
      : elu_backward_exact(e),
        bound(bound_of(rate)),
        little(little_of(rate)),
        sign(rate < 0 ? -1 : 1),
        rate_2(magnitude(rate) * kLog2e) {}

  Lanes needs_exact(FloatRegister, FloatRegister x) const { return below(x, bound); }
  template <class V>
  V fast(V g, V x) const {
    const Reduced<V> t = reduce_2(fused(x, all_of<V>(sign), all_of<V>(little)), rate_2);
    const V e = exp2_half(t.r) * float_of(t.power);  // adding exponents would lose NaN
    return (x > 0 ? all_of<V>(scale) : e * all_of<V>(factor)) * g;
  }
};

struct elu_backward_result_exact {
  double scale, rate, shift, shift_low;  // alpha scale; with FLOAT attributes the second is 0
  explicit elu_backward_result_exact(const double* attributes)
      : scale(attributes[1]), rate(attributes[2]), shift(attributes[0] * attributes[1]) {
    const double lost = fused(attributes[0], attributes[1], -shift);
    shift_low = magnitude(lost) > 0 && magnitude(shift) < __builtin_inf() ? lost : -0.0;
  }

  double exact(double g, double v) const {  // v and shift may cancel: that is exact
    const double y = g * rate * ((v + shift) + shift_low);
    return v > 0 ? g * scale : y;
  }
};

// Results of elu are -alpha scale or more. `sum` is v + high, and its rounding error is exact for
// |v| <= high, as is that of the product p; low is what `high` lacks of alpha scale. Where v and
// high cancel, low may be as large as the sum. If `unit`, inputScale is 1.
template <bool unit>
struct elu_backward_result_single : elu_backward_result_exact {
  float high, low, little, least;
  explicit elu_backward_result_single(const elu_backward_result_exact& e)
      : elu_backward_result_exact(e),
        high(static_cast<float>(shift)),
        low(static_cast<float>(shift - high)),
        little(high * 0x1p-60f),  // changes no result: without it subnormal v were multiplied
        least(low == 0 ? 0 : high * 0x1p-16f) {}

  Lanes needs_exact(FloatRegister, FloatRegister v) const { return below(v, least - high); }
  template <class V>
  V fast(V g, V given) const {
    const V v = given + all_of<V>(little), sum = v + all_of<V>(high), k = all_of<V>(rate);
    const V lost = (v - (sum - all_of<V>(high))) + all_of<V>(low);
    const V p = unit ? sum : sum * k;
    const V p_low = unit ? lost : fused(lost, k, fused(sum, k, -p));
    const V y = fused(g, p, -fused_minus(g, p_low, V{}));  // with the sign of a zero
    return given > 0 ? g * all_of<V>(scale) : y;
  }
};

// For results of 16 bits.
struct elu_backward_result_half : elu_backward_result_exact {
  float high, low;
  explicit elu_backward_result_half(const elu_backward_result_exact& e)
      : elu_backward_result_exact(e),
        high(static_cast<float>(shift)),
        low(static_cast<float>(shift - high)) {}
  template <class V>
  V fast(V g, V v) const {
    const V sum = (v + all_of<V>(high)) + all_of<V>(low);
    return (v > 0 ? all_of<V>(scale) : sum * all_of<V>(rate)) * g;
  }
};

struct elu_backward {
  // Of either sign, or 0.
  static bool signed_usual(double x, double least) { return x == 0 || usual(magnitude(x), least); }

  template <class M>
  static void choose(const double* attributes, const auto& use) {
    constexpr bool half = __is_same(M, Half), single = __is_same(M, Single);
    if (attributes[3] != 0) {
      const elu_backward_result_exact e(attributes);
      const bool fast = signed_usual(e.rate, 0x1p-20) && usual(e.shift, 0x1p-20);
      if constexpr (half) {
        if (fast) return use(elu_backward_result_half(e));
      } else if constexpr (single) {
        if (fast && e.rate == 1) return use(elu_backward_result_single<true>(e));
        if (fast) return use(elu_backward_result_single<false>(e));
      }
      return use(e);
    }
    const elu_backward_exact e(attributes);
    const bool fast =
        signed_usual(e.rate, 0x1p-60) && signed_usual(e.factor, half ? 0x1p-32 : 0x1p-60);
    if constexpr (half) {
      if (fast) return use(elu_backward_half(e));
    } else if constexpr (single) {
      if (e.rate == 1 && e.scale == 1 && e.factor == 1) return use(elu_backward_single<true>(e));
      if (fast) return use(elu_backward_single<false>(e));
    }
    use(e);
  }
};

}  // namespace
}  // namespace openaclnn::OPENACLNN_ISA
