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

// exp(-t): -t = n ln2 + r. One product with ln2 loses n 2^-29, a twentieth of what rounding t lost.
// The polynomial is that of exp_tail_single, whose last steps are in the chain of the others.
template <class V>
inline V exp_of_minus(V t) {
  const V shift = all_of<V>(kShiftF32), one = all_of<V>(1);
  const V shifted = fused(t, all_of<V>(-0x1.715476p0f), shift);
  const V r = fused(shift - shifted, all_of<V>(0x1.62e430p-1f), -t);
  const V m = fused(fused(exp_tail_single(r), r, one), r, one);
  return float_of(bits_of(m) + (bits_of(shifted) << 23));
}

template <class V>
struct Logistic {
  V value, rest;  // σ and 1 - σ
};

inline Logistic<float> logistic_near(float t) {
  const float e = exp_of_minus(t), value = 1 / (1 + e);
  return {value, e * value};
}

// exp(-t) for t > kNear, where fp32 ends: the fourth power of exp(-t / 4), with what rounding t / 4
// and the one product with ln2 lose: (0x1.62e430p-1 - ln2) / ln2 of t.
inline double exp_of_minus_wide(double t) {
  const double quarter = (t > kZero ? kZero : t) / 4;
  const float rounded = static_cast<float>(quarter);
  const double e = exp_of_minus(rounded), square = e * e;
  const double lost = quarter - static_cast<double>(rounded) + quarter * 0x1.79a8dcp-29;
  const double all = square * square * (1 - 4 * lost);
  return t > kZero ? 0.0 : all;
}

inline Logistic<double> logistic_wide(double t) {
  const double size = magnitude(t);
  const bool near = size <= static_cast<double>(kNear);
  const Logistic<float> usual = logistic_near(near ? static_cast<float>(t) : 0.0f);
  const double e = exp_of_minus_wide(near ? static_cast<double>(kNear) : size);
  const double value = t > 0 ? 1.0 : e, rest = t > 0 ? e : 1.0;
  return {near ? static_cast<double>(usual.value) : value,
          near ? static_cast<double>(usual.rest) : rest};
}

// dy σ (1 + t (1 - σ)). σ and 1 - σ in a struct of four registers each cost 30 moves through
// memory.
template <class V>
inline V swish_gradient_near(V dy, V t) {
  const V one = all_of<V>(1), e = exp_of_minus(t), value = one / (one + e);
  return dy * (value * fused(t, e * value, one));
}

inline float swish_gradient_wide(float dy, double t) {
  const Logistic<double> l = logistic_wide(t);
  return static_cast<float>(static_cast<double>(dy) * (l.value * (1 + t * l.rest)));
}

// v σ
template <class V>
inline V swish_near(V v, V t) {
  const V one = all_of<V>(1);
  return v * (one / (one + exp_of_minus(t)));
}

inline float swish_wide(double v, double t) {
  return static_cast<float>(v * logistic_wide(t).value);
}

}  // namespace
}  // namespace openaclnn::OPENACLNN_ISA
