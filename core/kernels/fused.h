// SPDX-License-Identifier: Apache-2.0
// The fused multiply-add, with the same bits everywhere, and sums of doubles that keep what
// rounding takes from them.
#pragma once

#include "core/kernels/bits.h"

namespace openaclnn::OPENACLNN_ISA {
namespace {

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

// Returns c - a * b, rounded once. In -fused(…) GCC 12 loses the sign of a zero, so b must not be
// 1.
inline float fused_minus(float a, float b, float c) { return fused(a, -b, c); }

// An unevaluated sum high + low of doubles, which keeps what rounding takes from a sum; |low| is at
// most about an ulp of high.
struct Pair {
  double high, low;
};

inline Pair sum_of(double a, double b) {
  const double sum = a + b, part = sum - a;
  return {sum, (a - (sum - part)) + (b - part)};
}

}  // namespace
}  // namespace openaclnn::OPENACLNN_ISA
