// SPDX-License-Identifier: Apache-2.0
// Work of a stream that fails, is dropped or is abandoned.
#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <utility>

#include "core/runtime/stream.h"

namespace openaclnn {

std::atomic<void (*)(const FailedTask& task)> task_failure_listener = nullptr;

void Stream::discard_pending() {
  std::list<Task> dropped;
  bool paused = false;
  {
    std::lock_guard lock(mutex_);
    dropped.swap(queue_);
    for (auto next = dropped.begin(); next != dropped.end();) {
      const auto task = next++;
      if (task->stays) queue_.splice(queue_.end(), dropped, task);
    }
    finished_ += dropped.size();
    interrupted_ = true;
    if (waits_for_ != nullptr) waits_for_->interrupt();
    paused = paused_for_ != nullptr && end_pause();
    if (!busy_) {
      has_work_.store(!queue_.empty(), std::memory_order_release);
      wake_waiters_.notify_all();
    }
  }
  for (const Task& task : dropped) {
    if (task.drop != nullptr) task.drop(task.context);
  }
  if (!paused) return;
  late_.drop(late_.context);
  std::lock_guard lock(mutex_);
  finish_task();
}

void Stream::abort() {
  {
    std::lock_guard lock(mutex_);
    ++aborts_;
  }
  discard_pending();
  wait_for_running_task();
  std::lock_guard lock(mutex_);
  interrupted_ = false;
}

void Stream::wait_for_running_task() {
  std::unique_lock lock(mutex_);
  if (!busy_) return;
  ++waiters_;
  const uint64_t target = finished_ + 1;
  wake_waiters_.wait(lock, [&] {
    if (finished_ >= target || !busy_) return true;
    wake_at_ = std::min(wake_at_, target);
    return false;
  });
  --waiters_;
}

void Stream::fail_task(int32_t code, Cause cause, const char* sentence, ...) {
  const auto listener = task_failure_listener.load(std::memory_order_relaxed);
  if (listener != nullptr && running_here() == this) [[unlikely]] {
    FailedTask task = {0, static_cast<uint32_t>(id), 0, 0, code};
    {
      std::lock_guard lock(mutex_);
      task.task = static_cast<uint32_t>(finished_ + 1);
      task.thread = running_thread_;
    }
    if (task.thread == 0) task.thread = number_of_this_thread();
    listener(task);
  }
  std::lock_guard lock(mutex_);
  if (failure_.code != 0) return;
  failure_.code = code;
  failure_.cause = cause;
  va_list arguments;
  va_start(arguments, sentence);
  vsnprintf(failure_.sentence, sizeof failure_.sentence, sentence, arguments);
  va_end(arguments);
  failed_ = true;
}

TaskFailure Stream::failure() {
  if (!failed()) return {};
  std::lock_guard lock(mutex_);
  return failure_;
}

TaskFailure Stream::forget_failure() {
  if (!failed()) return {};
  std::lock_guard lock(mutex_);
  if (stops_on_failure_) return failure_;
  failed_ = false;
  return std::exchange(failure_, TaskFailure());
}

void Stream::halt(const TaskFailure& failure) {
  std::lock_guard lock(mutex_);
  stops_on_failure_ = true;
  if (failure_.code == 0) failure_ = failure;
  failed_ = true;
}

}  // namespace openaclnn
