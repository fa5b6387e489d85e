// SPDX-License-Identifier: Apache-2.0
// The gradient of logit: dy / (x (1 - x)) between eps and 1 - eps. Outside it is 0, or NaN if
// eps < 0. For eps = 1 it is infinite everywhere, with the sign of dy, for eps > 1 NaN, and for an
// infinite eps 0.
#pragma once

#include "core/kernels/elementwise/formula.h"
#include "core/kernels/math.h"

namespace openaclnn::OPENACLNN_ISA {
namespace {

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

  // x > 1 - eps as if 1 - eps were not rounded, as in logit.h. With m, the smaller of x and 1 - x,
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
// eps < 0, the default: infinite at 0 and 1, as rounded probabilities often are, and NaN outside.
template <bool half, bool open>
struct logit_grad_float : logit_grad_exact {
  static constexpr bool special_results = open;
  // Below, m^2 might be subnormal.
  static constexpr float kTiny = 0x1p-51f;
  float least, bound;  // results are 0 for m < least; smaller m are replaced by the bound
  float tiny;          // below, m or, if not `open`, |m| needs `exact`
  explicit logit_grad_float(const logit_grad_exact& e)
      : logit_grad_exact(e),
        least(float_from(low)),
        bound(least > kTiny ? least : kTiny),
        tiny(least >= kTiny ? 0 : kTiny) {}

  // Whether 1 - x < low exactly where x > high. 1 - x is a multiple of 2^-24 for x between 1/2 and
  // 1; this fails if 1 - eps was rounded up over such a multiple, which few eps are next to.
  bool mirrored() const {
    const float high = float_up_to(up_to_complement(low)), last = 1 - high;
    return high < 0.5f || (last >= least && last - 0x1p-24f < least);
  }

  static FloatRegister nearer(FloatRegister x) {  // m: at most one of the two is negative
    return float_of(smaller_signed(bits_of(x), bits_of(1 - x)));
  }
  Lanes needs_exact(FloatRegister x, FloatRegister) const {
    if constexpr (open) return above(bits_of(nearer(x)) - bits_of(kTiny), 0 - bits_of(kTiny));
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
      const V inverse = all_of<V>(1 - 0x1p-22f) / d;  // infinite where m is 0
      const V d_low = fused_minus(m, m, m - d);
      const V e = fused_minus(d_low, inverse, fused_minus(d, inverse, all_of<V>(1)));
      y = fused(dy, inverse, dy * (inverse * e));
      if constexpr (open) y = near == 0 ? dy * inverse : y;
    }
    if constexpr (!open) return select(below(near, least), V{}, y);
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
