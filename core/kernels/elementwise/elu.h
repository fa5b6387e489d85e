// SPDX-License-Identifier: Apache-2.0
// elu(x) = x > 0 ? scale x : scale alpha expm1(inputScale x)
#pragma once

#include "core/kernels/elementwise/elu_double.h"
#include "core/kernels/elementwise/elu_wide.h"
#include "core/kernels/elementwise/formula.h"
#include "core/kernels/math.h"

namespace openaclnn::OPENACLNN_ISA {
namespace {

// Below -25, expm1 is within 2^-36 of -1, so every x whose bits, read as an unsigned word, are
// above those of -25 is replaced by -25. This includes NaNs with the sign bit set.
template <class V>
inline auto clamped_bits(V x) {
  return smaller(bits_of(x), bits_of(all_of<V>(-25.0f)));
}

// For alpha, scale and inputScale 1, in float. Two operations round: the sum r + r^2 p and the
// result; n ln2 loses n 2^-29, which is below 0.05 ulp of the result. The error is 0.908 ulp. The
// form main + rest + 2^n q below has 0.822 ulp, but takes five more products and a comparison: 0.28
// instead of 0.20 ns in the cache (AVX-512).
struct elu_unit {
  static constexpr bool finite = false;
  static constexpr uint32_t limit = 0xff800000;  // NaNs with the sign bit set are above

  static auto unusual(auto x) { return bits_of(x); }

  // This is x > 0 ? x : y. An x above -2^-60, whose result is x itself, is replaced by -2^-60, so
  // that y is always negative and no subnormal number is multiplied (formula.h). A positive x has
  // the smaller word of the two. If both are negative, the one nearer to 0 has it: x if x was
  // replaced, and otherwise y.
  template <class V>
  static V quick(V x) {
    const auto bits = larger(clamped_bits(x), bits_of(all_of<V>(-0x1p-60f)));
    const Reduced<V> t = reduce(float_of(bits));
    const V small = fused(t.r * t.r, exp_tail_single(t.r), t.r), power = float_of(t.power);
    const V y = fused(power, small, power - all_of<V>(1));
    return float_of(smaller(bits_of(x), bits_of(y)));
  }

  // `quick` is right for infinities too; only the sum of results makes them look doubtful.
  struct Careful : NoDoubts {
    static constexpr bool cheap = true;
    template <class V>
    static V quick(V x) {
      return x == x ? elu_unit::quick(x) : all_of<V>(__builtin_nanf(""));
    }
  };
  static Careful careful() { return {}; }
};

// For inputScale 1, in float. 2^n (1 + r + q) - 1 is main + rest + 2^n q, and only the last sums
// round; scale alpha is high + low. With four registers together, some of them and of the constants
// are spilled to the stack again and again: 64 Mi past the cache took 14.2 ms instead of 10.1
// (AVX-512, 2 threads, measured when alpha and scale 1 used this form too).
struct elu_single {
  static constexpr bool one_nan = true;
  static constexpr int together = 2;
  float scale, high, low;
  template <class V>
  V operator()(V x) const {
    const Reduced<V> t = reduce(float_of(clamped_bits(x)));
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

// For results of 16 bits, in float. Below -25 / inputScale the result is -scale alpha (1 - 2^-36).
// Above `linear` it is scale x: above 0, or, if the slope is the same on both sides of 0, above
// -2^-60 / inputScale. Then a subnormal x is multiplied only once (formula.h). `steep` is for a
// large scale alpha, which would show the digits that a subnormal expm1 has lost: there `linear` is
// -2^-60 / inputScale too, and from it to 0 the result is slope x. That takes 1.1 times as long.
template <bool steep>
struct elu_half {
  float scale, factor, slope, bound, linear;
  RateF32 rate;
  elu_half(double scale, double factor, double input_scale)
      : scale(static_cast<float>(scale)),
        factor(static_cast<float>(factor)),
        slope(static_cast<float>(factor * input_scale)),
        bound(static_cast<float>(-25 / input_scale)),
        linear(steep || slope == this->scale ? static_cast<float>(-0x1p-60 / input_scale) : 0),
        rate(input_scale * kLog2e) {}

  template <class V>
  V operator()(V x) const {
    const V least = all_of<V>(bound), most = all_of<V>(linear);
    const auto above = x > most;
    const V below = above ? most : x;
    const Reduced<V> t = reduce_2(below < least ? least : below, rate);
    const V power = float_of(t.power);
    const V y = fused(power, exp2m1_half(t.r), -(all_of<V>(1) - power)) * all_of<V>(factor);
    const V side = steep ? (x > 0 ? all_of<V>(scale) : all_of<V>(slope)) : all_of<V>(scale);
    return above ? side * x : y;
  }
};

// Here inputScale is 0, and so is expm1(inputScale x), unless x is infinite or NaN.
struct elu_flat {
  float scale;
  uint32_t sign;  // of scale alpha inputScale
  template <class V>
  V operator()(V x) const {
    const auto negative = (bits_of(x) ^ sign) & 0x80000000;
    return x > 0 ? all_of<V>(scale) * x : float_of(bits_of(x - x) | negative);
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
      visit_elu_double(alpha, scale, input_scale, loop);
    } else if (input_scale == 0 && magnitude(factor) < __builtin_inf()) {
      loop(elu_flat{static_cast<float>(scale), bits_of(static_cast<float>(factor * input_scale))});
    } else if (__is_same(M, Half) && input_scale > 0 && within(input_scale, 0x1p-60, 0x1p60) &&
               within(factor, 0x1p-60, 0x1p60)) {
      if (magnitude(factor) > 0x1p5) return loop(elu_half<true>(scale, factor, input_scale));
      loop(elu_half<false>(scale, factor, input_scale));
    } else if (__is_same(M, Single) && input_scale == 1 && factor >= 0x1p-60 && factor <= 0x1p60) {
      const auto positive = static_cast<float>(scale), high = static_cast<float>(factor);
      if (scale == 1 && alpha == 1) return loop(elu_unit{});
      loop(elu_single{positive, high, static_cast<float>(factor - high)});
    } else if (has_bound(input_scale) && factor != 0) {
      loop(elu_wide{{scale, input_scale, factor}});
    } else {
      loop(elu_rare{{scale, input_scale, factor}});
    }
  }
};

}  // namespace
}  // namespace openaclnn::OPENACLNN_ISA
