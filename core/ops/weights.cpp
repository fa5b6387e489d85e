// SPDX-License-Identifier: Apache-2.0
#include "core/ops/weights.h"

#include "core/ops/isa.h"

void openaclnn_widen_weight(const openaclnn::WeightRun* run, float* out) {
  openaclnn::kernels().weights.widen(*run, out);
}
