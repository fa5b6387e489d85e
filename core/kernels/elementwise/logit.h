// SPDX-License-Identifier: Apache-2.0
// logit(x) = ln(z / (1 - z)) with z = clamp(x, eps, 1 - eps), and its gradient: dy / (x (1 - x))
// between eps and 1 - eps, outside 0, or NaN if eps < 0. For eps = 1 the gradient is infinite, with
// the sign of dy, for eps > 1 NaN, for an infinite eps 0.
#pragma once

#include "core/kernels/elementwise/formula.h"
#include "core/kernels/math.h"

namespace openaclnn::OPENACLNN_ISA {
namespace {

// ln(z / (1 - z)), 0 < z < 1.
inline double log_odds(double z) {
  const bool tiny = z < 0x1p-900;  // it may be subnormal
  return log_ratio(tiny ? z * 0x1p200 : z, 1 - z, 2 * z - 1) - (tiny ? 0x1.1542457337d43p7 : 0);
}

// For eps < 1/2. All negative ones, which do not clamp, are -inf.
struct logit_exact {
  double eps, at_eps;
  explicit logit_exact(double eps)
      : eps(eps < 0 ? -__builtin_inf() : eps), at_eps(eps < 0 ? 0 : value_of(eps)) {}

  static double value_of(double z) {
    const double ends = z == 0 ? -__builtin_inf() : z == 1 ? __builtin_inf() : __builtin_nan("");
    return all(z > 0, z < 1) ? log_odds(z) : ends;
  }

  // x > 1 - eps as if 1 - eps were not rounded: 1 - x is rounded only for x below 1/2, where the
  // comparison of x with eps decides.
  double exact(double x) const {
    const double y = value_of(x);
    return x < eps ? at_eps : 1 - x < eps ? 0 - at_eps : y;
  }
};

// Entry j is the bits of ln(1 + j/16) - j/16 ln2, which is positive. p is that of `fast` below; its
// bits contain j 2^19.
inline constexpr uint32_t kLogarithms[16] = {
    0x00000000, 0x3c8dbedc, 0x3cff188e, 0x3d2b8fc6, 0x3d4c3699, 0x3d629cb3, 0x3d6fb661, 0x3d745756,
    0x3d71383b, 0x3d66fb1a, 0x3d562ee8, 0x3d3f526a, 0x3d22d68f, 0x3d012062, 0x3cb51548, 0x3c3d9cad};

// For 2^-100 <= z < 1. Let c = 1 - z, and let p be near z / c, of the form 2^n (1 + j/16) with
// integers n and j, 0 <= j < 16. Then
//     ln(z / c) = ln p + 2 atanh(f / 2),    f = (z - p c) / h,    h = (z + p c) / 2.
// The bits of z minus those of c are near 2^23 log2(z / c), so p comes from them without a
// division, and -0.118 < f < 0.061. z - p c = z (1 + p) - p is rounded once, because 1 + p is exact
// except for p < 2^-19, where the result is below -13; h is z minus half of it. Near 1/2, where the
// result is as small as f, p is 1, and f, up to 1/4, is exact. The classical way, p = 2^n,
// takes 1.4 times as long: a longer polynomial, and a correction for what f loses.
template <class V>
inline V log_odds_single(V z) {
  constexpr uint32_t kSixteenth = 0x00080000, kNear = 6 * kSixteenth;
  const auto distance = bits_of(z) - bits_of(all_of<V>(1) - z);
  const auto k = zero_unless(distance + kNear >= 2 * kNear, distance & -kSixteenth);
  const V p = float_of(k + bits_of(1.0f));
  const V gap = fused(z, all_of<V>(1) + p, -p);
  const V f = gap / fused(gap, all_of<V>(-0.5f), z);
  const V s = f * f;
  // (2 atanh(f / 2) - f) / f^3: relative error of 2 atanh 2^-25.3
  const V q = polynomial(s, 0x1.a00c8cp-7f, 0x1.55515cp-4f);
  const V ln2 = all_of<V>(0x1.62e430p-24f);  // ln2 / 2^23, relative error 2^-28.4
  const V rest = fused(f * s, q, float_of(pick(kLogarithms, k >> 19)));
  return fused(as_signed(k), ln2, f + rest);
}

// With eps < 0, the default: infinite at 0 and 1, which rounded probabilities often are, and NaN
// outside.
struct logit_unclamped : logit_exact {
  static constexpr bool special_results = true;
  static constexpr uint32_t kLeast = bits_of(0x1p-100f);

