// SPDX-License-Identifier: Apache-2.0
// Single numbers: their bits, the fused multiply-add with the same bits everywhere, sums that keep
// what rounding takes from them, and floats next to a double.
#pragma once

#include <cstdint>

// Put this before a loop whose iterations are independent although its output may be one of its
// inputs.
#if defined(__clang__)
#define OPENACLNN_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define OPENACLNN_INDEPENDENT _Pragma("GCC ivdep")
#endif

namespace openaclnn::OPENACLNN_ISA {
namespace {

inline constexpr uint32_t bits_of(float x) { return __builtin_bit_cast(uint32_t, x); }
inline uint64_t bits_of(double x) { return __builtin_bit_cast(uint64_t, x); }
inline float float_of(uint32_t bits) { return __builtin_bit_cast(float, bits); }
inline double double_of(uint64_t bits) { return __builtin_bit_cast(double, bits); }

// Without branches.
inline bool all(bool a, bool b, bool c = true) {
  return (static_cast<int>(a) & static_cast<int>(b) & static_cast<int>(c)) != 0;
}

inline int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }
inline float magnitude(float x) { return __builtin_fabsf(x); }
inline double magnitude(double x) { return __builtin_fabs(x); }
inline double copy_sign(double x, double y) { return __builtin_copysign(x, y); }
// condition ? 0 : x, by a mask. With a conditional expression, GCC interleaves the choice with that
// of `canonical`, which costs two more comparisons.
inline double zero_if(bool condition, double x) {
  return double_of(bits_of(x) & (static_cast<uint64_t>(condition) - 1));
}

// Returns a * b + c, rounded once.
inline float fused(float a, float b, float c) {
#if defined(__FMA__) || defined(__aarch64__)
  return __builtin_fmaf(a, b, c);
#else
  // The product is exact in double. The sum is rounded to odd there (when inexact, its last bit is
  // set), so that the rounding to float, which is 29 bits shorter, gives the same as a single
  // rounding.
  const double product = static_cast<double>(a) * b, addend = c;
  const double sum = product + addend;
  const double part = sum - product;
  const double lost = (product - (sum - part)) + (addend - part);
  const int64_t bits = __builtin_bit_cast(int64_t, sum);
  const int64_t towards = (bits ^ __builtin_bit_cast(int64_t, lost)) < 0 ? -1 : 1;
  const int64_t step = lost * lost > 0 ? towards : 0;
  return static_cast<float>(double_of(static_cast<uint64_t>((bits & 1) == 0 ? bits + step : bits)));
#endif
}

inline double fused(double a, double b, double c) {
  return __builtin_fma(a, b, c);
}  // without FMA libm's, exact but slow

// An unevaluated sum high + low of doubles, which keeps what rounding takes from a sum; |low| is at
// most about an ulp of high.
struct Pair {
  double high, low;
};

inline Pair sum_of(double a, double b) {
  const double sum = a + b, part = sum - a;
  return {sum, (a - (sum - part)) + (b - part)};
}

// ---- floats that separate the other floats in the same way as a given double does ----

// The least float that is not below x, and the greatest that is not above: comparing a float with
// them is the same as comparing it with x.
inline float float_from(double x) {
  const auto nearest = static_cast<float>(x);
  return nearest < x
             ? (nearest < 0 ? float_of(bits_of(nearest) - 1) : float_of(bits_of(nearest) + 1))
             : nearest;
}
inline float float_up_to(double x) { return -float_from(-x); }

// The least float above x.
inline float float_above(double x) {
  const float next = float_from(x);
  if (next > x) return next;
  return next == 0 ? 0x1p-149f : float_of(next < 0 ? bits_of(next) - 1 : bits_of(next) + 1);
}

// The greatest double that is not above 1 - eps, which for 0 <= eps <= 1 may need more digits.
inline double up_to_complement(double eps) {
  const double nearest = 1 - eps;
  return 1 - nearest < eps ? double_of(bits_of(nearest) - 1) : nearest;
}

}  // namespace
}  // namespace openaclnn::OPENACLNN_ISA
