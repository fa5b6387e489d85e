// SPDX-License-Identifier: Apache-2.0
// Where fp32 is not enough for a group: by its mean, the factors of its channels, the extremes of x
// (forward) and sums (gradient). NaN always needs exact.
#pragma once

#include "core/kernels/group_norm/parameters.h"
#include "core/kernels/group_norm/swish.h"

namespace openaclnn::OPENACLNN_ISA {
namespace {

// Limits of the factors of u, of 1 and of x̂ within which neither roundings of subnormal numbers nor
// overflow matter. Zeros never do.
inline constexpr float kLargest = 0x1.fffffep127f;
inline constexpr float kMostFactor = 0x1p110f, kLeastFactor = 0x1p-126f, kLeastAlone = 0x1p-100f;
inline bool is_within(double x, float at_least, float at_most = kMostFactor) {
  const double size = magnitude(x);
  return all(size <= static_cast<double>(at_most),
             (size >= static_cast<double>(at_least)) | (x == 0));
}

// ---- forward ----

// Two fp32 numbers hold a mean of at least kTinyMean to 48 bits; a mean of 0 they hold exactly. The
// difference to a mean below kHugeMean does not overflow.
inline constexpr double kTinyMean = 0x1p-100, kHugeMean = 0x1.fffffep102;
inline bool needs_exact(double mean) {
  const double size = magnitude(mean);
  return !(size < kHugeMean) || (size < kTinyMean && size > 0);
}

// Up to where fp32 is enough for v, t and their factors.
struct NormalLimits {
  double gamma, v;

  explicit NormalLimits(const GroupNormCall& call) {
    const double s = call.swish ? magnitude(call.scale) : 0, of_gamma = 0x1p127 / s;
    const double of_v = kMostT / s;
    gamma = of_gamma < 0x1p127 ? of_gamma : 0x1p127, v = of_v < 0x1p126 ? of_v : 0x1p126;
  }
  // For a channel in which no x is further from the mean than `distance`; of_gamma includes rstd.
  bool needs_exact(double of_gamma, double beta, double distance) const {
    const double size = magnitude(of_gamma);
    return !all(size <= gamma, (size >= static_cast<double>(kLeastFactor)) | (size == 0),
                size * distance + magnitude(beta) <= v);
  }
};

// ---- gradient ----

// The Part of the gradient: Σ u and Σ u d; NaN if some t needs exact.
struct Sums {
  double u, ud;

  static Sums none() { return {0, 0}; }
  void add(const Sums& more) { u += more.u, ud += more.ud; }
};
static_assert(sizeof(Sums) == kSumsBytes);

// The factors of one row, in fp64.
struct GradientRow {
  double rstd, gamma, slope, shift;

  GradientRow(const GroupNormCall& call, double of_rstd, int64_t channel)
      : rstd(of_rstd), gamma(value_of(call.gamma, channel)) {
    slope = call.scale * gamma * rstd;
    shift = call.scale * value_of(call.beta, channel);
  }
  double a() const { return rstd * gamma; }

  // Whether fp32 is not enough for its sums or its dx.
  bool needs_exact(const Sums& sums) const {
    const auto fits = [](double x) { return magnitude(x) <= static_cast<double>(kLargest); };
    return !all(fits(slope), fits(shift), is_within(a(), kLeastFactor, kLargest)) ||
           !(rstd <= kMostRstd) || needs_exact_sums(sums.u, sums.ud);
  }
  // Up to here, u d has the digits of u x̂ where x̂ is near 1.
  static constexpr double kMostRstd = 0x1p20;

  // Sums below 2^-100 have terms that lost digits as subnormal numbers. Those of dy = 0 are 0.
  static bool needs_exact_sums(double u, double ux) {
    return !all(is_within(u, 0x1p-100f, 0x1p120f), is_within(ux, 0x1p-100f, 0x1p120f));
  }
};

// b and c of a group.
struct GradientPair {
  double b, c;

  GradientPair(double rstd, const double* pair) : b(-rstd * pair[0]), c(-rstd * pair[1] * rstd) {}
  bool needs_exact() const { return !all(is_within(b, kLeastAlone), is_within(c, kLeastFactor)); }
};

}  // namespace
}  // namespace openaclnn::OPENACLNN_ISA
