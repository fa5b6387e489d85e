// SPDX-License-Identifier: Apache-2.0
#include "core/runtime/fork_lock.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>
#include <ctime>
#include <thread>

namespace openaclnn {

static_assert(sizeof(std::atomic<uint32_t>) == 4, "a futex is a word of 32 bits");

// The thread that leaves the lock looks for waiters before it leaves and without a fence (5 ns
// for every run of an executor), so it may miss one that has just come: a waiter sleeps for at
// most a millisecond at a time.
void ForkSafeLock::wait(uint32_t ticket) {
  constexpr int kYields = 64;
  for (int i = 0; i < kYields; ++i) {
    std::this_thread::yield();
    if (served() == ticket) return;
  }
  const timespec longest{0, 1'000'000};
  for (;;) {
    const uint32_t now = served_.load(std::memory_order_acquire);
    if (in_this_process(now) == ticket) return;
    syscall(SYS_futex, &served_, FUTEX_WAIT_PRIVATE, now, &longest, nullptr, 0);
  }
}

void ForkSafeLock::wake() {
  syscall(SYS_futex, &served_, FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
}

}  // namespace openaclnn
