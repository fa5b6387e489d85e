// SPDX-License-Identifier: Apache-2.0
// Checks of parameters that ATen does not make (src/openaclnn/aten/parameters.py).
#pragma once

#include "core/torch/aten/call.h"

namespace openaclnn::aten {

// Refuses missing arguments. Throws Refusal.
void check_missing(const Call& call);

// Shapes, lengths, kinds of numbers and ranges: phase 1. Throws Refusal.
void check_limits(const Call& call);

// The values of index tensors: phase 2, before the kernel. Throws Refusal.
void check_indices(const Call& call);

}  // namespace openaclnn::aten
