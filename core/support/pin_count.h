// SPDX-License-Identifier: Apache-2.0
// The number of pins on an object (handles.h), and one pin of an object of any type.
#pragma once

#include <atomic>
#include <cstdint>
#include <utility>

namespace openaclnn {

class PinCount {
 public:
  void add() { count_.fetch_add(1, std::memory_order_acq_rel); }
  void drop() {
    if (count_.fetch_sub(1, std::memory_order_release) == kEnding + 1) [[unlikely]]
      count_.notify_all();
  }
  // Returns when there is none, after the object was withdrawn: it is found no more.
  void wait_for_none() {
    // A read that writes, so that a later pin comes after it and sees the null.
    if (count_.fetch_add(0, std::memory_order_acq_rel) == 0) [[likely]]
      return;
    uint32_t pins = count_.fetch_or(kEnding, std::memory_order_acq_rel) | kEnding;
    while (pins != kEnding) {
      count_.wait(pins, std::memory_order_acquire);
      pins = count_.load(std::memory_order_acquire);
    }
    count_.fetch_and(~kEnding, std::memory_order_relaxed);  // a late pin may look meanwhile
  }
  void forget_all() { count_ = 0; }

 private:
  static constexpr uint32_t kEnding = 1u << 31;  // a thread waits in wait_for_none

  std::atomic<uint32_t> count_;
};

class UntypedPin {
 public:
  UntypedPin() = default;
  explicit UntypedPin(PinCount& count) : count_(&count) { count.add(); }
  UntypedPin(UntypedPin&& other) noexcept : count_(std::exchange(other.count_, nullptr)) {}
  UntypedPin& operator=(UntypedPin&& other) noexcept {
    std::swap(count_, other.count_);
    return *this;
  }
  ~UntypedPin() { release(); }

  void release() {
    if (PinCount* count = std::exchange(count_, nullptr); count != nullptr) count->drop();
  }

 private:
  PinCount* count_ = nullptr;
};

}  // namespace openaclnn
