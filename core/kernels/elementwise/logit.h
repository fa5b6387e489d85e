// SPDX-License-Identifier: Apache-2.0
// logit(x) = ln(z / (1 - z)) with z = clamp(x, eps, 1 - eps).
#pragma once

#include "core/kernels/elementwise/float_bounds.h"
#include "core/kernels/elementwise/formula.h"
#include "core/kernels/elementwise/logit_double.h"
#include "core/kernels/math.h"

namespace openaclnn::OPENACLNN_ISA {
namespace {

// Returns whether y is within an ulp of exact, with a little to spare.
inline bool within_ulp(float y, double exact) {
  const auto nearest = static_cast<float>(exact);
  return magnitude(y - exact) <= 0.9 * magnitude(nearest - float_of(bits_of(nearest) ^ 1));
}

// Which values the clamp lets through. `open`: all. `closed`: those between two bounds. `interior`:
// the same, with bounds above 0 and below 1 and results of either sign; this needs an eps between
// 2^-24 and 1/2, both excluded, whose nearest float has the same result.
enum class Range : uint8_t { open, closed, interior };

// Entry j is the bits of ln(1 + j/16) - j/16 ln2, which is positive. p is that of logit_quick
// below; its bits contain j 2^19.
inline constexpr uint32_t kLogarithms[16] = {
    0x00000000, 0x3c8dbedc, 0x3cff188e, 0x3d2b8fc6, 0x3d4c3699, 0x3d629cb3, 0x3d6fb661, 0x3d745756,
    0x3d71383b, 0x3d66fb1a, 0x3d562ee8, 0x3d3f526a, 0x3d22d68f, 0x3d012062, 0x3cb51548, 0x3c3d9cad};

// Computes in float, for 2^-100 <= z < 1. Let c = 1 - z, and let p be near z / c, of the form
// 2^n (1 + j/16) with integers n and j, 0 <= j < 16. Then
//     ln(z / c) = ln p + 2 atanh(f / 2),    f = (z - p c) / h,    h = (z + p c) / 2.
// The bits of z minus those of c are near 2^23 log2(z / c), so p comes from them without a
// division, and -0.118 < f < 0.061. z - p c = z (1 + p) - p is rounded once, because 1 + p is exact
// except for p < 2^-19, where the result is below -13; h is z minus half of it. Near 1/2, where the
// result is as small as f, p is 1, and f, up to 1/4, is exact. The classical way, p = 2^n,
// takes 1.4 times as long: a longer polynomial, and a correction for what f loses.
template <Range range>
struct logit_quick {
  static constexpr bool finite = true;  // for values that are not unusual
  static constexpr bool interior = range == Range::interior;
  // Beyond low and high, the floats next to the range, results are at_low and at_high. It is enough
  // to clamp both x and the result, because the logarithm rises. If `interior`, low is the float
  // nearest to eps, whose own result is as good as at_low.
  float low, high, at_low, at_high;
  uint32_t limit = interior ? 0x7f800000 : 0x3f7fffff - 0x0d800000;

  template <class V>
  static V clamp(V x, V least, V most) {
    const V y = x < least ? least : x;
    return range == Range::open ? x : y > most ? most : y;
  }

  // If `interior`, registers are clamped as words (registers.h).
  FloatRegister clamped(FloatRegister x) const {
    using V = FloatRegister;
    if (!interior) return clamp(x, all_of<V>(low), all_of<V>(high));
    return float_of(smaller_signed(larger_signed(bits_of(x), bits_of(all_of<V>(low))),
                                   bits_of(all_of<V>(high))));
  }
  FloatRegister clamped_result(FloatRegister y) const {
    using V = FloatRegister;
    if (!interior) return clamp(y, all_of<V>(at_low), all_of<V>(at_high));
    return float_of(smaller_signed(bits_of(y), bits_of(all_of<V>(at_high))));
  }

  template <class V>
  auto unusual(V x) const {
    return interior ? bits_of(x) & 0x7fffffff
                    : bits_of(clamp(x, all_of<V>(low), all_of<V>(high))) - 0x0d800000;
  }

  template <class V>
  V quick(V x) const {
    return clamped_result(unclamped(clamped(x), decltype(bits_of(x)){}));
  }

  // Returns logit(z) - more ln2 / 2^23.
  template <class V>
  static V unclamped(V z, decltype(bits_of(V{})) more) {
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
    return fused(as_signed(k - more), ln2, f + rest);
  }

  // Right for every x. A z below 2^-100 is multiplied by 2^64, whose logarithm is subtracted again;
  // a z that is not between 0 and 1 has a result that needs no arithmetic. 2^64 times a subnormal
  // number is computed as a difference of two normal ones (formula.h).
  struct Careful : NoDoubts {
    logit_quick form;

    template <class V>
    V quick(V x) const {
      if constexpr (interior) {
        return x == x ? form.quick(x) : all_of<V>(__builtin_nanf(""));
      } else {
        constexpr uint32_t kMore = 64u << 23, kLeast = 1u << 23;
        const V z = clamp(x, all_of<V>(form.low), all_of<V>(form.high));
        const V subnormal = float_of(bits_of(z) + (kMore + kLeast)) - all_of<V>(0x1p-62f);
        const auto tiny = bits_of(z) < bits_of(0x1p-100f);
        const V near = bits_of(z) < kLeast ? subnormal : float_of(bits_of(z) + kMore);
        const V y = unclamped(tiny ? near : z, zero_unless(tiny, bits_of(z) * 0u + kMore));
        const V infinity = all_of<V>(__builtin_inff()), nan = all_of<V>(__builtin_nanf(""));
        const V end = z == 0 ? -infinity : z == 1 ? infinity : nan;
        const V result = bits_of(z) - 1 < bits_of(1.0f) - 1 ? y : end;
        return clamp(result, all_of<V>(form.at_low), all_of<V>(form.at_high));
      }
    }
  };
  Careful careful() const { return {{}, *this}; }
};

struct logit_nan {
  float operator()(float) const { return __builtin_nanf(""); }
};

template <class M>
struct logit {
  using T = typename M::T;
  double eps;
  explicit logit(const double* attributes) : eps(attributes[0]) {}

  template <class Loop>
  void visit(const Loop& loop) const {
    if constexpr (__is_same(M, Double)) {
      loop(logit_double(eps));
    } else {
      visit_float(loop);
    }
  }

  template <class Loop>
  void visit_float(const Loop& loop) const {
    if (eps < 0) return loop(logit_quick<Range::open>{0, 1, 0, 0});
    const double at_eps = logit_double::value_of(eps);
    const auto least = static_cast<float>(at_eps);
    if (least != least) return loop(logit_nan{});
    if (eps > 0.5)
      return loop(logit_quick<Range::closed>{0.5f, 0.5f, least, least});  // the lower bound wins
    const float below = -float_above(-eps), above = float_above(up_to_complement(eps));
    const float low = below > 0 ? below : 0, high = above < 1 ? above : 1;
    const auto most = static_cast<float>(0 - at_eps);  // +0 of 1/2
    const logit_quick<Range::interior> form{static_cast<float>(eps), high, least, most};
    const float near = form.quick(all_of<FloatRegister>(form.low))[0];
    if (high < 1 && least < 0 && within_ulp(near, at_eps)) return loop(form);
    loop(logit_quick<Range::closed>{low, high, least, most});
  }
};

}  // namespace
}  // namespace openaclnn::OPENACLNN_ISA
