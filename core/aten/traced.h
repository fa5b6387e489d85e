// SPDX-License-Identifier: Apache-2.0
// How `openaclnn trace` shows the calls of rows: it gets the arguments and makes the call.
#pragma once

#include "core/aten/row.h"

namespace openaclnn::aten {

using PlanCall = int32_t (*)(const Row& row, const Value* values, uint64_t* workspace_size,
                             void** executor);
using RunCall = int32_t (*)(const Row& row, void* workspace, uint64_t workspace_size,
                            void* executor, void* stream);

struct Tracer {
  int32_t (*plan)(const Row& row, const Value* values, uint64_t* workspace_size, void** executor,
                  PlanCall call);
  int32_t (*run)(const Row& row, void* workspace, uint64_t workspace_size, void* executor,
                 void* stream, RunCall call);
};
inline constexpr char kTracer[] = "openaclnn_trace_rows";

}  // namespace openaclnn::aten
