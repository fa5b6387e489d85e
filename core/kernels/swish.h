// SPDX-License-Identifier: Apache-2.0
// The logistic function σ(t) = 1 / (1 + E), E = exp(-t), and what swish and its gradient make of
// it; 1 - σ is E σ, without cancellation. `near` is in fp32, for |t| <= kNear, `wide` in fp64 for
// every t.
#pragma once

#include "core/kernels/bits.h"
#include "core/kernels/math.h"

namespace openaclnn::OPENACLNN_ISA {
namespace {

inline constexpr float kNear = 80;    // beyond, σ is close to the least normal number
inline constexpr double kZero = 320;  // from here exp(-t) counts as 0: times fp32 / fp32 it is
inline constexpr float kLargest = 0x1.fffffep127f;

// exp(-t): -t = n ln2 - r, exp(-r) by the polynomial of exp_tail_single
inline float exp_of_minus(float t) {
  const float shifted = fused(t, -0x1.715476p0f, kShiftF32);
  const float n = shifted - kShiftF32;
  float r = fused(n, 0x1.62e430p-1f, t);
  r = fused(n, -0x1.05c610p-29f, r);
  const float m = fused(r * r, exp_tail_single(-r), -r);
  return float_of(bits_of(1 + m) + (bits_of(shifted) << 23));
}

struct Logistic {
  float value, rest;  // σ and 1 - σ
};

inline Logistic logistic_near(float t) {
  const float e = exp_of_minus(t), value = 1 / (1 + e);
  return {value, e * value};
}

// exp(-t) for t > kNear, where fp32 ends: the fourth power of exp(-t / 4), with what rounding t / 4
// loses.
inline double exp_of_minus_wide(double t) {
  const double quarter = (t > kZero ? kZero : t) / 4;
  const float rounded = static_cast<float>(quarter);
  const double e = exp_of_minus(rounded), square = e * e;
  const double all = square * square * (1 - 4 * (quarter - static_cast<double>(rounded)));
  return t > kZero ? 0.0 : all;
}

struct WideLogistic {
  double value, rest;
};

inline WideLogistic logistic_wide(double t) {
  const double size = magnitude(t);
  const bool near = size <= static_cast<double>(kNear);
  const Logistic usual = logistic_near(near ? static_cast<float>(t) : 0.0f);
  const double e = exp_of_minus_wide(near ? static_cast<double>(kNear) : size);
  const double value = t > 0 ? 1.0 : e, rest = t > 0 ? e : 1.0;
  return {near ? static_cast<double>(usual.value) : value,
          near ? static_cast<double>(usual.rest) : rest};
}

// dy σ (1 + t (1 - σ))
inline float swish_gradient(float dy, float t, const Logistic& l) {
  return dy * (l.value * fused(t, l.rest, 1.0f));
}

inline float swish_gradient_near(float dy, float t) {
  return swish_gradient(dy, t, logistic_near(t));
}

inline float swish_gradient_wide(float dy, double t) {
  const WideLogistic l = logistic_wide(t);
  return static_cast<float>(static_cast<double>(dy) * (l.value * (1 + t * l.rest)));
}

// v σ
inline float swish_near(float v, float t) { return v * logistic_near(t).value; }

inline float swish_wide(double v, double t) {
  return static_cast<float>(v * logistic_wide(t).value);
}

}  // namespace
}  // namespace openaclnn::OPENACLNN_ISA
