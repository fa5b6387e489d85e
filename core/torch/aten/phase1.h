// SPDX-License-Identifier: Apache-2.0
// Refusals of phase 1: missing arguments, the limits of the row, and what ATen's meta kernel or a
// composite refuses.
#pragma once

#include "core/torch/aten/call.h"

namespace openaclnn::aten {

// Throws a Refusal or ATen's exception, or sets call.checked. Calls that passed before with equal
// shapes, dtypes and attributes are cached. Data-dependent checks, and operators without a meta
// kernel, are left to phase 2.
void check_call(Call& call);

}  // namespace openaclnn::aten
