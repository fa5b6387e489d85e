// SPDX-License-Identifier: Apache-2.0
// What phase 1 refuses: missing arguments, what a row says of its parameters, and what ATen or a
// composite says of tensors without data.
#pragma once

#include "core/torch/aten/call.h"

namespace openaclnn::aten {

// Throws a Refusal or what ATen throws, or sets call.checked. A call whose shapes, dtypes and other
// arguments passed before passes at once. What only the data decide, and operators of ATen without
// a meta kernel, are left to phase 2.
void check_call(Call& call);

}  // namespace openaclnn::aten
