// SPDX-License-Identifier: Apache-2.0
// The logistic function is σ(t) = 1 / (1 + E) with E = exp(-t), swish(v) = v σ(t) with t = v times
// swishScale; 1 - σ is computed as E σ, which does not cancel. The formulas are in fp32, for |t| up
// to kMostT and a little more, where (1 + E)^2 does not overflow; exact.h has them for every t. Where
// t is exact, the error of y is at most 1.63 ulp, or 3.89 below zero.
#pragma once

#include "core/kernels/math.h"

namespace openaclnn::OPENACLNN_ISA {
namespace {

inline constexpr double kMostT = 44;  // log2(e) times that is below 64 - 1/32

// Adding this rounds to sixteenths k / 16: where -1024 <= k < 1024, and nowhere else, the last 11
// bits are k + 1024 and the others kSixteenths.
inline constexpr float kShiftToSixteenth = 0x1.8008p19f;
inline constexpr uint32_t kSixteenths = 0x49400000;

// Entry j is the bits of 2^(j/16), minus (j + 1024) 2^19. exp_of_minus() adds 16 n + j + 1024,
// shifted left by 19. This restores what was subtracted, and adds n to the exponent.
inline constexpr uint32_t kPowers[16] = {
    0x1f800000, 0x1f7daac3, 0x1f7b95c2, 0x1f79c3d3, 0x1f7837f0, 0x1f76f532, 0x1f75fed7, 0x1f75583f,
    0x1f7504f3, 0x1f7508a4, 0x1f75672a, 0x1f76248c, 0x1f7744fd, 0x1f78ccdf, 0x1f7ac0c7, 0x1f7d257d};

// Returns -t log2(e) rounded to sixteenths, in the last bits.
template <class V>
[[gnu::always_inline]] inline V sixteenths(V t) {
  return fused(t, all_of<V>(-0x1.715476p0f), all_of<V>(kShiftToSixteenth));
}

// Returns exp(-t) = 2^(n + j/16) exp(r): the product of n + j/16 and ln2 loses n 2^-29. The
// polynomial has a relative error of 2^-29.1 for |r| <= 0.0217. The table saves two multiplications,
// which these loops wait for.
template <class V>
[[gnu::always_inline]] inline V exp_of_minus(V t) {
  const V at = sixteenths(t);
  const V r = fused(all_of<V>(kShiftToSixteenth) - at, all_of<V>(kLn2High), -t);
  const V q = polynomial(r, 0x1.555762p-3f, 0x1.00022p-1f, 1.0f);
  const V power = float_of(pick(kPowers, bits_of(at)) + (bits_of(at) << 19));
  return fused(power * r, q, power);
}

// Collects whether some t needs exact: its sixteenths then differ from kSixteenths in some bit that
// is not in kIndexBits.
class NeedsExact {
 public:
  template <int K>
  [[gnu::always_inline]] void see(const Registers<K>& sixteenths) {
#pragma GCC unroll 8
    for (int k = 0; k < K; ++k)
      other_ |= bits_of(sixteenths.r[k]) ^ kSixteenths;
  }
  bool any() const { return OPENACLNN_ISA::any(above(other_, kIndexBits)); }
  static bool of(float sixteenths) {
    return ((bits_of(sixteenths) ^ kSixteenths) & ~kIndexBits) != 0;
  }

 private:
  static constexpr uint32_t kIndexBits = 2047;
  WordRegister other_ = {};
};

// dy σ (1 + t (1 - σ)) = dy (1 + E + t E) / (1 + E)^2
template <class V>
[[gnu::always_inline]] inline V swish_gradient(V dy, V t) {
  const V e = exp_of_minus(t), whole = e + all_of<V>(1);
  return dy * (fused(t, e, whole) / (whole * whole));
}

// v σ = v / (1 + E)
template <class V>
[[gnu::always_inline]] inline V swish(V v, V t) {
  return v / (all_of<V>(1) + exp_of_minus(t));
}

}  // namespace
}  // namespace openaclnn::OPENACLNN_ISA
