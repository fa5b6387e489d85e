// SPDX-License-Identifier: Apache-2.0
// A lazily constructed static object that is never destroyed, because exit handlers of the program
// may still use it. Static storage: the first use allocates nothing.
//
//   static constinit NoDestructor<Registry> registry;
//   return registry.get();
//
// Unlike a local static, it survives a fork during construction: the child constructs it again.
// (The guard of a local static would stay locked in the child for ever; a test finds any in this
// project's libraries.) So a constructor may run twice, and registers mutexes and handlers (fork.h)
// accordingly.
#pragma once

#include <atomic>
#include <mutex>
#include <new>

#include "core/support/fork.h"

namespace openaclnn {

template <class T>
class NoDestructor {
 public:
  constexpr NoDestructor() = default;
  NoDestructor(const NoDestructor&) = delete;

  // Constructs the object from make() at the first call.
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
