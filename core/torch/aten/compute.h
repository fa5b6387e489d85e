// SPDX-License-Identifier: Apache-2.0
// The operator or composite of a row on the arguments of one call.
#pragma once

#include "core/torch/aten/call.h"

namespace openaclnn::aten {

void compute(const Call& call);

}  // namespace openaclnn::aten
