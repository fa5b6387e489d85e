// SPDX-License-Identifier: Apache-2.0
#include "core/runtime/observer.h"

#include "core/runtime/device.h"
#include "core/runtime/stream.h"

namespace openaclnn {

constinit Watch<const Observer*> observer = nullptr;
constinit Watch<bool> watched = false;

}  // namespace openaclnn

namespace openaclnn {

std::atomic<WorkListener> work_listener = nullptr;

void Work::report() const {
  const Stream* stream = Stream::running_here();
  const WorkListener listener = work_listener.load(std::memory_order_relaxed);
  if (stream != nullptr && listener != nullptr) {
    listener(stream, name_, begin_, steady_nanoseconds());
  }
}

}  // namespace openaclnn

using namespace openaclnn;

void openaclnn_listen_to_work(WorkListener listener) {
  work_listener = listener;
  watched = true;
}

int64_t openaclnn_host_work_begins() { return work_is_reported() ? steady_nanoseconds() : -1; }

void openaclnn_host_work_ends(const void* stream, const char* name, int64_t begin) {
  const WorkListener listener = work_listener.load(std::memory_order_relaxed);
  if (listener != nullptr)
    listener(openaclnn_identity_of_stream(stream), name, begin, steady_nanoseconds());
}

const void* openaclnn_identity_of_stream(const void* handle) {
  if (handle != nullptr) return handle;
  const PinnedContext context = current_context();
  return context ? context->stream : nullptr;
}
