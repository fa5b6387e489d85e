// SPDX-License-Identifier: Apache-2.0
// Both phases of operators that another library computes. Their executors are ordinary: check mode
// sees their tensors, `openaclnn trace` their work, and they can be made repeatable.
#pragma once

#include <list>
#include <memory>
#include <string>
#include <vector>

#include "core/base/executor.h"

namespace openaclnn {

// Tensors are named with add() in phase 1; run() is phase 2.
class ForeignWork : public Executor::Foreign {
 public:
  virtual int32_t run() const = 0;  // a status, its sentence recorded for the calling thread

  // For check mode; without, these do nothing. The name is that of the argument, of static storage;
  // in a list, [i] follows it.
  void add(const char* name, const aclTensor* tensor, bool written);
  void add_element(const char* list, size_t i, const aclTensor* tensor, bool written);

 private:
  friend Status plan_foreign(const char*, const void*, std::shared_ptr<ForeignWork>,
                             aclOpExecutor**);

  std::list<std::string> names_;           // of elements; operands point to them
  std::vector<const aclTensor*> tensors_;  // of the operands
};

// Runs phase 1 once the arguments have been checked. `maker` is the identity of the operator.
Status plan_foreign(const char* op, const void* maker, std::shared_ptr<ForeignWork> work,
                    aclOpExecutor** executor);

// Runs phase 2: waits for the stream and computes on the calling thread, whose thread pool the
// other library uses. It computes on the thread of the stream if another thread of the program
// submitted work first, or if the calling thread is subscribed for callbacks and the stream has
// work.
int32_t run_foreign(const char* op, const void* maker, void* workspace, uint64_t workspace_size,
                    void* executor, void* stream);

// Whether phase 1 of operators leaves its refusals to phase 2, where they are failures of the
// stream.
bool refusals_deferred();

}  // namespace openaclnn

// Makes phase 1 do so from now on. A caller that stops for good at a refusal in phase 1 wants this.
extern "C" void openaclnn_defer_refusals();