  Lanes needs_exact(FloatRegister x) const {  // 0 < x < 2^-100
    return above(bits_of(x) - kLeast, 0 - kLeast);
  }
  FloatRegister fast(FloatRegister x) const {
    using V = FloatRegister;
    constexpr float infinity = __builtin_inff();
    const V y = log_odds_single(float_of(larger_signed(bits_of(x), all_words(kLeast))));
    const V low = x == 0 ? all_of<V>(-infinity) : y, high = x == 1 ? all_of<V>(infinity) : low;
    return select(above(bits_of(x + 0), bits_of(1.0f)), all_of<V>(__builtin_nanf("")), high);
  }
};

// With an eps >= 0 that does not bind between 2^-100 and 1: `exact` computes what is outside.
struct logit_open : logit_exact {
  uint32_t least, range;  // the bits of the least float that passes; how many follow it
  logit_open(const logit_exact& e, float low, float high)
      : logit_exact(e),
        least(bits_of(low < 0x1p-100f ? 0x1p-100f : low)),
        range(bits_of(high) - least) {}

  Lanes needs_exact(FloatRegister x) const { return above(bits_of(x) - least, range); }
  FloatRegister fast(FloatRegister x) const {  // subnormal numbers would take long
    return log_odds_single(float_of(larger_signed(bits_of(x), all_words(least))));
  }
};

// With 2^-24 < eps < 1/2. Inputs are clamped to the nearest floats outside of the bounds, and then
// results, since the logarithm rises. Words are clamped, not floats (conditions.h).
struct logit_clamped : logit_exact {
  float low, high, at_low, at_high;
  explicit logit_clamped(const logit_exact& e)
      : logit_exact(e),
        low(float_up_to(e.eps)),
        high(float_above(up_to_complement(e.eps))),
        at_low(static_cast<float>(e.at_eps)),
        at_high(-at_low) {}

  bool holds() const { return low > 0 && high < 1 && at_low < 0; }
  Lanes needs_exact(FloatRegister x) const { return is_nan(x); }
  FloatRegister fast(FloatRegister x) const {
    using V = FloatRegister;
    const auto above = larger_signed(bits_of(x), bits_of(all_of<V>(low)));
    const V z = float_of(smaller_signed(above, bits_of(all_of<V>(high))));
    const auto y = smaller_signed(bits_of(log_odds_single(z)), bits_of(all_of<V>(at_high)));
    return float_of(smaller(y, bits_of(all_of<V>(at_low))));  // negative words are the largest
  }
};

struct logit_constant {  // for eps >= 1/2, where the lower bound wins, and NaN
  double value;
  template <class V>
  V fast(V x) const {
    return x == x ? all_of<V>(value) : all_of<V>(__builtin_nanf(""));
  }
};

struct logit {
  template <class M>
  static void choose(const double* attributes, const auto& use) {
    const double eps = attributes[0];
    if (!(eps < 0.5)) return use(logit_constant{logit_exact::value_of(eps)});
    const logit_exact e(eps);
    if constexpr (!__is_same(M, Double)) {
      if (e.eps < 0) return use(logit_unclamped{e});
      const logit_clamped clamped(e);
      if (clamped.holds()) return use(clamped);
      const float high = float_up_to(up_to_complement(e.eps));
      use(logit_open(e, float_from(e.eps), high < 1 ? high : float_of(bits_of(1.0f) - 1)));
    } else {
      use(e);
    }
  }
};

// ---- gradient ----

// For eps >= 1 and NaN.
struct logit_grad_constant {
  double value;
  bool takes_sign;
  template <class V>
  V fast(V, V dy) const {
    return takes_sign ? copy_sign(all_of<V>(value), dy) : all_of<V>(value);
  }
};

struct logit_grad_exact {
  double low, outside;
  explicit logit_grad_exact(double eps)
      : low(eps >= 0 ? eps : 0), outside(eps >= 0 ? 0 : __builtin_nan("")) {}

