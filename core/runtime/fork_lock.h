// SPDX-License-Identifier: Apache-2.0
// A lock of one word, which memory of zeros is, for what two threads seldom want at once: to take
// and to leave it unwanted costs one atomic exchange and one store. It may be held while work runs.
// A child of fork finds it free: a thread that held it stayed in the parent.
#pragma once

#include <atomic>
#include <cstdint>

#include "core/runtime/fork.h"

namespace openaclnn {

class ForkSafeLock {
 public:
  bool try_lock() {
    uint32_t holder = holder_.load(std::memory_order_relaxed);
    const uint32_t own = process_generation();
    return holder != own && holder_.compare_exchange_strong(holder, own, std::memory_order_acquire);
  }
  void lock() {
    if (!try_lock()) [[unlikely]]
      wait();
  }
  void unlock() { holder_.store(0, std::memory_order_release); }

 private:
  void wait();

  std::atomic<uint32_t> holder_ = 0;  // the generation of the process that holds it
};

}  // namespace openaclnn
