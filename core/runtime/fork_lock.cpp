// SPDX-License-Identifier: Apache-2.0
#include "core/runtime/fork_lock.h"

#include <algorithm>
#include <chrono>
#include <thread>

namespace openaclnn {

// Nobody wakes a waiter, which is why leaving the lock is one store: an exchange, to see whether
// somebody waits, would cost every run of an executor 5 ns. A waiter sleeps at most as long as it
// has waited already, and at most a millisecond.
void ForkSafeLock::wait() {
  constexpr int kYields = 64;
  for (int i = 0; i < kYields; ++i) {
    std::this_thread::yield();
    if (try_lock()) return;
  }
  constexpr std::chrono::microseconds kLongest(1000);
  for (std::chrono::microseconds nap(1); !try_lock(); nap = std::min(2 * nap, kLongest)) {
    std::this_thread::sleep_for(nap);
  }
}

}  // namespace openaclnn
