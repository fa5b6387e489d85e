// SPDX-License-Identifier: Apache-2.0
// Computes v = (x - mean) rstd γ + β and t = s v in fp32 or, beyond its range, in fp64.
#pragma once

#include "core/kernels/group_norm/partition.h"

namespace openaclnn::OPENACLNN_ISA {
namespace {

// Limits of the factors of u, of 1 and of x̂ in dx within which neither roundings of subnormal
// numbers nor overflow matter. Zeros never do.
inline constexpr float kMostFactor = 0x1p110f, kLeastFactor = 0x1p-126f, kLeastAlone = 0x1p-100f;
inline bool is_within(double x, float at_least, float at_most = kMostFactor) {
  const double size = magnitude(x);
  return all(size <= static_cast<double>(at_most),
             (size >= static_cast<double>(at_least)) | (x == 0));
}

// The factors include rstd and s. γ and slope are NaN where fp32 is not enough: if a difference to
// the mean, a factor or, with a tiny s, v itself overflows, if γ loses digits as a subnormal
// number, or if the mean is too small (NaN).
struct QuickFactors {
  float gamma, beta, slope, shift;
};

inline QuickFactors quick_factors(const GroupNormCall& call, double mean, double gamma,
                                  float beta) {
  const double s = call.scale, largest = kLargest;
  const double slope = s * gamma, shift = s * static_cast<double>(beta);
  const bool tiny = call.swish & (magnitude(s) < 0x1p-120);
  const bool ordinary = all(is_within(gamma, kLeastFactor, kLargest), magnitude(slope) <= largest,
                            magnitude(shift) <= largest);
  const bool fits = ordinary & !tiny & (magnitude(mean) < static_cast<double>(kHugeMean));
  const float nan = __builtin_nanf("");
  return {fits ? static_cast<float>(gamma) : nan, beta, fits ? static_cast<float>(slope) : nan,
          static_cast<float>(shift)};
}

// The factors of one channel, for every x.
struct GeneralFactors {
  QuickFactors quick;
  float high, low;
  double mean, gamma, scale;

  float distance(float x) const { return (x - high) - low; }
  double wide(float x) const { return (static_cast<double>(x) - mean) * gamma + quick.beta; }

  float value(float x) const {
    const float usual = fused(distance(x), quick.gamma, quick.beta);
    const float rare = static_cast<float>(wide(x));
    return quick.gamma == quick.gamma ? usual : rare;
  }
  // Usual elements always have the bits of the quick formula, because their neighbours depend on
  // the layout.
  float swish(float x) const {
    const float d = distance(x), v = fused(d, quick.gamma, quick.beta);
    const float t = fused(d, quick.slope, quick.shift), usual = swish_quick(v, t);
    const float rare = swish_wide(wide(x), scale * wide(x));
    return is_usual(sixteenths_of_minus(t)) ? usual : rare;
  }
};

// Returns the bits of the largest |value(i)|, i < n; those of NaN are larger than those of numbers.
[[gnu::always_inline]] inline uint32_t largest_bits(int64_t n, const auto& value) {
  uint32_t most = 0;
  for (int64_t i = 0; i < n; ++i) most = larger(most, bits_of(magnitude(value(i))));
  return most;
}

inline double normalised_wide(float x, float mean, float rstd) {
  return (static_cast<double>(x) - static_cast<double>(mean)) * static_cast<double>(rstd);
}

// Returns u of an element from p in fp32 and t in fp64; where p is unusual, u is multiplied by
// `rescale`. Usual elements always have the bits of the quick formula, because their neighbours
// depend on the layout. (Where this is a call, GCC 12 does not vectorise the loop.)
[[gnu::always_inline]] inline float swish_gradient_general(float dy, float p, double t,
                                                           double rescale) {
  const float usual = swish_gradient_quick(dy, p);
  const float rare = swish_gradient_wide(static_cast<double>(dy) * rescale, t);
  return is_usual(sixteenths(p)) ? usual : rare;
}

}  // namespace
}  // namespace openaclnn::OPENACLNN_ISA
