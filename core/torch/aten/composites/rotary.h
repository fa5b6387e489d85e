// SPDX-License-Identifier: Apache-2.0
// Rotary embedding: y = x cos + turned(x) sin.
#pragma once

#include "core/torch/aten/composites/checks.h"

namespace openaclnn::aten {

// Mode 0: of the halves (a, b) it is (-b, a); 1: of neighbours; 2: of the quarters (a, b, c, d) it
// is (-b, a, -d, c). Its transpose is its negative: it rotates by 90 degrees.
inline Tensor turned(const Tensor& x, int64_t mode) {
  require(mode >= 0 && mode <= 2, "mode must be in [0, 3], but got ", mode);
  if (mode == 1) {
    const int64_t pairs = halves(x, -1).first.size(-1);
    const auto parts = x.unflatten(-1, {pairs, 2}).unbind(-1);
    return at::stack({-parts[1], parts[0]}, -1).flatten(-2);
  }
  const Tensors p = equal_parts(x, mode == 2 ? 4 : 2, -1, "x");
  return mode == 0 ? at::cat({-p[1], p[0]}, -1) : at::cat({-p[1], p[0], -p[3], p[2]}, -1);
}

// Neighbours become halves, and back.
inline Tensor deinterleaved(const Tensor& x) {
  return x.unflatten(-1, {halves(x, -1).first.size(-1), 2}).transpose(-1, -2).flatten(-2);
}
inline Tensor paired(const Tensor& x) {
  return x.unflatten(-1, {2, halves(x, -1).first.size(-1)}).transpose(-1, -2).flatten(-2);
}

inline Tensor rotated(const Tensor& x, const Tensor& cos, const Tensor& sin, int64_t mode) {
  check_given(cos, "cos");
  check_given(sin, "sin");
  return x * at_least_float(cos) + turned(x, mode) * at_least_float(sin);
}

// Times gamma and 1 / sqrt(mean(x^2) + eps) of the last dim.
inline Tensor rms_normalised(const Tensor& x, const Tensor& gamma, double eps) {
  return x * at::rsqrt(at::square(x).mean(-1, true) + eps) * at_least_float(gamma);
}

// As far as INT8 reaches.
inline Tensor saturated(const Tensor& x) { return at::clamp(at::round(x), -128, 127); }

}  // namespace openaclnn::aten
