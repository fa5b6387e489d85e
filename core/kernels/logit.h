// SPDX-License-Identifier: Apache-2.0
// logit(x) = ln(z / (1 - z)) with z = clamp(x, eps, 1 - eps), and its gradient dy / (x (1 - x)).
#pragma once

#include "core/kernels/formula.h"
#include "core/kernels/math.h"

namespace openaclnn::OPENACLNN_ISA {
namespace {

// The least float that is not below, and the greatest that is not above: comparisons with them are
// comparisons with x.
inline float float_from(double x) {
  const auto nearest = static_cast<float>(x);
  return nearest < x
             ? (nearest < 0 ? float_of(bits_of(nearest) - 1) : float_of(bits_of(nearest) + 1))
             : nearest;
}
inline float float_up_to(double x) { return -float_from(-x); }

// The least float above.
inline float float_above(double x) {
  const float next = float_from(x);
  if (next > x) return next;
  return next == 0 ? 0x1p-149f : float_of(next < 0 ? bits_of(next) - 1 : bits_of(next) + 1);
}

// In double, good to 2^-35 for every z from 2^-1022 on: the same way without corrections.
inline double logit_wide(double z) {
  const double c = 1 - z;
  const uint64_t k = (bits_of(z) - bits_of(c) + (uint64_t{1} << 51)) & (uint64_t{0xfff} << 52);
  const double b = double_of(bits_of(c) + k);
  const double exponent =
      double_of(((k + (uint64_t{1} << 62)) >> 52) | bits_of(0x1p52)) - (0x1p52 + 1024);
  const double f = (z - b) / (z + b), s = f * f;
  double p = 0x1.8d9479392f3cep-3;
  p = p * s + 0x1.c66ce580a4cc2p-3;
  p = p * s + 0x1.249340cd5bc5ep-2;
  p = p * s + 0x1.999998a5a0c80p-2;
  p = p * s + 0x1.55555555688c3p-1;
  const double y = exponent * 0x1.62e42fefa39efp-1 + (f + f + f * s * p);
  const double ends = z == 0 ? -__builtin_inf() : z == 1 ? __builtin_inf() : __builtin_nan("");
  return ((z > 0) & (z < 1)) ? y : ends;
}

// In float, wherever 2^-100 <= z < 1. With k near the binary logarithm of z / (1 - z) and B = 2^k
// (1 - z),
//     ln(z / (1 - z)) = k ln2 + ln(z / B) = k ln2 + 2 atanh(f / 2),    f = (z - B) / h, h = (z + B)
//     / 2, |f| < 0.388.
// z - B is exact, and what the rest loses is carried along in `lost`. Near 1/2 k is 0, h is 1/2 and
// nothing is lost.
template <bool bounded>
struct logit_quick {
  static constexpr bool finite = true;  // where it is not unusual
  // If bounded: beyond low and high, the floats next to the range, results are at_low and at_high.
  // Clamping both x and the result does it, for the logarithm rises.
  float low, high, at_low, at_high;
  uint32_t limit = 0x3f7fffff - 0x0d800000;

  static float clamp(float x, float least, float most) {
    const float y = x < least ? least : x;
    return !bounded ? x : y > most ? most : y;
  }
  uint32_t unusual(float x) const { return bits_of(clamp(x, low, high)) - 0x0d800000; }

  float quick(float x) const {
    const float z = clamp(x, low, high);
    const float c = 1 - z;
    const uint32_t k = (bits_of(z) - bits_of(c) + 0x400000) & 0xff800000;  // times 2^23
    const float power = float_of(k + 0x3f800000),
                exponent = static_cast<float>(static_cast<int32_t>(k));
    const float b = c * power, b_low = fused(-z, power, power - b);  // B as high + low
    const float difference = z - b;
    const float h = fused(-0.5f, difference, z), h_low = fused(-0.5f, difference, z - h);
    const float inverse = 1 / h;
    const float f = difference * inverse;
    const float lost = fused(-f, h_low, fused(-f, h, difference));  // the error of f, times h
    const float all = fused(-b_low, fused(0.5f, f, 1.0f),
                            lost);  // b_low / b is b_low (1 + f / 2) / h but for f^2 / 4
    const float s = f * f;
    // (2 atanh(f / 2) - f) / f^3: relative error of 2 atanh 2^-28.4
    float p = fused(0x1.35b188p-9f, s, 0x1.9938dcp-7f);
    p = fused(p, s, 0x1.5555a2p-4f);
    const float rest = fused(f * s, p, all * inverse);
    constexpr float kLn2 = 0x1.62e430p-24f;  // ln2 / 2^23, relative error 2^-28.4
    const float main = fused(exponent, kLn2, f);
    const float lost_of_f = f + fused(exponent, kLn2, -main);  // exact for |k| <= 2
    return clamp(main + (lost_of_f + rest), at_low, at_high);
  }

