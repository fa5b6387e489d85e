// SPDX-License-Identifier: Apache-2.0
// Selection of the kernels' instruction set.
#pragma once

#include "core/kernels/table/kernels.h"

namespace openaclnn {

// Returns the best level that the CPU has, or OPENACLNN_ISA (v2, v3, v4) if the CPU can run that.
const Kernels& kernels();

}  // namespace openaclnn
