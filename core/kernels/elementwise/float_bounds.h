// SPDX-License-Identifier: Apache-2.0
// Floats that separate the other floats in the same way as a given double does.
#pragma once

#include "core/kernels/bits.h"

namespace openaclnn::OPENACLNN_ISA {
namespace {

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
