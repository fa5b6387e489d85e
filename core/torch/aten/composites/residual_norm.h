// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/torch/aten/composites/checks.h"

namespace openaclnn::aten {

// sum = residual + x, rstd = 1 / rms(sum), norm = sum rstd gamma, in fp32 and in the shape of the
// residual; the sum is not rounded before the norm.
struct ResidualNorm {
  Tensor sum, rstd, norm;

  ResidualNorm(const Tensor& x, const Tensor& residual, const Tensor& gamma, double eps,
               const char* name) {
    check_given(residual, name);
    require_shape(
        residual.dim() > 0 && residual.numel() == x.numel() && residual.size(-1) == x.size(-1),
        name, " must have shape ", x.sizes(), ", but got ", residual.sizes());
    const Tensor y = at_least_float(residual).reshape(x.sizes()) + x;
    const Tensor r = at::rsqrt(at::mean(at::square(y), trailing_dims(y, gamma), true) + eps);
    Ints sizes = residual.sizes().vec();
    sum = y.reshape(sizes);
    norm = (y * r * at_least_float(gamma)).reshape(sizes);
    sizes.back() = 1;
    rstd = r.reshape(sizes);
  }
};

}  // namespace openaclnn::aten
