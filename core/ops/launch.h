// SPDX-License-Identifier: Apache-2.0
// Phase 2 checks a plan and runs it, here or on the thread of a stream.
#pragma once

#include <cstdint>

#include "core/base/executor.h"
#include "core/runtime/stream.h"

namespace openaclnn {

// Runs a copy of the plan on the stream, after what was submitted before, and with `run_mutex`
// locked.
void enqueue(const char* name, const Executor& executor, void* workspace, Stream& stream,
             ForkSafeLock* run_mutex = nullptr);

// On a stream with work: queue behind it, or wait for it and run here.
enum class Busy { queue, wait };

// Phase 2 of every operator: checks the arguments, then runs or enqueues. A plan that is not
// repeatable is consumed unless phase 2 is refused. If several threads run it, one succeeds and the
// others are refused.
Status launch(const char* name, const void* maker, void* workspace, uint64_t workspace_size,
              aclOpExecutor* executor, void* stream, Busy busy = Busy::queue);

}  // namespace openaclnn