  // x > 1 - eps as if 1 - eps were not rounded. With m, the smaller of x and 1 - x,
  // which is exact, x (1 - x) is m (1 - m).
  double exact(double x, double dy) const {
    const double c = 1 - x, m = x < c ? x : c, y = dy / (m * (1 - m));
    return m < low ? outside : y;
  }
};

// With m, the smaller of x and 1 - x, which is exact, D = m - m^2 is kept as d + d_low; m - d is
// exact because d >= m / 2. `inverse` is a little too small, (1 - 2^-22) / d, so that what it
// lacks, e = 1 - D inverse, is positive:
//     dy / D = dy inverse + dy inverse e + …,    2^-23 < e < 2^-21.
// Both terms have the sign of dy, and only their sum rounds. Where the result is below 2^-104, the
// second term may be subnormal and lose up to 2^-150. For results of 16 bits dy / d does. `open`:
// eps < 0, the default, where results are infinite at 0 and 1, as probabilities rounded to 16 bits
// often are, and NaN outside; of fp32, `exact` computes these.
template <bool half, bool open>
struct logit_grad_float : logit_grad_exact {
  static constexpr bool special_results = half && open;
  static constexpr float kTiny = 0x1p-51f;  // below, m^2 might be subnormal
  float least, bound;  // results are 0 for m < least; smaller m are replaced by the bound
  float tiny;          // below, m or, if not `open`, |m| needs `exact`
  explicit logit_grad_float(const logit_grad_exact& e)
      : logit_grad_exact(e),
        least(float_from(low)),
        bound(least > kTiny ? least : kTiny),
        tiny(least >= kTiny ? 0 : kTiny) {}

  // Whether 1 - x < low exactly where x > high. 1 - x is a multiple of 2^-24 for x >= 1/2; this
  // fails if 1 - eps was rounded up over such a multiple, which few eps are next to.
  bool mirrored() const {
    const float high = float_up_to(up_to_complement(low)), last = 1 - high;
    return high < 0.5f || (last >= least && last - 0x1p-24f < least);
  }

  static FloatRegister nearer(FloatRegister x) {  // m: at most one of the two is negative
    return float_of(smaller_signed(bits_of(x), bits_of(1 - x)));
  }
  Lanes needs_exact(FloatRegister x, FloatRegister) const {
    if constexpr (special_results)
      return above(bits_of(nearer(x)) - bits_of(kTiny), 0 - bits_of(kTiny));
    if constexpr (open) return not_at_least(nearer(x), kTiny);
    return not_at_least(magnitude(nearer(x)), tiny);
  }
  FloatRegister fast(FloatRegister x, FloatRegister dy) const {
    using V = FloatRegister;
    const V near = nearer(x);
    const V m = open ? near : float_of(larger_signed(bits_of(near), bits_of(all_of<V>(bound))));
    const V d = fused_minus(m, m, m);
    V y;
    if constexpr (half) {
      y = dy / d;
    } else {
      const V inverse = all_of<V>(1 - 0x1p-22f) / d;
      const V d_low = fused_minus(m, m, m - d);
      const V e = fused_minus(d_low, inverse, fused_minus(d, inverse, all_of<V>(1)));
      y = fused(dy, inverse, dy * (inverse * e));
    }
    if constexpr (!open) return select(below(near, least), V{}, y);
    if constexpr (!half) return y;
    return select(not_at_least(near, 0), all_of<V>(__builtin_nanf("")), canonical(y));
  }
};

struct logit_grad {
  template <class M>
  static void choose(const double* attributes, const auto& use) {
    const double eps = attributes[0], infinity = __builtin_inf();
    if (!(eps < 1)) {
      const double value = eps == 1 ? infinity : eps == infinity ? 0 : __builtin_nan("");
      return use(logit_grad_constant{value, eps == 1});
    }
    const logit_grad_exact e(eps);
    if constexpr (__is_same(M, Double)) {
      use(e);
    } else {
      constexpr bool half = __is_same(M, Half);
      if (eps < 0) return use(logit_grad_float<half, true>(e));
      const logit_grad_float<half, false> fast(e);
      fast.mirrored() ? use(fast) : use(e);
    }
  }
};

}  // namespace
}  // namespace openaclnn::OPENACLNN_ISA
