// SPDX-License-Identifier: Apache-2.0
// elu(x) = x > 0 ? scale x : scale alpha expm1(inputScale x)
//
// `fast` replaces x outside of [bound, near], both negative, by the nearer one: below `bound` the
// result does not change any more, and above `near` it is scale x, or `exact` is needed.
#pragma once

#include "core/kernels/elementwise/formula.h"
#include "core/kernels/math.h"

namespace openaclnn::OPENACLNN_ISA {
namespace {

struct elu_exact {
  double scale, factor, rate;
  explicit elu_exact(const double* attributes)
      : scale(attributes[1]), factor(attributes[1] * attributes[0]), rate(attributes[2]) {}

  // Below -60, expm1 is -1. Above 1400, which a negative inputScale leads to, the result is
  // infinite, unless the factor is 0.
  double exact(double x) const {
    const double t = x * rate;
    const Clamped within = clamped(t, -60, 1400);
    const Exponential e = exponential(within.value);
    const double of_first = double_of((uint64_t{2046} << 52) - bits_of(e.first));  // 1 / first
    const double number = fused(e.second, e.m, e.second - of_first);               // expm1 / first
    const double whole = number + (within.beyond > 0 ? within.beyond : 0);
    const double y = factor * __builtin_copysign(whole, t) * e.first;
    return x > 0 ? scale * x : y;
  }
};

struct elu_range {
  float bound, near;  // `near` is normal: were it -0, an input of -0 would not be above it
  elu_range(double rate, double least)
      : bound(static_cast<float>(-25 / rate)),
        near(static_cast<float>(-least / rate < -0x1p-126 ? -least / rate : -0x1p-126)) {}

  // The bits of negative numbers, read as words, are above those of positive ones, and rise with
  // the magnitude.
  FloatRegister clamped(FloatRegister x) const {
    const auto words = larger(bits_of(x), bits_of(all_of<FloatRegister>(near)));
    return float_of(smaller(words, bits_of(all_of<FloatRegister>(bound))));
  }
  template <class V>
  V either(V x, V positive, V y) const {  // `positive`, which is NaN where x is, above `near`
    return x <= all_of<V>(near) ? y : positive;
  }
  // x is between `near` and 0, exclusively.
  Lanes needs_exact(FloatRegister x) const {
    return above(bits_of(x) - bits_of(near), bits_of(-0.0f) - bits_of(near));
  }
};

// alpha, scale and inputScale are 1. With x = n ln2 + r and p(r) of math.h, this computes
// 2^n (r + r^2 p) + (2^n - 1). Two operations round: the sum r + r^2 p and the result. n ln2 loses
// n 2^-29, which is below 0.05 ulp of the result. The error is 0.908 ulp.
struct elu_unit : elu_exact {
  template <class V>
  V fast(V x) const {
    const elu_range range(1, 0x1p-60);
    const Reduced<V> t = reduce(range.clamped(x));
    const V small = fused(t.r * t.r, exp_tail_single(t.r), t.r), power = float_of(t.power);
    return range.either(x, x, fused(power, small, power - all_of<V>(1)));
  }
};

// inputScale and scale alpha are positive. The exponent is p + c, where c is what the product p has
// lost, and scale alpha is high + low. With p + c = n ln2 + r and exp(r) = 1 + r + q, expm1 is
// 2^n (1 + r + q) - 1 = sum + rest. Without `rest` the error reached 1.06 ulp. With four registers
// together some are spilled again and again, which takes 1.4 times as long.
struct elu_single : elu_exact, elu_range {
  static constexpr int unroll = 2;
  float high, low;
  explicit elu_single(const elu_exact& e)
      : elu_exact(e),
        // c, and what other products have lost, must not be subnormal
        elu_range(e.rate, e.factor < 0x1p-10 ? 0x1p-100 / e.factor : 0x1p-90),
        high(static_cast<float>(e.factor)),
        low(static_cast<float>(e.factor - high)) {}

  template <class V>
  V fast(V given) const {
    const V x = clamped(given), k = all_of<V>(rate), p = x * k, factor = all_of<V>(high);
    const Reduced<V> t = reduce(p);
    const V c = fused(t.n, all_of<V>(kLn2Low), fused(x, k, -p));
    const V square = t.r * t.r, tail = expm1_tail_single(t.r);
    const V q = fused(square, tail, fused(c, fused(square, tail, t.r), c));
    const V power = float_of(t.power), whole = power - all_of<V>(1);
    const V main = fused(power, t.r, whole);
    const V small = fused(power, q, fused(power, t.r, whole - main));
    const V sum = main + small, rest = small - (sum - main);
    const V y = fused(sum, factor, fused(rest, factor, sum * all_of<V>(low)));
    return either(given, given * all_of<V>(scale), y);
  }
};

struct elu {
  template <class M>
  static void choose(const double* attributes, const auto& use) {
    const elu_exact e(attributes);
    if constexpr (!__is_same(M, Double)) {
      if (e.scale == 1 && e.factor == 1 && e.rate == 1) return use(elu_unit{e});
      if (e.scale > 0 && usual(e.factor, 0x1p-60) && usual(e.rate, 0x1p-60))
        return use(elu_single(e));
    }
    use(e);
  }
};

}  // namespace
}  // namespace openaclnn::OPENACLNN_ISA
