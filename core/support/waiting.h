// SPDX-License-Identifier: Apache-2.0
// Deadlines, and an event to wait for.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <utility>

namespace openaclnn {

class Deadline {
 public:
  Deadline() = default;  // never
  // Counts from now; negative: never. Any uint32_t of seconds fits.
  static Deadline in_milliseconds(int64_t count) {
    Deadline deadline;
    deadline.limited_ = count >= 0;
    if (deadline.limited_) deadline.at_ = Clock::now() + std::chrono::milliseconds(count);
    return deadline;
  }

  bool never() const { return !limited_; }
  bool passed() const { return limited_ && at_ <= Clock::now(); }
  bool before(const Deadline& other) const {
    return limited_ && (!other.limited_ || at_ < other.at_);
  }

  // False if it passed before `ready`.
  template <class P>
  bool wait(std::condition_variable& wake, std::unique_lock<std::mutex>& lock, P ready) const {
    if (limited_) return wake.wait_until(lock, at_, ready);
    wake.wait(lock, ready);
    return true;
  }

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point at_;
  bool limited_ = false;
};

// ---- an event that is signalled once: an aclrtEvent is reached, a callback has returned ----

class OneShotEvent {
 public:
  bool is_set() const { return set_.load(std::memory_order_acquire); }

  // Called once, by the thread that signals, without a lock.
  struct Listener {
    void (*call)(void* context);
    void* context;
    Listener* next = nullptr;
  };

  // Threads that wait or listen may free the event as soon as they see it set.
  void signal() {
    Listener* listener = nullptr;
    {
      std::lock_guard lock(mutex_);
      set_.store(true, std::memory_order_release);
      wake_.notify_all();
      listener = std::exchange(listeners_, nullptr);
    }
    while (listener != nullptr) {
      Listener* next = listener->next;
      listener->call(listener->context);
      listener = next;
    }
  }

  // Returns false if it is set already; then the listener is not called.
  bool listen(Listener& listener) {
    std::lock_guard lock(mutex_);
    if (is_set()) return false;
    listener.next = std::exchange(listeners_, &listener);
    return true;
  }

  // Returns false if it is set already; then the listener has been called or is about to be.
  bool forget(const Listener& listener) {
    std::lock_guard lock(mutex_);
    if (is_set()) return false;
    Listener** link = &listeners_;
    while (*link != &listener) link = &(*link)->next;
    *link = listener.next;
    return true;
  }

  // Returns true once it is set, and false if the deadline came first or `interrupted` is set
  // (the thread that sets it has to call interrupt()).
  bool wait(Deadline deadline, const std::atomic<bool>* interrupted = nullptr) {
    if (is_set()) return true;
    std::unique_lock lock(mutex_);
    (void)deadline.wait(wake_, lock,
                        [&] { return is_set() || (interrupted != nullptr && *interrupted); });
    return is_set();
  }

  void interrupt() {
    std::lock_guard lock(mutex_);
    wake_.notify_all();
  }

 private:
  std::atomic<bool> set_ = false;
  Listener* listeners_ = nullptr;
  std::mutex mutex_;
  std::condition_variable wake_;
};

}  // namespace openaclnn
