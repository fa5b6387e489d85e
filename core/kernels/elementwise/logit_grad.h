// SPDX-License-Identifier: Apache-2.0
// The gradient of logit: dy / (x (1 - x)) between eps and 1 - eps.
#pragma once

#include "core/kernels/elementwise/float_bounds.h"
#include "core/kernels/elementwise/formula.h"
#include "core/kernels/elementwise/logit_double.h"
#include "core/kernels/math.h"

namespace openaclnn::OPENACLNN_ISA {
namespace {

// This form is used if eps alone decides the result: NaN, 0, or infinity with the sign of dy.
template <class T>
struct logit_grad_constant {
  decltype(bits_of(T{})) value, sign;
  T operator()(T, T dy) const { return __builtin_bit_cast(T, value | (bits_of(dy) & sign)); }
};

struct logit_grad_bounds {
  float low, high, outside;
  template <class V>
  V bounded(V x, V y) const {  // y where x is NaN
    const V end = all_of<V>(outside);
    return x < all_of<V>(low) ? end : x > all_of<V>(high) ? end : y;
  }

  // Whether 1 - x < low exactly where x > high. 1 - x is a multiple of 2^-24 for x between 1/2 and
  // 1; this fails if 1 - eps was rounded up over such a multiple, which few eps are next to.
  bool mirrored() const {
    const float least = 1 - high;
    return high < 0.5f || (least >= low && least - 0x1p-24f < low);
  }
};

// This form gives results of 16 bits, with three roundings before the last.
struct logit_grad_half : logit_grad_bounds {
  template <class V>
  V operator()(V x, V dy) const {
    return bounded(x, dy / (x * (all_of<V>(1) - x)));
  }
};

// This form computes in double and is right for every x, dy and eps; it is used where the bounds
// are not mirrored.
struct logit_grad_wide : logit_grad_bounds {
  float operator()(float x, float dy) const {
    const double z = x;
    return bounded(x, static_cast<float>(dy / (z * (1 - z))));
  }
};

// dy / D in float, with an error slightly above 0.5 ulp. With m, the smaller of x and 1 - x, which
// is exact, D = m - m^2 is kept as d + d_low; m - d is exact because d >= m / 2. `inverse` is a
// little too small, (1 - 2^-22) / d, so that e = 1 - D inverse, what it lacks, is positive:
//     dy / D = dy inverse + dy inverse e + …,    2^-23 < e < 2^-21.
// Both terms have the sign of dy, and only their sum rounds. Where the result is below 2^-104, the
// second term may be subnormal and lose up to 2^-150, which is 2^-7 ulp at 2^-120 and half an ulp
// below 2^-125. (Sending small dy to a form in double costs all others 6 %: 1 thread, 64 Ki,
// Zen 4.)
template <class V>
struct InverseF32 {
  V inverse, e;
  InverseF32(V d, V d_low) : inverse(all_of<V>(1 - 0x1p-22f) / d) {
    e = fused_minus(d_low, inverse, fused_minus(d, inverse, all_of<V>(1)));
  }
  // If d is 0, `inverse` is infinite and e is NaN. Any other e gives dy times this infinity.
  void allow_zero() { e = float_of(smaller(bits_of(e), bits_of(all_of<V>(0x1p-20f)))); }
  V times(V dy) const { return fused(dy, inverse, dy * (inverse * e)); }
};

// Below kDeep, D is m to 51 bits. m^2, which might underflow, would take processors long. The
// inverse of an m below 2^-128 overflows; logit_grad_deep multiplies such an m first.
inline constexpr float kDeep = 0x1p-51f;
inline constexpr uint32_t kDeepBits = bits_of(kDeep), kLeastNormalBits = 0x00800000;

// The bounds must be mirrored: m < low finds the values outside.
struct logit_grad_single : logit_grad_bounds {
  template <class V>
  static V nearer(V x) {  // at most one of the two is negative
    return float_of(smaller_signed(bits_of(x), bits_of(all_of<V>(1) - x)));
  }

  template <class V>
  static InverseF32<V> inverse(V f, V m) {  // of m - f m
    const V d = fused_minus(f, m, m);
    return {d, fused_minus(f, m, m - d)};
  }

