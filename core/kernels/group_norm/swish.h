// SPDX-License-Identifier: Apache-2.0
// The logistic function is σ(t) = 1 / (1 + E) with E = exp(-t), swish(v) = v σ(t) with t = v times
// swishScale, and the gradient of swish; 1 - σ is computed as E σ, which does not cancel. `near` is
// in fp32, for p = -t log2(e) from -64 to 64, where E = 2^p and (1 + E)^2 does not overflow. The
// gradient takes p, computed from factors that contain log2(e) and are rounded anyway. y takes t;
// where t is exact, its error is at most 1.63 ulp, or 3.89 below zero. `wide` is in fp64, for every
// t.
#pragma once

#include "core/kernels/bits.h"
#include "core/kernels/math.h"

namespace openaclnn::OPENACLNN_ISA {
namespace {

inline constexpr double kZero = 320;  // from here exp(-t) counts as 0, as it is times fp32 / fp32
inline constexpr float kLargest = 0x1.fffffep127f;

// Checks whether sixteenths of p are near, for one value and for a whole register. A value that is
// not near differs from kSixteenths in some bit that is not in kNearBits.
inline constexpr uint32_t kNearBits = 2047;
inline bool is_near(float sixteenths) {
  return ((bits_of(sixteenths) ^ kSixteenths) & ~kNearBits) == 0;
}

class AllNear {
 public:
  template <int K>
  [[gnu::always_inline]] void see(const Registers<K>& sixteenths) {
#pragma GCC unroll 8
    for (int k = 0; k < K; ++k)
      other_ = or_different(other_, bits_of(sixteenths.r[k]), all_words(kSixteenths));
  }
  bool are() const { return at_most(other_, kNearBits); }

 private:
  WordRegister other_ = {};
};

// dy σ (1 + t (1 - σ)) = dy (1 + E + t E) / (1 + E)^2
template <class V>
[[gnu::always_inline]] inline V swish_gradient_near(V dy, V p) {
  const V e = scaled_power(p);  // -ln2 E
  const V whole = fused(e, all_of<V>(static_cast<float>(-kLog2e)), all_of<V>(1));
  return dy * (fused(p, e, whole) / (whole * whole));
}

// v σ = v / (1 + E)
template <class V>
[[gnu::always_inline]] inline V swish_near(V v, V t) {
  return v / (all_of<V>(1) + exp_of_minus(t));
}

struct Logistic {
  double value, rest;  // σ and 1 - σ
};

inline Logistic logistic_wide(double t) {
  const double size = magnitude(t);
  const Power power = power_of_2((size > kZero ? -kZero : -size) * kLog2e);
  const double e = size > kZero ? 0.0 : power.scale * (1 + power.fraction);
  const double larger = 1 / (1 + e), smaller = e * larger;
  return {t > 0 ? larger : smaller, t > 0 ? smaller : larger};
}

inline float swish_gradient_wide(double dy, double t) {
  const Logistic l = logistic_wide(t);
  return static_cast<float>(dy * (l.value * (1 + t * l.rest)));
}

inline float swish_wide(double v, double t) {
  return static_cast<float>(v * logistic_wide(t).value);
}

}  // namespace
}  // namespace openaclnn::OPENACLNN_ISA
