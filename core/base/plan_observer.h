// SPDX-License-Identifier: Apache-2.0
// Check mode watches the two phases through this observer; normally there is none.
#pragma once

#include <cstdint>
#include <memory>

#include "core/base/executor.h"
#include "core/base/tensor.h"
#include "core/support/observer.h"
#include "core/support/status.h"

namespace openaclnn {

struct NamedTensor {
  const char* name;
  const Tensor* tensor;
};

struct PlanObserver {
  // Phase 1 has planned.
  void (*planned)(const char* op, const aclOpExecutor& executor, const NamedTensor* tensors,
                  int count);
  // Phase 2 is about to be checked; it may be refused, with a sentence.
  Status (*inspect)(const char* op, const aclOpExecutor& executor, const void* workspace,
                    uint64_t workspace_size);
  // Phase 2 is about to put the plan on the stream.
  void (*launches)(const char* op, const aclOpExecutor& executor, const void* workspace,
                   uint64_t workspace_size, const Stream& stream);
  // A graph records phase 2: what the plan accesses, for each replay.
  std::shared_ptr<const void> (*recorded)(const aclOpExecutor& executor, const void* workspace,
                                          uint64_t workspace_size);
  // A graph that recorded it is about to be put on the stream.
  void (*replayed)(const char* op, const void* recorded, const Stream& stream);
  // Phase 2 was refused, and the executor, if it is one, is still there.
  void (*not_launched)(const void* executor);
  // The plan never ran: its stream was destroyed by force.
  void (*dropped)(const char* op, const Executor& plan);
};

[[gnu::visibility("hidden")]] extern Watch<const PlanObserver*> plan_observer;

}  // namespace openaclnn
