// SPDX-License-Identifier: Apache-2.0
// When a wait gives up: never, or some time after it began.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>

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

  // False when it came before `ready`.
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

}  // namespace openaclnn
