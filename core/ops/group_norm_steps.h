// SPDX-License-Identifier: Apache-2.0
// The last part of phase 1 of GroupNormSwish and GroupNormSwishGrad.
#pragma once

#include "core/base/executor.h"
#include "core/ops/group_norm_checks.h"

namespace openaclnn {

// Fills in what depends on the machine, books the workspace and adds the steps.
void add_steps(const GroupNorm& g, GroupNormCall& call, Executor& executor);

}  // namespace openaclnn
