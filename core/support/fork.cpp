// SPDX-License-Identifier: Apache-2.0
// The only pthread_atfork handler of the library. Prepare locks the registered mutexes in a fixed
// order. No deadlock: they are leaves.
#include "core/support/fork.h"

#include <linux/futex.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstddef>
#include <cstdlib>
#include <ctime>
#include <thread>

namespace openaclnn {

constinit std::atomic<uint32_t> generation = 1;

namespace {

// Of fixed size, so that registering cannot fail.
template <class T>
struct List {
  void add(T item) {
    if (std::find(begin(), end(), item) != end()) return;
    if (count == sizeof items / sizeof *items) std::abort();
    items[count++] = item;
  }
  const T* begin() const { return items; }
  const T* end() const { return items + count; }

  T items[64] = {};
  size_t count = 0;
};

constinit std::mutex handlers;  // guards the lists
constinit List<std::mutex*> held;
constinit List<void (*)()> resets;

void lock_all() {
  handlers.lock();
  for (std::mutex* mutex : held) mutex->lock();
}

void unlock_all() {
  for (std::mutex* mutex : held) mutex->unlock();
  handlers.unlock();
}

void child() {
  generation.fetch_add(1, std::memory_order_relaxed);
  unlock_all();
  for (auto reset : resets) reset();
}

// At load: ForkSafeLock relies on the count from the first fork on.
[[gnu::constructor]] void begin() { pthread_atfork(lock_all, unlock_all, child); }

}  // namespace

void hold_across_fork(std::mutex& mutex) {
  std::lock_guard lock(handlers);
  held.add(&mutex);
}

void after_fork_in_child(void (*reset)()) {
  std::lock_guard lock(handlers);
  resets.add(reset);
}

}  // namespace openaclnn

namespace openaclnn {

static_assert(sizeof(std::atomic<uint32_t>) == 4, "a futex is a word of 32 bits");

// unlock() looks for waiters before it releases, without a fence (5 ns for every run of an
// executor), and may miss one that has just arrived. So a waiter sleeps at most 1 ms at a time.
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
