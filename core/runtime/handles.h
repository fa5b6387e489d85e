// SPDX-License-Identifier: Apache-2.0
// Handles that can be checked: a wrong, freed or foreign pointer yields nullptr, never a crash.
//
// All objects of one kind live in slots of one reserved address range, so `find` is a range test,
// one load and a comparison. A freed slot rests until at least kRest others were freed after it,
// and then puts its next object a step further, kTurns times: so a stale handle stays stale for
// (kRest + 1) * kTurns objects.
//
// A thread that works on an object which another thread may end holds it meanwhile:
//
//   HandlePool<T>::Hold hold(pool, handle);
//   if (!hold) return fail(…);
//   hold->work();
#pragma once

#include <sys/mman.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <new>
#include <utility>

#include "core/runtime/fork.h"
#include "core/runtime/fork_lock.h"
#include "core/runtime/immortal.h"

namespace openaclnn {

template <class T>
class HandlePool {
  struct Slot;

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
    const size_t turn = slot->turn++ % kTurns;
    unsigned char* place = slot->bytes + kStep * turn;
    note_end(slot, turn, End::destroyed);
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

  enum class End { destroyed, consumed };

  // The object behind a handle from outside, for this thread alone as long as the hold lives or
  // until release(): others that hold or destroy it wait. find() does not.
  class Hold {
   public:
    Hold(HandlePool& pool, const void* handle) : pool_(pool), object_(pool.find(handle)) {
      if (object_ == nullptr) return;
      slot_ = pool.slot_of(handle);
      slot_->lock.lock();
      if (pool.find(handle) != nullptr) return;  // else another thread has ended it
      slot_->lock.unlock();
      object_ = nullptr;
    }
    ~Hold() {
      if (ends_) {
        object_->~T();
        pool_.give(slot_);
      } else {
        release();
      }
    }
    Hold(const Hold&) = delete;

    explicit operator bool() const { return object_ != nullptr; }
    T* operator->() const { return object_; }
    T& operator*() const { return *object_; }

    void release() {
      if (object_ != nullptr) slot_->lock.unlock();
      object_ = nullptr;
    }

    // No thread finds the object from now on; it is destroyed when the hold ends.
    void withdraw(End end) {
      note_end(slot_, pool_.turn_of(slot_, object_), end);
      slot_->live.store(nullptr, std::memory_order_release);
      slot_->lock.unlock();
      ends_ = true;
    }
    // Takes that back.
    void restore() {
      slot_->lock.lock();
      slot_->live.store(object_, std::memory_order_release);
      ends_ = false;
    }

   private:
    HandlePool& pool_;
    T* object_;
    Slot* slot_ = nullptr;
    bool ends_ = false;
  };

  // Returns false if the handle is not alive: if two threads destroy the same object, one gets
  // false.
  bool destroy(const void* handle) {
    return destroy(handle, [](T&) {});
  }

  // The same, with last(T&) called by the thread that destroys before the object goes.
  template <class F>
  bool destroy(const void* handle, F last) {
    Hold hold(*this, handle);
    if (!hold) return false;
    hold.withdraw(End::destroyed);
    last(*hold);
    return true;
  }

  // Whether the last object with this handle was consumed, rather than destroyed.
  bool was_consumed(const void* handle) const {
    const Slot* slot = slot_of(handle);
    const size_t turn = slot == nullptr ? kTurns : turn_of(slot, handle);
    return turn < kTurns && (slot->consumed.load(std::memory_order_relaxed) >> turn & 1) != 0;
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
    ForkSafeLock lock;               // of a hold
    std::atomic<uint32_t> consumed;  // bit i: the last object of turn i was
    alignas(kStep) unsigned char bytes[sizeof(T) + kStep * (kTurns - 1)];
  };

  Slot* slot_of(const void* handle) const {
    const auto distance = reinterpret_cast<uintptr_t>(handle) - reinterpret_cast<uintptr_t>(slots_);
    const size_t range = used_.load(std::memory_order_relaxed) * sizeof(Slot);
    return distance < range ? slots_ + distance / sizeof(Slot) : nullptr;
  }

  // Only the thread that has the slot to itself calls this.
  static void note_end(Slot* slot, size_t turn, End end) {
    const uint32_t others = slot->consumed.load(std::memory_order_relaxed) & ~(1u << turn);
    const uint32_t own = end == End::consumed ? 1u << turn : 0;
    slot->consumed.store(others | own, std::memory_order_relaxed);
  }

  // kTurns, or more, where no object of this slot ever begins.
  size_t turn_of(const Slot* slot, const void* handle) const {
    const auto distance =
        reinterpret_cast<uintptr_t>(handle) - reinterpret_cast<uintptr_t>(slot->bytes);
    return distance % kStep == 0 ? distance / kStep : kTurns;
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
