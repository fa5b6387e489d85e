// SPDX-License-Identifier: Apache-2.0
// The logistic function is σ(t) = 1 / (1 + E) with E = exp(-t), swish(v) = v σ(t) with t = v times
// swishScale; 1 - σ is computed as E σ, which does not cancel. The formulas are in fp32, for p = -t
// log2(e) from -64 to 64, where E = 2^p and (1 + E)^2 does not overflow; exact.h has them for every
// t. The gradient takes p, computed from factors that contain log2(e) and are rounded anyway. y
// takes t; where t is exact, its error is at most 1.63 ulp, or 3.89 below zero.
#pragma once

#include "core/kernels/numbers.h"
#include "core/kernels/math.h"

namespace openaclnn::OPENACLNN_ISA {
namespace {

inline constexpr double kMostT = 44;  // log2(e) times that is below 64 - 1/32

// Adding this rounds to sixteenths k / 16: where -1024 <= k < 1024, and nowhere else, the last 11
// bits are k + 1024 and the others kSixteenths.
inline constexpr float kShiftToSixteenth = 0x1.8008p19f;
inline constexpr uint32_t kSixteenths = 0x49400000;

// Entry j is the bits of -ln2 2^(j/16), minus (j + 1024) 2^19. times_root() adds 16 n + j + 1024,
// shifted left by 19. This restores what was subtracted, and adds n to the exponent.
inline constexpr uint32_t kRoots[16] = {
    0x9f317218, 0x9f314d47, 0x9f318182, 0x9f3212b8, 0x9f330509, 0x9f345cc0, 0x9f361e5b, 0x9f384e8a,
    0x9f3af233, 0x9f3b0739, 0x9f38d44f, 0x9f36e324, 0x9f3536a4, 0x9f33d1d6, 0x9f32b7e9, 0x9f31ec2d};

// Entry j is the bits of 2^(j/16), minus (j + 1024) 2^19. Let E be exp(-t) = 2^p. The gradient uses
// kRoots and gets -ln2 E, because p times that is t E. The forward call uses this table and gets E,
// because it needs 1 + E, which is then an addition: these loops wait for multiplications, and Zen
// 4 executes additions in other pipes.
inline constexpr uint32_t kPowers[16] = {
    0x1f800000, 0x1f7daac3, 0x1f7b95c2, 0x1f79c3d3, 0x1f7837f0, 0x1f76f532, 0x1f75fed7, 0x1f75583f,
    0x1f7504f3, 0x1f7508a4, 0x1f75672a, 0x1f76248c, 0x1f7744fd, 0x1f78ccdf, 0x1f7ac0c7, 0x1f7d257d};

// These two return p, and -t log2(e), rounded to sixteenths in the last bits (kShiftToSixteenth).
template <class V>
[[gnu::always_inline]] inline V sixteenths(V p) {
  return p + all_of<V>(kShiftToSixteenth);
}
template <class V>
[[gnu::always_inline]] inline V sixteenths_of_minus(V t) {
  return fused(t, all_of<V>(-0x1.715476p0f), all_of<V>(kShiftToSixteenth));
}

// Multiplies 2^(n + j/16) of a table by (1 + r q), which adds one rounding to that of the root.
template <class V>
[[gnu::always_inline]] inline V times_root(const uint32_t (&table)[16], V sixteenths, V r, V q) {
  const V root = float_of(pick(table, bits_of(sixteenths)) + (bits_of(sixteenths) << 19));
  return fused(root * r, q, root);
}

// Returns -ln2 2^p as -ln2 2^(n + j/16) 2^r with |r| <= 1/32, for p of that range. The relative
// error is 2^-23, that of the polynomial is 2^-29.2, and r is exact. The table saves two
// multiplications, which these loops wait for.
template <class V>
[[gnu::always_inline]] inline V scaled_power(V p) {
  const V at = sixteenths(p), r = p - (at - all_of<V>(kShiftToSixteenth));
  const V q = polynomial(r, 0x1.c6ac6ap-5f, 0x1.ebfff4p-3f, 0x1.62e43p-1f);
  return times_root(kRoots, at, r, q);
}

// Returns exp(-t) for |t| <= kMostT. p itself is not rounded: only the product of n +
// j/16 and ln2 loses n 2^-29. The polynomial has a relative error of 2^-29.1 for |r| <= 0.0217.
template <class V>
[[gnu::always_inline]] inline V exp_of_minus(V t) {
  const V at = sixteenths_of_minus(t);
  const V r = fused(all_of<V>(kShiftToSixteenth) - at, all_of<V>(kLn2High), -t);
  const V q = polynomial(r, 0x1.555762p-3f, 0x1.00022p-1f, 1.0f);
  return times_root(kPowers, at, r, q);
}

// Collects whether some p needs exact: its sixteenths then differ from kSixteenths in some bit that
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
[[gnu::always_inline]] inline V swish_gradient(V dy, V p) {
  const V e = scaled_power(p);  // -ln2 E
  const V whole = fused(e, all_of<V>(static_cast<float>(-kLog2e)), all_of<V>(1));
  return dy * (fused(p, e, whole) / (whole * whole));
}

// v σ = v / (1 + E)
template <class V>
[[gnu::always_inline]] inline V swish(V v, V t) {
  return v / (all_of<V>(1) + exp_of_minus(t));
}

}  // namespace
}  // namespace openaclnn::OPENACLNN_ISA
