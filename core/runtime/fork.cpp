// SPDX-License-Identifier: Apache-2.0
// The one pthread_atfork handler of the library. Prepare takes the registered mutexes in one fixed
// order; since they are leaves, a thread that holds one gives it back without needing another.
#include "core/runtime/fork.h"

#include <pthread.h>

#include <cstddef>
#include <cstdlib>

#include "core/runtime/immortal.h"

namespace openaclnn {

constinit std::atomic<uint32_t> generation = 1;

namespace {

// Fixed in size, so that registering cannot fail: each process-wide object of the library is one.
template <class T>
struct List {
  void add(T item) {
    if (count == sizeof items / sizeof *items) std::abort();
    items[count++] = item;
  }
  const T* begin() const { return items; }
  const T* end() const { return items + count; }

  T items[64];
  size_t count = 0;
};

struct ForkHandlers {
  ForkHandlers() { pthread_atfork(lock_all, unlock_all, child); }

  static ForkHandlers& get() {
    static Immortal<ForkHandlers> handlers;
    return *handlers;
  }
  static void lock_all() {
    ForkHandlers& handlers = get();
    handlers.mutex.lock();
    for (std::mutex* mutex : handlers.held) mutex->lock();
  }
  static void unlock_all() {
    ForkHandlers& handlers = get();
    for (std::mutex* mutex : handlers.held) mutex->unlock();
    handlers.mutex.unlock();
  }
  static void child() {
    generation.fetch_add(1, std::memory_order_relaxed);
    unlock_all();
    for (auto reset : get().resets) reset();
  }

  std::mutex mutex;
  List<std::mutex*> held;
  List<void (*)()> resets;
};

}  // namespace

void count_forks() { ForkHandlers::get(); }

void hold_across_fork(std::mutex& mutex) {
  ForkHandlers& handlers = ForkHandlers::get();
  std::lock_guard lock(handlers.mutex);
  handlers.held.add(&mutex);
}

void after_fork_in_child(void (*reset)()) {
  ForkHandlers& handlers = ForkHandlers::get();
  std::lock_guard lock(handlers.mutex);
  handlers.resets.add(reset);
}

}  // namespace openaclnn
