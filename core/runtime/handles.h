// SPDX-License-Identifier: Apache-2.0
// Handles that can be checked: a wrong, freed or foreign pointer is an answer (nullptr), never a
// crash.
//
// All objects of one kind live in slots of one reserved address range, so `find` is a range test,
// an alignment test and one load. A freed slot rests until at least kRest others were freed after
// it, so that a stale handle stays stale.
#pragma once

#include <sys/mman.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <new>
#include <utility>

#include "core/runtime/fork.h"

namespace openaclnn {

template <class T>
class HandlePool {
 public:
  // `capacity` bounds the number of live objects; the range is address space only until slots are
  // touched.
  explicit HandlePool(size_t capacity) {
    for (; capacity >= 64; capacity /= 2) {  // a tight address-space limit gets a smaller pool
      void* range = mmap(nullptr, capacity * sizeof(Slot), PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
      if (range == MAP_FAILED) continue;
      slots_ = static_cast<Slot*>(range);
      capacity_ = capacity;
      break;
    }
    hold_across_fork(mutex_);
  }
  HandlePool(const HandlePool&) = delete;
  HandlePool& operator=(const HandlePool&) = delete;

  // nullptr when `capacity` objects are alive.
  template <class... Arguments>
  T* create(Arguments&&... arguments) {
    Slot* slot = take();
    if (slot == nullptr) return nullptr;
    T* object = new (slot->bytes) T(std::forward<Arguments>(arguments)...);
    slot->live.store(true, std::memory_order_release);
    return object;
  }

  // The live object behind a handle from outside, or nullptr.
  T* find(const void* handle) const {
    const auto address = reinterpret_cast<uintptr_t>(handle) - offsetof(Slot, bytes);
    const auto distance = address - reinterpret_cast<uintptr_t>(slots_);
    if (distance >= used_.load(std::memory_order_relaxed) * sizeof(Slot)) return nullptr;
    if (distance % sizeof(Slot) != 0) return nullptr;
    Slot* slot = slots_ + distance / sizeof(Slot);
    return slot->live.load(std::memory_order_acquire) ? reinterpret_cast<T*>(slot->bytes) : nullptr;
  }

  // false when the handle is not alive: of two threads that destroy the same object, one is told.
  bool destroy(const void* handle) {
    T* object = find(handle);
    if (object == nullptr) return false;
    auto* slot =
        reinterpret_cast<Slot*>(reinterpret_cast<unsigned char*>(object) - offsetof(Slot, bytes));
    if (!slot->live.exchange(false, std::memory_order_acq_rel)) return false;
    object->~T();
    give(slot);
    return true;
  }

  // Calls f(T&) for every live object; for use where no other thread creates or destroys.
  template <class F>
  void for_each(F f) {
    for (size_t i = 0; i < used_.load(std::memory_order_acquire); ++i) {
      if (slots_[i].live.load(std::memory_order_acquire)) f(*reinterpret_cast<T*>(slots_[i].bytes));
    }
  }

 private:
  static constexpr size_t kRest = 16;

  struct Slot {
    std::atomic<bool> live;
    Slot* next;
    alignas(alignof(T) > 16 ? alignof(T) : 16) unsigned char bytes[sizeof(T)];
  };

  Slot* take() {
    std::lock_guard lock(mutex_);
    if (resting_ > kRest || (used_ == capacity_ && resting_ > 0)) {
      Slot* slot = oldest_;
      oldest_ = slot->next;
      --resting_;
      return slot;
    }
    if (used_ == capacity_) return nullptr;
    return slots_ + used_.fetch_add(1, std::memory_order_acq_rel);
  }

  void give(Slot* slot) {
    std::lock_guard lock(mutex_);
    slot->next = nullptr;
    (resting_++ == 0 ? oldest_ : newest_->next) = slot;
    newest_ = slot;
  }

  Slot* slots_ = nullptr;
  size_t capacity_ = 0;
  std::atomic<size_t> used_ = 0;
  std::mutex mutex_;
  Slot* oldest_ = nullptr;
  Slot* newest_ = nullptr;
  size_t resting_ = 0;
};

// Pools live as long as the process: exit handlers of the program may still free what they hold.
template <class T>
HandlePool<T>& pool_of(size_t capacity) {
  static auto& pool = *new HandlePool<T>(capacity);
  return pool;
}

}  // namespace openaclnn
