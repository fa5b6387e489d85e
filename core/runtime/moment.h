// SPDX-License-Identifier: Apache-2.0
// A moment that comes once: an event is reached, a callback has returned.
#pragma once

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <utility>

#include "core/runtime/deadline.h"

namespace openaclnn {

class Moment {
 public:
  bool came() const { return came_.load(std::memory_order_acquire); }

  // Called once, by the thread with which the moment comes, without a lock.
  struct Listener {
    void (*call)(void* context);
    void* context;
    Listener* next = nullptr;
  };

  // Threads that wait or listen may free the moment as soon as they learn that it came.
  void come() {
    Listener* listener = nullptr;
    {
      std::lock_guard lock(mutex_);
      came_.store(true, std::memory_order_release);
      wake_.notify_all();
      listener = std::exchange(listeners_, nullptr);
    }
    while (listener != nullptr) {
      Listener* next = listener->next;
      listener->call(listener->context);
      listener = next;
    }
  }

  // Returns false if the moment has come already; then the listener is not called.
  bool listen(Listener& listener) {
    std::lock_guard lock(mutex_);
    if (came()) return false;
    listener.next = std::exchange(listeners_, &listener);
    return true;
  }

  // Returns false if the moment has come already; then the listener has been called or is about to
  // be.
  bool forget(const Listener& listener) {
    std::lock_guard lock(mutex_);
    if (came()) return false;
    Listener** link = &listeners_;
    while (*link != &listener) link = &(*link)->next;
    *link = listener.next;
    return true;
  }

  // Returns true if the moment came, and false if the deadline came first or `interrupted` is set
  // (the thread that sets it has to call interrupt()).
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
  Listener* listeners_ = nullptr;
  std::mutex mutex_;
  std::condition_variable wake_;
};

}  // namespace openaclnn
