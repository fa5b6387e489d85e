// SPDX-License-Identifier: Apache-2.0
// Where torch_npu runs operators from a queue of its own, an error of phase 2 makes it drop all
// later operators in silence. So a failure there is one of the stream, as on a device: the operator
// is launched, and the next synchronisation reports what failed.
#pragma once

#include <cstdlib>
#include <cstring>

#include "core/runtime/no_destructor.h"
#include "core/runtime/status.h"
#include "core/runtime/stream.h"

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

// In its mode 2 torch_npu runs phase 1 from its queue too, and a refusal there makes it drop all
// later operators in silence. So phase 2 reports what phase 1 refuses, and ATen's shapes are left
// to it.
inline bool phase1_queued() {
  static constinit NoDestructor<bool> is;
  return is.get([] {
    const char* queue = std::getenv("TASK_QUEUE_ENABLE");
    return queued() && queue != nullptr && std::strcmp(queue, "2") == 0;
  });
}

// What phase 2 returns for a failure whose sentence is this thread's newest.
inline int32_t phase2_failed(int32_t code, void* stream) {
  return queued() ? fail_stream(stream, take_failure(code)) : code;
}

}  // namespace openaclnn::npu
