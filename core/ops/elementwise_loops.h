// SPDX-License-Identifier: Apache-2.0
// The loops of an element-wise pass: as few and as contiguous as the strides allow.
#pragma once

#include <cstdint>

#include "core/base/tensor.h"
#include "core/kernels/kernels.h"

namespace openaclnn {

// Of the inputs and the output, which have or broadcast to `shape`, not empty; `tile` elements are
// worked on at a time. call.inputs and call.packed are there already.
void plan_loops(const Tensor* const* tensors, const Dims& shape, bool takes_same, int64_t tile,
                ElementwiseCall& call);

}  // namespace openaclnn
