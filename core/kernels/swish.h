// SPDX-License-Identifier: Apache-2.0
// The logistic function σ(t) = 1 / (1 + E), E = exp(-t), and what swish and its gradient make of
// it; 1 - σ is E σ, without cancellation. `near` is in fp32, for |t| <= kNear, `wide` in fp64 for
// every t.
#pragma once

#include "core/kernels/bits.h"
#include "core/kernels/math.h"

namespace openaclnn::OPENACLNN_ISA {
namespace {

inline constexpr float kNear = 44;    // (1 + E)^2 is a number up to 44.3
inline constexpr double kZero = 320;  // from here exp(-t) counts as 0: times fp32 / fp32 it is
inline constexpr float kLargest = 0x1.fffffep127f;

// dy σ (1 + t (1 - σ)) = dy (1 + E + t E) / (1 + E)^2
template <class V>
inline V swish_gradient_near(V dy, V t) {
  const V e = exp_of_minus(t), whole = all_of<V>(1) + e;
  return dy * (fused(t, e, whole) / (whole * whole));
}

// v σ
template <class V>
inline V swish_near(V v, V t) {
  return v * (all_of<V>(1) / (all_of<V>(1) + exp_of_minus(t)));
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

inline float swish_gradient_wide(float dy, double t) {
  const Logistic l = logistic_wide(t);
  return static_cast<float>(static_cast<double>(dy) * (l.value * (1 + t * l.rest)));
}

inline float swish_wide(double v, double t) {
  return static_cast<float>(v * logistic_wide(t).value);
}

}  // namespace
}  // namespace openaclnn::OPENACLNN_ISA
