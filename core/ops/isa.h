// SPDX-License-Identifier: Apache-2.0
// Which build of the kernels this machine runs.
#pragma once

#include "core/kernels/kernels.h"

namespace openaclnn {

// The best level the CPU has, or OPENACLNN_ISA (v2, v3, v4) when the CPU can run that.
const Kernels& kernels();

}  // namespace openaclnn
