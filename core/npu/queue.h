// SPDX-License-Identifier: Apache-2.0
// torch_npu's queue silently drops all later operators after an error in phase 2. So on its thread
// a failure becomes the stream's, as on a device: phase 2 succeeds, and the next synchronisation
// fails.
#pragma once

#include <cstdlib>
#include <cstring>

#include "core/support/no_destructor.h"
#include "core/support/status.h"
#include "core/runtime/stream_library.h"

namespace openaclnn::npu {

// TASK_QUEUE_ENABLE is 1 unless it is set; ASCEND_LAUNCH_BLOCKING=1 turns the queue off.
inline bool queued() {
  static constinit NoDestructor<bool> is;
  return is.get([] {
    const char* blocking = std::getenv("ASCEND_LAUNCH_BLOCKING");
    const char* queue = std::getenv("TASK_QUEUE_ENABLE");
    return (blocking == nullptr || std::strcmp(blocking, "1") != 0) &&
           (queue == nullptr || std::strcmp(queue, "0") != 0);
  });
}

// In mode 2 torch_npu also runs phase 1 on its queue, with the same effect. So phase 2 reports what
// phase 1 refuses, and ATen's shapes are left to it.
inline bool phase1_queued() {
  static constinit NoDestructor<bool> is;
  return is.get([] {
    const char* queue = std::getenv("TASK_QUEUE_ENABLE");
    return queued() && queue != nullptr && std::strcmp(queue, "2") == 0;
  });
}

// The return value of phase 2 for this thread's newest failure.
inline int32_t phase2_failed(int32_t code, void* stream) {
  return queued() ? fail_stream(stream, take_failure(code)) : code;
}

}  // namespace openaclnn::npu
