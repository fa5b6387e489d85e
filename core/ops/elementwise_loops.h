// SPDX-License-Identifier: Apache-2.0
// The loops of an element-wise pass: as few and as contiguous as the strides allow.
#pragma once

#include <cstdint>

#include "core/base/tensor.h"
#include "core/kernels/elementwise/call.h"

namespace openaclnn {

// Plans the loops over the inputs and the output, which have the non-empty `shape` or broadcast to
// it and, if `alike`, the same type. The kernel works on `tile` elements at a time. call.inputs
// must be set.
void plan_loops(const Tensor* const* tensors, const Dims& shape, bool alike, int64_t tile,
                ElementwiseCall& call);

}  // namespace openaclnn
