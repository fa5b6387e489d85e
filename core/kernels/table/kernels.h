// SPDX-License-Identifier: Apache-2.0
// This is the border between phase 1 and the kernels: plain data in, function pointers out. No
// functions are defined here, and kernel objects define no weak symbols, so that no AVX-512 copy of
// a shared function can end up in baseline code.
#pragma once

#include "core/kernels/elementwise/call.h"
#include "core/kernels/group_norm/call.h"
#include "core/kernels/weights/call.h"

namespace openaclnn {

// Everything that is compiled once for each instruction set: a field for each family.
struct Kernels {
  const char* isa;
  const ElementwiseKernels& elementwise;
  const GroupNormKernels& group_norm;
  const WeightKernels& weights;
};

}  // namespace openaclnn
