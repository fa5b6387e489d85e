// SPDX-License-Identifier: Apache-2.0
// elu(x) = x > 0 ? scale x : scale alpha expm1(inputScale x)
#pragma once

#include "core/kernels/elementwise/elu_double.h"
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

// This form is for alpha, scale and inputScale 1, in float. With x = n ln2 + r and p(r) of math.h,
// it computes 2^n (r + r^2 p) + (2^n - 1). Two operations round: the sum r + r^2 p and the result.
// n ln2 loses n 2^-29, which is below 0.05 ulp of the result. The error is 0.908 ulp. The form of
// elu_single has 0.82 ulp, but takes twice as long: 0.40 instead of 0.20 ns in the cache (AVX-512).
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

// These parts are for a positive scale alpha, in float: high + low. With inputScale x = n ln2 + r
// (math.h) and exp(r) = 1 + r + q, expm1 is 2^n (1 + r + q) - 1. This is sum + rest, and its
// product with high + low is rounded once. Without `rest` the error reached 1.06 ulp.
struct elu_parts {
  float scale, high, low;
  elu_parts(double scale, double factor)
      : scale(static_cast<float>(scale)),
        high(static_cast<float>(factor)),
        low(static_cast<float>(factor - high)) {}

  template <class V>
  V result(V x, const Reduced<V>& t, V q) const {
    const V power = float_of(t.power), whole = power - all_of<V>(1);
    const V main = fused(power, t.r, whole);
    const V small = fused(power, q, fused(power, t.r, whole - main));
    const V sum = main + small, rest = small - (sum - main);
    const V factor = all_of<V>(high), k = sum * factor;
    const V lost = fused(sum, all_of<V>(low), fused(sum, factor, -k));
    const V y = copy_sign(k + fused(rest, factor, lost), x);
    const V chosen = x > 0 ? all_of<V>(scale) * x : y;
    return x == x ? chosen : all_of<V>(__builtin_nanf(""));
  }
};

// This form is for inputScale 1. With four registers together, some of them and of the constants
// are spilled to the stack again and again, which takes 1.4 times as long (64 Mi, 2 threads).
struct elu_single : elu_parts {
  static constexpr int unroll = 2;
  using elu_parts::elu_parts;
  template <class V>
  V operator()(V x) const {
    const Reduced<V> t = reduce(float_of(clamped_bits(x)));
    return result(x, t, fused(t.r * t.r, expm1_tail_single(t.r), t.n * all_of<V>(kLn2Low)));
  }
};

// This form is for another positive inputScale; CELU has 1 / alpha. The exponent is p + c, where c
// is what the product p has lost. `general` computes the results where |p| is below 2^-90, except
// 0, or the result below 2^-100, because there c or what other products have lost is subnormal or
// 0. Where x is below -25 / inputScale, expm1 is within 2^-36 of -1.
struct elu_scaled : elu_parts {
  static constexpr bool finite = true;
  static constexpr int unroll = 2;
  float rate, bound;
  uint32_t limit;
  elu_wide wide;
  elu_scaled(double scale, double input_scale, double factor)
      : elu_parts(scale, factor),
        rate(static_cast<float>(input_scale)),
        bound(static_cast<float>(-25 / input_scale)),
        limit(0 - bits_of(static_cast<float>((high < 0x1p-10f ? 0x1p-100 / high : 0x1p-90) /
                                             input_scale))),
        wide{{scale, input_scale, factor}} {}

  // Returns 0 for x = 0, and otherwise a word that grows as |x| falls.
  static auto unusual(auto x) { return 0u - (bits_of(x) & 0x7fffffffu); }
  float general(float x) const { return wide(x); }

  template <class V>
  V quick(V x) const {
    const V least = all_of<V>(bound), factor = all_of<V>(rate);
    const V within_bound = x < least ? least : x, p = within_bound * factor;
    const Reduced<V> t = reduce(p);
    const V c = fused(t.n, all_of<V>(kLn2Low), fused(within_bound, factor, -p));
    const V square = t.r * t.r, tail = expm1_tail_single(t.r);
    const V more = fused(c, fused(square, tail, t.r), c);  // c exp(r)
    return result(x, t, fused(square, tail, more));
  }
};

// This form is for results of 16 bits, in float. Below -25 / inputScale the result is
// -scale alpha (1 - 2^-36). Above `linear` it is scale x: above 0, or, if the slope is the same on
// both sides of 0, above -2^-60 / inputScale. Then a subnormal x is multiplied only once
// (formula.h). `steep` is for a large scale alpha, which would show the digits that a subnormal
// expm1 has lost: there `linear` is -2^-60 / inputScale too, and from it to 0 the result is slope
// x. That takes 1.1 times as long.
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
    } else if (__is_same(M, Single) && input_scale > 0 && within(input_scale, 0x1p-60, 0x1p60) &&
               factor > 0 && within(factor, 0x1p-60, 0x1p60)) {
      if (input_scale != 1) return loop(elu_scaled(scale, input_scale, factor));
      if (scale == 1 && alpha == 1) return loop(elu_unit{});
      loop(elu_single(scale, factor));
    } else {
      loop(elu_wide{{scale, input_scale, factor}});
    }
  }
};

}  // namespace
}  // namespace openaclnn::OPENACLNN_ISA
