// SPDX-License-Identifier: Apache-2.0
// Whether the shapes of a call fit each other: what ATen says of tensors that have no data.
#pragma once

#include "core/torch/aten/call.h"

namespace openaclnn::aten {

// Throws a Refusal or what ATen throws. Calls whose shapes, dtypes and other arguments were found
// to fit before are not looked at again. Says nothing of composites, of operators that need the
// data, and of those that ATen has no such form of: their mistakes are found when they run.
void check_shapes(const Call& call);

}  // namespace openaclnn::aten
