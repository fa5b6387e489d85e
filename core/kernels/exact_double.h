// SPDX-License-Identifier: Apache-2.0
// Sums and products of doubles keep here what rounding takes from them: they are high + low.
#pragma once

#include "core/kernels/fused.h"

namespace openaclnn::OPENACLNN_ISA {
namespace {

// An unevaluated sum; |low| is at most about an ulp of high.
struct Pair {
  double high, low;
};

inline Pair sum_of(double a, double b) {
  const double sum = a + b, part = sum - a;
  return {sum, (a - (sum - part)) + (b - part)};
}

inline Pair product_of(double a, double b) {
  const double product = a * b;
  return {product, fused(a, b, -product)};
}

// Leaves out low * low, which is below 2^-105 of the product.
inline Pair times(Pair a, Pair b) {
  const Pair y = product_of(a.high, b.high);
  return {y.high, y.low + fused(a.high, b.low, a.low * b.high)};
}

}  // namespace
}  // namespace openaclnn::OPENACLNN_ISA
