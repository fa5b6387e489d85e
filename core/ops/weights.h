// SPDX-License-Identifier: Apache-2.0
// For the library in which ATen computes: weights as fp32, with this CPU's instructions.
#pragma once

#include "core/kernels/weights/call.h"

extern "C" void openaclnn_widen_weight(const openaclnn::WeightRun* run, float* out);
