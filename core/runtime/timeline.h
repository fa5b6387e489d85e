// SPDX-License-Identifier: Apache-2.0
// A listener (openaclnn trace) learns when streams work. Without one, each piece of work costs one
// load before and one after it.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

namespace openaclnn {

// Times are nanoseconds of the steady clock. The thread that did the work calls it afterwards.
using WorkListener = void (*)(const void* stream, const char* name, int64_t begin, int64_t end);

[[gnu::visibility("hidden")]] extern std::atomic<WorkListener> work_listener;

inline bool work_is_reported() { return work_listener.load(std::memory_order_relaxed) != nullptr; }

inline int64_t steady_nanoseconds() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(now).count();
}

// A piece of work that lasts as long as the object. It is not reported if no stream runs it.
class Work {
 public:
  explicit Work(const char* name) : name_(name) {
    if (work_is_reported()) [[unlikely]]
      begin_ = steady_nanoseconds();
  }
  ~Work() {
    if (begin_ >= 0) [[unlikely]]
      report();
  }
  Work(const Work&) = delete;

 private:
  void report() const;

  const char* name_;
  int64_t begin_ = -1;
};

}  // namespace openaclnn

extern "C" {
// Work that the host does for a stream. The first returns -1 if nobody listens.
int64_t openaclnn_host_work_begins();
void openaclnn_host_work_ends(const void* stream, const char* name, int64_t begin);
void openaclnn_listen_to_work(openaclnn::WorkListener listener);
// The pointer that the listener gets for a handle (NULL: the default stream), or NULL if there is
// no such stream.
const void* openaclnn_identity_of_stream(const void* handle);
}

namespace openaclnn {

// As Work, for what the calling thread does in place of the stream with this handle.
class HostWork {
 public:
  HostWork(const void* stream, const char* name) : stream_(stream), name_(name) {}
  ~HostWork() {
    if (begin_ >= 0) [[unlikely]]
      openaclnn_host_work_ends(stream_, name_, begin_);
  }
  HostWork(const HostWork&) = delete;

 private:
  const void* stream_;
  const char* name_;
  int64_t begin_ = openaclnn_host_work_begins();
};

}  // namespace openaclnn