  template <class V>
  V within(V m, V y) const {  // y where m is NaN
    return canonical(m < all_of<V>(low) ? all_of<V>(outside) : y);
  }
};

// Right for every x and dy. Where m is below kDeep, it and dy are multiplied by 2^24; a subnormal m
// is multiplied only once (formula.h).
struct logit_grad_deep : logit_grad_single, NoDoubts {
  template <class V>
  V quick(V x, V dy) const {
    const V m = nearer(x);
    const auto deep = m < all_of<V>(kDeep);
    const V more = deep ? all_of<V>(0x1p24f) : all_of<V>(1), large = m * more;
    InverseF32<V> t = inverse(deep ? all_of<V>(-0.0f) : m, large);
    t.allow_zero();
    return within(m, t.times(dy * more));
  }
};

// Right for every dy, and for every m that is not subnormal.
struct logit_grad_careful : logit_grad_single {
  static constexpr bool finite = true, cheap = true;
  static constexpr uint32_t limit = 0u - kLeastNormalBits;

  template <class V>
  auto unusual(V x, V) const {
    return 0u - bits_of(nearer(x));
  }
  template <class V>
  V quick(V x, V dy) const {
    const V m = nearer(x);
    const V f = m < all_of<V>(kDeep) ? all_of<V>(-0.0f) : m;  // -0 leaves d the sign of a zero m
    InverseF32<V> t = inverse(f, m);
    t.allow_zero();
    return within(m, t.times(dy));
  }
  logit_grad_deep careful() const { return {*this, {}}; }
};

// If `plain`, low is at least kDeep, and `outside` is 0. If not, each m below kDeep is unusual, and
// so are all values outside.
template <bool plain>
struct logit_grad_quick : logit_grad_single {
  static constexpr bool finite = false;
  static constexpr uint32_t limit = plain ? 0xff800000 : 0u - kDeepBits;

  // The bits of m, or one less than those of the bound.
  template <class V>
  auto clamped(V x) const {
    return larger_signed(bits_of(nearer(x)), bits_of(all_of<V>(plain ? low : kDeep)) - 1);
  }
  // NaNs with the sign bit set would pass for values outside; if `plain`, their bits are above the
  // limit.
  template <class V>
  auto unusual(V x, V) const {
    return plain ? bits_of(nearer(x)) : 0u - clamped(x);
  }
  template <class V>
  V quick(V x, V dy) const {
    const V m = float_of(clamped(x));
    const V y = inverse(m, m).times(dy);
    return plain ? (m < all_of<V>(low) ? V{} : y) : y;
  }
  logit_grad_careful careful() const { return {*this}; }
};

template <class M>
struct logit_grad {
  using T = typename M::T;
  double eps;
  explicit logit_grad(const double* attributes) : eps(attributes[0]) {}

  // The first rule that applies wins. Those that need no x are here, the rest in the formula.
  template <class Loop>
  void visit(const Loop& loop) const {
    using Constant = logit_grad_constant<T>;
    const T infinity = __builtin_inff(), nan = __builtin_nanf("");
    if (eps == infinity) return loop(Constant{0, 0});
    if (eps != eps || eps > 1) return loop(Constant{bits_of(nan), 0});
    if (eps == 1) return loop(Constant{bits_of(infinity), bits_of(T{-0.0f})});
    const double low = eps >= 0 ? eps : 0;
    const T outside = eps >= 0 ? 0 : nan;
    if constexpr (__is_same(M, Double)) {
      loop(logit_grad_double{low, outside});
    } else {
      visit_float({float_from(low), float_up_to(up_to_complement(low)), outside}, loop);
    }
  }

  template <class Loop>
  void visit_float(const logit_grad_bounds& bounds, const Loop& loop) const {
    if constexpr (__is_same(M, Half)) {
      loop(logit_grad_half{bounds});
    } else if (!bounds.mirrored()) {
      loop(logit_grad_wide{bounds});
    } else if (bounds.low >= kDeep) {
      loop(logit_grad_quick<true>{{bounds}});
    } else {
      loop(logit_grad_quick<false>{{bounds}});
    }
  }
};

}  // namespace
}  // namespace openaclnn::OPENACLNN_ISA
