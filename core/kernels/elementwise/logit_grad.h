// SPDX-License-Identifier: Apache-2.0
// The gradient of logit: dy / (x (1 - x)) between eps and 1 - eps. Outside it is 0, or NaN if
// eps < 0. For eps = 1 it is infinite everywhere, with the sign of dy, for eps > 1 NaN, and for an
// infinite eps 0.
#pragma once

#include "core/kernels/elementwise/float_bounds.h"
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

// [low, high] are the floats between eps and 1 - eps.
struct logit_grad_bounds : logit_grad_exact {
  float least, most, beyond;
  explicit logit_grad_bounds(const logit_grad_exact& e)
      : logit_grad_exact(e),
        least(float_from(low)),
        most(float_up_to(up_to_complement(low))),
        beyond(static_cast<float>(outside)) {}
};

// For results of 16 bits, with three roundings before the last.
struct logit_grad_half : logit_grad_bounds {
  template <class V>
  V fast(V x, V dy) const {
    const V y = dy / (x * (all_of<V>(1) - x)), end = all_of<V>(beyond);
    return x < all_of<V>(least) ? end : x > all_of<V>(most) ? end : y;
  }
};

// With m, the smaller of x and 1 - x, which is exact, D = m - m^2 is kept as d + d_low; m - d is
// exact because d >= m / 2. `inverse` is a little too small, (1 - 2^-22) / d, so that what it
// lacks, e = 1 - D inverse, is positive:
//     dy / D = dy inverse + dy inverse e + …,    2^-23 < e < 2^-21.
// Both terms have the sign of dy, and only their sum rounds. Where the result is below 2^-104, the
// second term may be subnormal and lose up to 2^-150.
struct logit_grad_single : logit_grad_bounds {
  // Below, m^2 might be subnormal. m is replaced by the float before the bound if it is smaller.
  static constexpr float kTiny = 0x1p-51f;
  uint32_t bound, first, range;  // `fast` is right for the bits of m from `first` on, `range` more
  explicit logit_grad_single(const logit_grad_bounds& b)
      : logit_grad_bounds(b),
        bound(bits_of(least > kTiny ? least : kTiny) - 1),
        first(least >= kTiny ? 0 : bits_of(kTiny)),
        range((beyond == 0 ? 0xff800000 : 0x7f800000) - first) {}

  // Whether 1 - x < low exactly where x > high. 1 - x is a multiple of 2^-24 for x between 1/2 and
  // 1; this fails if 1 - eps was rounded up over such a multiple, which few eps are next to.
  bool mirrored() const {
    const float last = 1 - most;
    return most < 0.5f || (last >= least && last - 0x1p-24f < least);
  }

  template <class V>
  static auto nearer(V x) {  // the bits of m: at most one of the two is negative
    return smaller_signed(bits_of(x), bits_of(all_of<V>(1) - x));
  }
  Lanes needs_exact(FloatRegister x, FloatRegister) const {
    return above(nearer(x) - first, range);
  }
  template <class V>
  V fast(V x, V dy) const {
    const V m = float_of(larger_signed(nearer(x), all_words(bound)));
    const V d = fused_minus(m, m, m), d_low = fused_minus(m, m, m - d);
    const V inverse = all_of<V>(1 - 0x1p-22f) / d;
    const V e = fused_minus(d_low, inverse, fused_minus(d, inverse, all_of<V>(1)));
    const V y = fused(dy, inverse, dy * (inverse * e));
    return m < all_of<V>(least) ? V{} : y;
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
    const logit_grad_bounds bounds(e);
    if constexpr (__is_same(M, Double)) {
      use(e);
    } else if constexpr (__is_same(M, Half)) {
      use(logit_grad_half{bounds});
    } else {
      const logit_grad_single single(bounds);
      single.mirrored() ? use(single) : use(e);
    }
  }
};

}  // namespace
}  // namespace openaclnn::OPENACLNN_ISA
