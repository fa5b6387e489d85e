// SPDX-License-Identifier: Apache-2.0
// A moment that comes once: an event is reached, a callback has returned.
#pragma once

#include <atomic>
#include <condition_variable>
#include <mutex>

#include "core/runtime/deadline.h"

namespace openaclnn {

class Moment {
 public:
  bool came() const { return came_.load(std::memory_order_acquire); }

  void come() {
    std::lock_guard lock(mutex_);
    came_.store(true, std::memory_order_release);
    wake_.notify_all();
  }

  // True when it came; false when the deadline was first, or `interrupted` is set (then interrupt()
  // has to be called).
  bool wait(Deadline deadline, const std::atomic<bool>* interrupted = nullptr) {
    if (came()) return true;
    std::unique_lock lock(mutex_);
    (void)deadline.wait(wake_, lock,
                        [&] { return came() || (interrupted != nullptr && *interrupted); });
    return came();
  }

  void interrupt() {
    std::lock_guard lock(mutex_);
    wake_.notify_all();
  }

 private:
  std::atomic<bool> came_ = false;
  std::mutex mutex_;
  std::condition_variable wake_;
};

}  // namespace openaclnn
