// SPDX-License-Identifier: Apache-2.0
// Handles that can be checked: a wrong, freed or foreign pointer is an answer (nullptr), never a
// crash.
//
// All objects of one kind live in slots of one reserved address range, so `find` is a range test,
// one load and a comparison. A freed slot rests until at least kRest others were freed after it,
// and then puts its next object a step further, kTurns times: so a stale handle stays stale for
// (kRest + 1) * kTurns objects.
#pragma once

#include <sys/mman.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <new>
#include <utility>

#include "core/runtime/fork.h"
#include "core/runtime/immortal.h"

namespace openaclnn {

template <class T>
class HandlePool {
 public:
  // `capacity` bounds the number of live objects; the range is address space only until slots are
  // touched.
  explicit HandlePool(size_t capacity) {
    hold_across_fork(mutex_);
    for (; capacity >= 64; capacity /= 2) {  // a tight address-space limit gets a smaller pool
      void* range = mmap(nullptr, capacity * sizeof(Slot), PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
      if (range == MAP_FAILED) continue;
      slots_ = static_cast<Slot*>(range);
      capacity_ = capacity;
      break;
    }
  }
  HandlePool(const HandlePool&) = delete;
  HandlePool& operator=(const HandlePool&) = delete;

  // nullptr when `capacity` objects are alive.
  template <class... Arguments>
  T* create(Arguments&&... arguments) {
    Slot* slot = take();
    if (slot == nullptr) return nullptr;
    unsigned char* place = slot->bytes + kStep * (slot->turn++ % kTurns);
    T* object;
    try {
      object = new (place) T(std::forward<Arguments>(arguments)...);
    } catch (...) {
      give(slot);
      throw;
    }
    slot->live.store(object, std::memory_order_release);
    return object;
  }

  // The live object behind a handle from outside, or nullptr.
  T* find(const void* handle) const {
    Slot* slot = slot_of(handle);
    if (slot == nullptr) return nullptr;
    T* object = slot->live.load(std::memory_order_acquire);
    return object == handle ? object : nullptr;
  }

  // false when the handle is not alive: of two threads that destroy the same object, one is told.
  bool destroy(const void* handle) {
    return destroy(handle, [](T&) {});
  }

  // The same, with last(T&) called by the thread that destroys before the object goes.
  template <class F>
  bool destroy(const void* handle, F last) {
    T* object = find(handle);
    if (object == nullptr) return false;
    Slot* slot = slot_of(object);
    T* expected = object;
    if (!slot->live.compare_exchange_strong(expected, nullptr, std::memory_order_acq_rel)) {
      return false;
    }
    last(*object);
    object->~T();
    give(slot);
    return true;
  }

  // Calls f(T&) for every object that lives all the while; others may be left out. An object found
  // alive may be on its way out in another thread: its destructor has to wait for f.
  template <class F>
  void for_each(F f) {
    for (size_t i = 0; i < used_.load(std::memory_order_acquire); ++i) {
      if (T* object = slots_[i].live.load(std::memory_order_acquire)) f(*object);
    }
  }

 private:
  static constexpr size_t kRest = 16;
  static constexpr size_t kTurns = 8;
  static constexpr size_t kStep = alignof(T) > 16 ? alignof(T) : 16;

  struct Slot {
    std::atomic<T*> live;  // where in `bytes`; nullptr when none
    Slot* next;
    size_t turn;
    alignas(kStep) unsigned char bytes[sizeof(T) + kStep * (kTurns - 1)];
  };

  Slot* slot_of(const void* handle) const {
    const auto distance = reinterpret_cast<uintptr_t>(handle) - reinterpret_cast<uintptr_t>(slots_);
    const size_t range = used_.load(std::memory_order_relaxed) * sizeof(Slot);
    return distance < range ? slots_ + distance / sizeof(Slot) : nullptr;
  }

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
  static Immortal<HandlePool<T>> pool(capacity);
  return *pool;
}

}  // namespace openaclnn
