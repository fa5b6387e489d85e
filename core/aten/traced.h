// SPDX-License-Identifier: Apache-2.0
// How `openaclnn trace` shows calls of rows: it gets the arguments and makes the call. Preloading
// does not reach programs that dlopen the libraries (torch_npu), so both libraries with rows look
// up the tracer.
#pragma once

#include <dlfcn.h>

#include "core/aten/row.h"
#include "core/support/no_destructor.h"

namespace openaclnn::aten {

using PlanCall = int32_t (*)(const Row& row, const Value* values, uint64_t* workspace_size,
                             void** executor);
using RunCall = int32_t (*)(const Row& row, void* workspace, uint64_t workspace_size,
                            void* executor, void* stream);

using DropCall = void (*)(void* executor);  // forgets one that PlanCall made

struct Tracer {
  int32_t (*plan)(const Row& row, const Value* values, uint64_t* workspace_size, void** executor,
                  PlanCall call, DropCall drop);
  int32_t (*run)(const Row& row, void* workspace, uint64_t workspace_size, void* executor,
                 void* stream, RunCall call);
};
inline constexpr char kTracer[] = "openaclnn_trace_rows";

// Exists when `openaclnn trace` runs the program.
inline const Tracer* tracer() {
  static constinit NoDestructor<const Tracer*> found;
  return found.get([] { return static_cast<const Tracer*>(dlsym(RTLD_DEFAULT, kTracer)); });
}

inline int32_t traced_plan(const Row& row, const Value* values, uint64_t* workspace_size,
                           void** executor, PlanCall call, DropCall drop) {
  if (tracer() != nullptr) return tracer()->plan(row, values, workspace_size, executor, call, drop);
  return call(row, values, workspace_size, executor);
}

inline int32_t traced_run(const Row& row, void* workspace, uint64_t workspace_size, void* executor,
                          void* stream, RunCall call) {
  if (tracer() != nullptr)
    return tracer()->run(row, workspace, workspace_size, executor, stream, call);
  return call(row, workspace, workspace_size, executor, stream);
}

}  // namespace openaclnn::aten
