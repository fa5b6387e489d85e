// SPDX-License-Identifier: Apache-2.0
// The operator or composite of a row on the arguments of one call.
#pragma once

#include "core/torch/aten/call.h"

namespace openaclnn::aten {

// `fits`, if not NULL, is set where the only result has the shape and dtype of its output.
void compute(const Call& call, bool* fits = nullptr);

}  // namespace openaclnn::aten
