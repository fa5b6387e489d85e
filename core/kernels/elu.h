// SPDX-License-Identifier: Apache-2.0
// elu(x) = x > 0 ? scale x : scale alpha expm1(inputScale x), and its gradient from the input or
// from the result.
#pragma once

#include "core/kernels/exact_double.h"
#include "core/kernels/formula.h"
#include "core/kernels/math.h"

namespace openaclnn::OPENACLNN_ISA {
namespace {

inline bool within(double x, double least, double most) {
  return magnitude(x) >= least && magnitude(x) <= most;
}

inline constexpr float kLowest = -0x1.fffffep127f;

// The x <= 0 at which x rate is ±limit, or the lowest number; none for a rate of 0, which makes NaN
// of -inf.
inline float bound_of(double limit, double rate) {
  const double bound = -limit / magnitude(rate);
  return rate != 0 && bound < kLowest ? kLowest : static_cast<float>(bound);
}

// In double no product of these attributes leaves the range, nothing cancels, and float inputs are
// exact. At 2^±1022 the result in float is what it is beyond.
struct elu_wide {
  float scale, bound;
  double rate, factor;
  elu_wide(double alpha, double scale, double input_scale)
      : scale(static_cast<float>(scale)),
        bound(bound_of(1022, input_scale * kLog2e)),
        rate(input_scale * kLog2e),
        factor(scale * alpha) {}
  float operator()(float x) const {
    const Power power = power_of_2((x < bound ? bound : x) * rate);
    const double y = (power.scale * power.fraction - (1 - power.scale)) *
                     factor;  // 0 - (1 - 1) keeps the sign of x = -0
    return x > 0 ? scale * x : static_cast<float>(y);
  }
};

// exp(x) = 2^n (1 + r + r^2 p) for x in float. Below -25 expm1 is -1 + 2^-36: where the words of x,
// as unsigned ones, are above those of -25, -25 is taken. A NaN of sign 1 is among them.
template <class V>
inline ReducedF32<V> reduce_not_above_0(V x) {
  return reduce(float_of(smaller(bits_of(x), bits_of(all_of<V>(-25.0f)))));
}

// alpha, scale and inputScale 1: float. The sum r + r^2 p rounds, and the result; n ln2 loses n
// 2^-29, which is below 0.05 ulp of it. 0.908 ulp, where main + rest + 2^n q below has 0.822 but
// five products more and a comparison: 0.28 -> 0.20 ns in the cache (AVX-512).
struct elu_unit {
  static constexpr bool finite = false;
  static constexpr uint32_t limit = 0xff800000;  // above are NaNs of sign 1

  static auto unusual(auto x) { return bits_of(x); }
  static float general(float x) { return x; }  // NaN, infinity, or `quick` is right

  // x > 0 ? x : y, of which y, where it is not x, is nearer to 0; 0 - (1 - 1) lost the sign of x.
  template <class V>
  static V quick(V x) {
    const ReducedF32<V> t = reduce_not_above_0(x);
    const V small = fused(t.r * t.r, exp_tail_single(t.r), t.r), power = float_of(t.power);
    const V y = fused(power, small, power - all_of<V>(1));
    return float_of(smaller(bits_of(x), bits_of(y) | 0x80000000));
  }
};

// inputScale 1: float. 2^n (1 + r + q) - 1 is main + rest + 2^n q, of which the last sums alone
// round; scale alpha is high + low. Of four registers together and all constants some go to the
// stack again and again: 64 Mi past the cache, AVX-512, 2 threads, 14.2 ms instead of 10.1 when it
// was measured, with alpha and scale 1 in this form too.
struct elu_single {
  static constexpr bool one_nan = true;
  static constexpr int together = 2;
  float scale, high, low;
  template <class V>
  V operator()(V x) const {
    const ReducedF32<V> t = reduce_not_above_0(x);
    const V q = fused(t.r * t.r, expm1_tail_single(t.r), t.n * all_of<V>(kLn2Low));
    const V power = float_of(t.power), whole = power - all_of<V>(1);
    const V main = fused(power, t.r, whole), rest = fused(power, t.r, whole - main);
    const V small = fused(power, q, rest);
    const V factor = all_of<V>(high), k = main * factor;
    const V lost = fused(main, all_of<V>(low), fused(main, factor, -k));
    const V y = copy_sign(k + fused(small, factor, lost), x);
    const V result = x > 0 ? all_of<V>(scale) * x : y;
    return x == x ? result : all_of<V>(__builtin_nanf(""));
  }
};

// For results of 16 bits: float. Below -25 / inputScale the result is -scale alpha (1 - 2^-36).
struct elu_half {
  float scale, factor, bound;
  RateF32 rate;
  template <class V>
  V operator()(V x) const {
    const V least = all_of<V>(bound);
    const Reduced2F32<V> t = reduce_2(x < least ? least : x, rate);
    const V power = float_of(t.power);
    const V y = fused(power, exp2m1_half(t.f), -(all_of<V>(1) - power)) * all_of<V>(factor);
    return x > 0 ? all_of<V>(scale) * x : y;
  }
};

// DOUBLE: at most 1 ulp whatever the attributes. Mantissas are multiplied as high + low, exponents
// added, so that only the result can leave the range; below 2^-100 expm1(t) is t.
struct elu_double {
  double scale, input_scale;
  double high, low, small_high, small_low;  // scale alpha and scale alpha inputScale, without …
  double exponent, small_exponent;          // … their exponents

