// SPDX-License-Identifier: Apache-2.0
// The calls that only torch_npu makes and that have an effect here. Those that are refused are
// generated from src/openaclnn/torch_npu/names.py.
#pragma once

#include <cstddef>
#include <cstdint>

#include "acl/acl_rt.h"

#define OPENACLNN_NPU extern "C" __attribute__((visibility("default")))

// ---- the parts of profiling that need no profiler ----

OPENACLNN_NPU uint64_t MsprofGetHashId(const char* hashInfo, size_t length);
OPENACLNN_NPU uint64_t MsprofSysCycleTime(void);