  float general(float x) const {
    return clamp(static_cast<float>(logit_wide(clamp(x, low, high))), at_low, at_high);
  }
};

struct logit_nan {
  float operator()(float) const { return __builtin_nanf(""); }
};

template <class M>
struct logit {
  using T = float;  // no DOUBLE in its row
  double eps;
  explicit logit(const double* attributes) : eps(attributes[0]) {}

  template <class Loop>
  void visit(const Loop& loop) const {
    if (eps < 0) return loop(logit_quick<false>{0, 1, 0, 0});
    const auto least = static_cast<float>(logit_wide(eps));
    if (least != least) return loop(logit_nan{});
    if (eps > 0.5)
      return loop(logit_quick<true>{0.5f, 0.5f, least, least});  // the lower bound wins
    const float below = -float_above(-eps), above = float_above(1 - eps);
    const float low = below > 0 ? below : 0, high = above < 1 ? above : 1;
    loop(logit_quick<true>{low, high, least, static_cast<float>(logit_wide(1 - eps))});
  }
};

// Where eps alone decides: NaN, 0, or infinity with the sign of dy.
struct logit_grad_constant {
  uint32_t value, sign;
  float operator()(float, float dy) const { return float_of(value | (bits_of(dy) & sign)); }
};

struct logit_grad_bounds {
  float low, high, beyond;
  bool outside(float x) const { return (x < low) | (x > high); }  // not where x is NaN

  // Whether 1 - x, which between 1/2 and 1 is a multiple of 2^-24, is below low where x > high, and
  // nowhere else. Not where 1 - eps was rounded up over such a multiple.
  bool mirrored() const {
    const float least = 1 - high;
    return high < 0.5f || (least >= low && least - 0x1p-24f < low);
  }
};

// For results of 16 bits: three roundings.
struct logit_grad_half : logit_grad_bounds {
  float operator()(float x, float dy) const {
    const float y = dy / (x * (1 - x));
    return outside(x) ? beyond : y;
  }
};

inline constexpr float kDeep = 0x1p-73f;

// q = dy (1 / d), and one Newton step on the exact remainder dy - q d: 0.5 ulp and a trace. With m
// the smaller of x and 1 - x, which is exact, d = m - m^2 as high + low: m - d is exact, for d >= m
// / 2. Not where m, but for 0, is below kDeep, or dy, but for 0, below 2^-100: remainders may
// underflow. If plain, outside is where m < low, and low is at least kDeep: one comparison instead
// of two and a check.
template <bool plain>
struct logit_grad_single : logit_grad_bounds {
  static constexpr bool finite = false;
  uint32_t limit = 0u - bits_of(kDeep);  // of dy, shifted by the sign: 2^-100

  static float smaller(float x) {
    const float c = 1 - x;
    return x < c ? x : c;
  }
  bool outside(float x) const { return plain ? smaller(x) < low : logit_grad_bounds::outside(x); }

  uint32_t unusual(float x, float dy) const {
    const uint32_t a = plain ? 0 : 0u - bits_of(smaller(x)), b = 0u - (bits_of(dy) << 1);
    return a > b ? a : b;
  }

  float quick(float x, float dy) const {
    const float m = smaller(x), d = fused(-m, m, m), d_low = fused(-m, m, m - d);
    const float inverse = 1 / d;
    const float q = dy * inverse;
    const float excess = fused(q, d_low, fused(q, d, -dy));  // +0 where dy is 0 of either sign
    const float y = fused(excess, -inverse, q);  // not -excess: GCC 12 loses the sign of zero
    return outside(x) ? beyond : y;
  }

  float general(float x, float dy) const {
    const double z = x;
    const auto y = static_cast<float>(dy / (z * (1 - z)));
    return outside(x) ? beyond : y;
  }
};

template <class M>
struct logit_grad {
  using T = float;  // no DOUBLE in its row
  double eps;
  explicit logit_grad(const double* attributes) : eps(attributes[0]) {}

  // The first rule that applies wins; here are those that need no x, the formula has the others.
  template <class Loop>
  void visit(const Loop& loop) const {
    const float infinity = __builtin_inff(), nan = __builtin_nanf("");
    if (eps != eps) return loop(logit_grad_constant{bits_of(nan), 0});
    if (eps == infinity) return loop(logit_grad_constant{0, 0});
    if (eps > 1) return loop(logit_grad_constant{bits_of(nan), 0});
    if (eps == 1) return loop(logit_grad_constant{bits_of(infinity), 0x80000000});
    const logit_grad_bounds bounds{eps >= 0 ? float_from(eps) : 0,
                                   eps >= 0 ? float_up_to(1 - eps) : 1, eps >= 0 ? 0 : nan};
    if constexpr (__is_same(M, Half)) {
      loop(logit_grad_half{bounds});
    } else if (bounds.low >= kDeep && bounds.mirrored()) {
      loop(logit_grad_single<true>{bounds});
    } else {
      loop(logit_grad_single<false>{bounds});
    }
  }
};

}  // namespace
}  // namespace openaclnn::OPENACLNN_ISA
