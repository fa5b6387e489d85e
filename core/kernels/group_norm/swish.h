// SPDX-License-Identifier: Apache-2.0
// The logistic function is σ(t) = 1 / (1 + E) with E = exp(-t), swish(v) = v σ(t) with t = v times
// swishScale; 1 - σ is computed as E σ, which does not cancel. The formulas are in fp32, for |t| up
// to kMostT and a little more, where (1 + E)^2 does not overflow; exact.h has them for every t.
// Where t is exact, the error of y is at most 1.63 ulp, or 3.89 below zero.
//
// Then, where fp32 is not enough for a group: by its mean, the factors of its channels, the
// extremes of x (forward) and sums (gradient). NaN always needs exact.
#pragma once

#include "core/kernels/group_norm/parameters.h"
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
// polynomial has a relative error of 2^-29.1 for |r| <= 0.0217. The table saves two
// multiplications, which these loops wait for.
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
  void see(FloatRegister sixteenths) { other_ |= bits_of(sixteenths) ^ kSixteenths; }
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

// Limits of the factors of u, of 1 and of x̂ within which neither roundings of subnormal numbers nor
// overflow matter. Zeros never do.
inline constexpr float kLargest = 0x1.fffffep127f;
inline constexpr float kMostFactor = 0x1p110f, kLeastFactor = 0x1p-126f, kLeastAlone = 0x1p-100f;
inline bool is_within(double x, float at_least, float at_most = kMostFactor) {
  const double size = magnitude(x);
  return all(size <= static_cast<double>(at_most),
             (size >= static_cast<double>(at_least)) | (x == 0));
}

// ---- needs_exact, forward ----

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

// ---- needs_exact, gradient ----

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
