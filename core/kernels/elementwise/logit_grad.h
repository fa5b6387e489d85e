// SPDX-License-Identifier: Apache-2.0
// The gradient of logit: dy / (x (1 - x)) between eps and 1 - eps.
#pragma once

#include "core/kernels/elementwise/float_bounds.h"
#include "core/kernels/elementwise/formula.h"
#include "core/kernels/exact_double.h"
#include "core/kernels/math.h"

namespace openaclnn::OPENACLNN_ISA {
namespace {

// This form is used if eps alone decides the result: NaN, 0, or infinity with the sign of dy.
struct logit_grad_constant {
  uint32_t value, sign;
  float operator()(float, float dy) const { return float_of(value | (bits_of(dy) & sign)); }
};

struct logit_grad_bounds {
  float low, high, beyond;
  template <class V>
  V bounded(V x, V y) const {  // y where x is NaN
    const V end = all_of<V>(beyond);
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

// This form computes in double and is right for every x, dy and eps.
struct logit_grad_wide : logit_grad_bounds {
  float operator()(float x, float dy) const {
    const double z = x;
    return bounded(x, static_cast<float>(dy / (z * (1 - z))));
  }
};

// Below it, remainders may underflow.
inline constexpr float kDeep = 0x1p-51f;

// q = dy (1 / d), corrected by one Newton step on the exact remainder dy - q d, has an error
// slightly above 0.5 ulp. With m, the smaller of x and 1 - x, which is exact, d = m - m^2 is kept
// as high + low; m - d is exact because d >= m / 2. An m of magnitude below kDeep and a nonzero dy
// below 2^-89 are left to other forms. m < low finds the values outside, so the bounds must be
// mirrored. If `plain`, low is at least kDeep, so that no m below kDeep is inside, and `beyond` is
// 0, which AVX-512 writes with the last product.
template <bool plain>
struct logit_grad_single : logit_grad_wide {
  static constexpr bool finite = false;
  // The limit of dy is 2^-89. If not `plain`, dy and m have one limit: shifted left by one, the
  // bits of 2^-89 are those of kDeep.
  uint32_t limit = plain ? 0u - bits_of(0x1p-89f) : ~bits_of(kDeep);

  static float nearer(float x) {
    const float c = 1 - x;
    return x < c ? x : c;
  }
  static FloatRegister nearer(FloatRegister x) {  // at most one of the two is negative
    return float_of(smaller_signed(bits_of(x), bits_of(all_of<FloatRegister>(1) - x)));
  }

  template <class V>
  V within(V m, V y) const {  // y where m is NaN
    return m < all_of<V>(low) ? (plain ? V{} : all_of<V>(beyond)) : y;
  }

  template <class V>
  auto unusual(V x, V dy) const {
    if constexpr (plain) {
      return 0u - (bits_of(dy) & 0x7fffffff);
    } else {
      return larger(~(bits_of(nearer(x)) & 0x7fffffff), 0u - (bits_of(dy) << 1));
    }
  }

  // Where `near` is below kDeep the result is not used, and m is kDeep, so that a subnormal x is
  // not multiplied (formula.h).
  template <class V>
  V quick(V x, V dy) const {
    const V near = nearer(x), m = near < all_of<V>(kDeep) ? all_of<V>(kDeep) : near;
    const V d = fused_minus(m, m, m), d_low = fused_minus(m, m, m - d);
    const V inverse = all_of<V>(1) / d;
    const V q = dy * inverse;
    const V excess = fused(q, d_low, fused(q, d, -dy));  // +0 where dy is 0 of either sign
    return within(near, fused_minus(excess, inverse, q));
  }

  float general(float x, float dy) const { return (*this)(x, dy); }

  // Uses 2^24 d and 2^-24 q, so that 1 / d does not overflow for subnormal m, nor q before the
  // result does. For m below kDeep, d is m, and a subnormal m is multiplied only once. Returns q if
  // the remainder is NaN: if d is 0, or dy or q is infinite or NaN. `general` computes dy below
  // 2^-89.
  struct Careful {
    static constexpr bool finite = true, cheap = true;
    static constexpr uint32_t limit = 0u - 0x13000000;  // the bits of 2^-89
    logit_grad_single form;

    template <class V>
    static auto unusual(V, V dy) {
      return 0u - (bits_of(dy) & 0x7fffffff);
    }

    template <class V>
    V quick(V x, V dy) const {
      const V m = nearer(x), large = m * all_of<V>(0x1p24f);
      const V f = m < all_of<V>(kDeep) ? all_of<V>(-0.0f) : m;  // -0 leaves d the sign of a zero m
      const V d = fused_minus(f, large, large), d_low = fused_minus(f, large, large - d);
      const V inverse = all_of<V>(1) / d, q = dy * inverse;
      const V excess = fused(q, d_low, fused(q, d, -dy)), small = fused_minus(excess, inverse, q);
      const V y = (small == small ? small : q) * all_of<V>(0x1p24f);
      return with_one_nan(form.within(m, y));
    }
    float general(float x, float dy) const { return form.general(x, dy); }
  };
  Careful careful() const { return {*this}; }
};

template <class M>
struct logit_grad {
  using T = typename M::T;
  double eps;
  explicit logit_grad(const double* attributes) : eps(attributes[0]) {}

  template <class Loop>
  void visit(const Loop& loop) const {
    if constexpr (__is_same(M, Double)) {
      const double infinity = __builtin_inf(), nan = __builtin_nan("");
      if (eps != eps || (eps > 1 && eps < infinity))
        return loop(logit_grad_double_constant{bits_of(nan), 0});
      if (eps == infinity) return loop(logit_grad_double_constant{0, 0});
      if (eps == 1) return loop(logit_grad_double_constant{bits_of(infinity), uint64_t{1} << 63});
      loop(logit_grad_double{eps >= 0 ? eps : 0, eps >= 0 ? 0 : nan});
    } else {
      visit_float(loop);
    }
  }

  // The first rule that applies wins. Here are those that need no x; the formula has the others.
  template <class Loop>
  void visit_float(const Loop& loop) const {
    const float infinity = __builtin_inff(), nan = __builtin_nanf("");
    if (eps != eps) return loop(logit_grad_constant{bits_of(nan), 0});
    if (eps == infinity) return loop(logit_grad_constant{0, 0});
    if (eps > 1) return loop(logit_grad_constant{bits_of(nan), 0});
    if (eps == 1) return loop(logit_grad_constant{bits_of(infinity), 0x80000000});
    const logit_grad_bounds bounds{eps >= 0 ? float_from(eps) : 0,
                                   eps >= 0 ? float_up_to(up_to_complement(eps)) : 1,
                                   eps >= 0 ? 0 : nan};
    if constexpr (__is_same(M, Half)) {
      loop(logit_grad_half{bounds});
    } else if (!bounds.mirrored()) {
      loop(logit_grad_wide{bounds});
    } else if (bounds.low >= kDeep) {
      loop(logit_grad_single<true>{{bounds}});
    } else {
      loop(logit_grad_single<false>{{bounds}});
    }
  }
};

}  // namespace
}  // namespace openaclnn::OPENACLNN_ISA