  elu_double(double alpha, double scale, double input_scale)
      : scale(scale), input_scale(input_scale) {
    int e[3];
    const double s = __builtin_frexp(scale, &e[0]), a = __builtin_frexp(alpha, &e[1]),
                 i = __builtin_frexp(input_scale, &e[2]);
    high = s * a, low = fused(s, a, -high);
    small_high = high * i, small_low = fused(high, i, -small_high) + low * i;
    exponent = e[0] + e[1], small_exponent = exponent + e[2];
  }

  double operator()(double x) const {
    const double product = x * input_scale;
    const double t = product > 4000 ? 4000 : product < -60 ? -60 : product;
    const ExpF64 e = exp_exact(t, t == product ? fused(x, input_scale, -product) : 0);
    const double kept =
        e.n < 60 ? e.n : 60;  // above it 1 does not count, and the rest of 2^n waits
    const double power = power_of_2_exact(kept), one = e.n < 60 ? 1 : 0;
    const double whole = power - one, part = power * e.r;
    const double sum = whole + part;
    const double rest = (part - (sum - whole)) + (power - (whole + one)) + power * e.q;

    const bool small = magnitude(product) < 0x1p-100, tiny = magnitude(x) < 0x1p-500;
    const double a = small ? (tiny ? x * 0x1p600 : x) : sum, a_low = small ? 0 : rest;
    const double b = small ? small_high : high, b_low = small ? small_low : low;
    double shift = small ? (tiny ? small_exponent - 600 : small_exponent) : exponent + (e.n - kept);
    shift = shift > 3000 ? 3000 : shift;

    const double y = a * b;
    const double lost = fused(-a_low, b, fused(-a, b_low, fused(-a, b, y)));
    const double third = (shift * (1.0 / 3) + kShiftF64) - kShiftF64;
    const double step = power_of_2_exact(third);
    return x > 0 ? scale * x : (y - lost) * step * step * power_of_2_exact(shift - 2 * third);
  }
};

template <class M>
struct elu {
  using T = typename M::T;
  double alpha, scale, input_scale;
  explicit elu(const double* attributes)
      : alpha(attributes[0]), scale(attributes[1]), input_scale(attributes[2]) {}

  template <class Loop>
  void visit(const Loop& loop) const {
    const double factor = scale * alpha;
    if constexpr (__is_same(M, Double)) {
      loop(elu_double(alpha, scale, input_scale));
    } else if (__is_same(M, Half) && input_scale > 0 && within(input_scale, 0x1p-60, 0x1p60) &&
               within(factor, 0x1p-60, 0x1p6)) {
      const RateF32 rate(input_scale * kLog2e);
      loop(elu_half{static_cast<float>(scale), static_cast<float>(factor),
                    bound_of(25, input_scale), rate});
    } else if (__is_same(M, Single) && input_scale == 1 && factor >= 0x1p-60 && factor <= 0x1p60) {
      const auto positive = static_cast<float>(scale), high = static_cast<float>(factor);
      if (scale == 1 && alpha == 1) return loop(elu_unit{});
      loop(elu_single{positive, high, static_cast<float>(factor - high)});
    } else {
      loop(elu_wide(alpha, scale, input_scale));
    }
  }
};

// g (x > 0 ? scale : inputScale alpha scale exp(inputScale x)) in double
struct elu_backward_wide {
  float scale, bound;
  double rate, factor, at_infinity;
  elu_backward_wide(double alpha, double scale, double input_scale)
      : scale(static_cast<float>(scale)),
        bound(bound_of(1022, input_scale * kLog2e)),
        rate(input_scale * kLog2e),
        factor(scale * alpha * input_scale),
        at_infinity(input_scale > 0   ? 0.0
                    : input_scale < 0 ? __builtin_inf()
                                      : __builtin_nan("")) {}
  float operator()(float g, float x) const {
    const Power power = power_of_2((x < bound ? bound : x) * rate);
    const double e = power.scale + power.scale * power.fraction;
    const double y = g * factor * (x < kLowest ? at_infinity : e);
    return x > 0 ? g * scale : static_cast<float>(y);
  }
};

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
    const V k = g * factor, main = k * (all_of<V>(1) + t.r);
    const V rest = fused_minus(t.r, k, main - k);
    const V lost = unit ? rest : rest + fused_minus(g, all_of<V>(low), fused_minus(g, factor, k));
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
      const elu_backward_quick quick{positive, wide, bits_of(bound_of(64, input_scale))};
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
    } else {
      loop(wide);
    }
  }
};

}  // namespace
}  // namespace openaclnn::OPENACLNN_ISA
