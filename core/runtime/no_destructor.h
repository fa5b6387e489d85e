// SPDX-License-Identifier: Apache-2.0
// An object that is made when it is first needed and lives as long as the process, because exit
// handlers of the program may still use it. It lies in static storage, so that its first use cannot
// run out of memory.
//
//   static constinit NoDestructor<Registry> registry;
//   return registry.get();
//
// Unlike an ordinary local static, it may be first used on any thread: where a thread of the parent
// was making it during a fork, the child makes it again. (The guard of a local static stays locked
// in such a child, which then waits for ever.) So a constructor that registers a mutex or a handler
// (fork.h) may do so twice, and no library of this project has another kind of local static with a
// guard.
#pragma once

#include <atomic>
#include <mutex>
#include <new>

#include "core/runtime/fork.h"

namespace openaclnn {

template <class T>
class NoDestructor {
 public:
  constexpr NoDestructor() = default;
  NoDestructor(const NoDestructor&) = delete;

  // What make() returns at the first call.
  template <class Make>
  T& get(Make make) {
    T* made = made_.load(std::memory_order_acquire);
    if (made != nullptr) [[likely]]
      return *made;
    const std::lock_guard lock(lock_);
    made = made_.load(std::memory_order_relaxed);
    if (made == nullptr) {
      made = new (place_) T(make());
      made_.store(made, std::memory_order_release);
    }
    return *made;
  }
  T& get() {
    return get([] { return T(); });
  }

 private:
  alignas(T) unsigned char place_[sizeof(T)] = {};
  std::atomic<T*> made_ = nullptr;
  ForkSafeLock lock_;
};

}  // namespace openaclnn
