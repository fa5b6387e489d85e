// SPDX-License-Identifier: Apache-2.0
// What a stream runs.
#pragma once

#include <cstdint>

#include "core/runtime/work_listener.h"

namespace openaclnn {

class Stream;

// Values of aclmdlRITaskType.
enum class TaskType {
  other,
  kernel,
  event_record,
  event_wait,
  event_reset,
  value_write,
  value_wait
};

// run() may be called any number of times, on any stream (Stream::running_here), before drop().
struct Task {
  void (*run)(void* context);
  void (*drop)(void* context);  // frees `context`, after run or instead of it (stream destroyed by
                                // force); may be nullptr
  void* context;
  // ---- of a graph (capture.h) ----
  const char* call = "";  // that submitted it
  TaskType type = TaskType::other;
  // Reports one more run to the observer, before it is submitted; nullptr: nothing to report.
  void (*observe)(void* context, const Stream& stream) = nullptr;
  uint32_t thread = 0;         // that submitted it
  bool stays = false;          // in the queue when the work of the stream is dropped
  Submission submission = {};  // if work is reported
};

}  // namespace openaclnn
