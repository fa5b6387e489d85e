// SPDX-License-Identifier: Apache-2.0
// The one pthread_atfork handler of the library. Prepare takes the registered mutexes in one fixed
// order; since they are leaves, whoever holds one gives it back without needing another.
#include "core/runtime/fork.h"

#include <pthread.h>

#include <vector>

namespace openaclnn {
namespace {

struct Registry {
  Registry() { pthread_atfork(lock_all, unlock_all, child); }

  static Registry& get() {
    static auto& registry = *new Registry;
    return registry;
  }
  static void lock_all() {
    Registry& registry = get();
    registry.mutex.lock();
    for (std::mutex* mutex : registry.held) mutex->lock();
  }
  static void unlock_all() {
    Registry& registry = get();
    for (std::mutex* mutex : registry.held) mutex->unlock();
    registry.mutex.unlock();
  }
  static void child() {
    unlock_all();
    for (auto reset : get().resets) reset();
  }

  std::mutex mutex;
  std::vector<std::mutex*> held;
  std::vector<void (*)()> resets;
};

}  // namespace

void hold_across_fork(std::mutex& mutex) {
  Registry& registry = Registry::get();
  std::lock_guard lock(registry.mutex);
  registry.held.push_back(&mutex);
}

void after_fork_in_child(void (*reset)()) {
  Registry& registry = Registry::get();
  std::lock_guard lock(registry.mutex);
  registry.resets.push_back(reset);
}

}  // namespace openaclnn
