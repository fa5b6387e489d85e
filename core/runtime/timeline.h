// SPDX-License-Identifier: Apache-2.0
// Tells a listener (openaclnn trace) when streams work. By default there is none, at the price of
// one load before and after each piece of work.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

namespace openaclnn {

// Nanoseconds of the steady clock. Called by the thread that did the work, after it.
using WorkListener = void (*)(const void* stream, const char* name, int64_t begin, int64_t end);

[[gnu::visibility("hidden")]] extern std::atomic<WorkListener> work_listener;

inline bool work_is_reported() { return work_listener.load(std::memory_order_relaxed) != nullptr; }

inline int64_t steady_nanoseconds() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(now).count();
}

// A piece of work that lasts as long as the object. Not reported if no stream runs it.
class Work {
 public:
  explicit Work(const char* name) : name_(name) {
    if (work_is_reported()) [[unlikely]]
      begin_ = steady_nanoseconds();
  }
  ~Work() {
    if (begin_ >= 0) [[unlikely]]
      tell();
  }
  Work(const Work&) = delete;

 private:
  void tell() const;

  const char* name_;
  int64_t begin_ = -1;
};

}  // namespace openaclnn

extern "C" {
void openaclnn_listen_to_work(openaclnn::WorkListener listener);
// What the listener gets for a handle; NULL is the default stream. NULL when there is none.
const void* openaclnn_identity_of_stream(const void* handle);
}
