// SPDX-License-Identifier: Apache-2.0
// Handles that can be checked: a wrong, freed or foreign pointer yields nullptr, never a crash.
// All objects of one type live in slots of one reserved address range, so `find` is a range test, a
// load and a comparison. A freed slot is reused only after kRest others were freed, and its next
// object starts kStep bytes further, for kTurns turns: a stale handle is recognised for at least
// (kRest + 1) * kTurns objects.
//
// A thread that works on an object which another thread may destroy holds it:
//   HandlePool<T>::Hold hold(pool, handle);   // one thread at a time
//   if (!hold) return fail(…);
// or pins it, if several threads work on one object at a time (types with T::kPinned).
#pragma once

#include <sys/mman.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <new>
#include <utility>

#include "core/support/fork.h"
#include "core/support/no_destructor.h"
#include "core/support/pin_count.h"

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

  // Exclusive access to the live object behind a handle from outside, until release() or the
  // destructor. Other threads that hold or destroy the object wait; find() does not.
  class Hold {
   public:
    Hold() = default;
    Hold(HandlePool& pool, const void* handle) : pool_(&pool), object_(pool.find(handle)) {
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
        pool_->give(slot_);
      } else {
        release();
      }
    }
    Hold& operator=(Hold&& other) noexcept {
      std::swap(pool_, other.pool_), std::swap(object_, other.object_);
      std::swap(slot_, other.slot_), std::swap(ends_, other.ends_);
      return *this;
    }

    explicit operator bool() const { return object_ != nullptr; }
    T* operator->() const { return object_; }
    T& operator*() const { return *object_; }

    void release() {
      if (object_ != nullptr) slot_->lock.unlock();
      object_ = nullptr;
    }

    // No thread finds the object from now on; it is destroyed when the hold ends.
    void withdraw(End end) {
      note_end(slot_, pool_->turn_of(slot_, object_), end);
      slot_->live.store(nullptr, std::memory_order_release);
      slot_->lock.unlock();
      ends_ = true;
    }
    // Undoes withdraw().
    void restore() {
      slot_->lock.lock();
      slot_->live.store(object_, std::memory_order_release);
      ends_ = false;
    }

   private:
    HandlePool* pool_ = nullptr;
    T* object_ = nullptr;
    Slot* slot_ = nullptr;
    bool ends_ = false;
  };

  // The live object behind a handle from outside. It is not destroyed while a pin on it exists; the
  // thread that destroys it waits, so a pin lasts for one call and no thread destroys what it pins.
  class Pin {
   public:
    Pin() = default;
    Pin(const HandlePool& pool, const void* handle) {
      static_assert(T::kPinned);
      Slot* slot = pool.slot_of(handle);
      if (slot == nullptr) return;
      // Before or after wait_for_none looks: that sees the pin, or we see the null.
      pin_ = UntypedPin(slot->pins);
      object_ = slot->live.load(std::memory_order_acquire);
      if (object_ == nullptr || object_ != handle) release();
    }
    Pin(Pin&& other) noexcept
        : pin_(std::move(other.pin_)), object_(std::exchange(other.object_, nullptr)) {}
    Pin& operator=(Pin&& other) noexcept {
      std::swap(pin_, other.pin_), std::swap(object_, other.object_);
      return *this;
    }

    explicit operator bool() const { return object_ != nullptr; }
    T* operator->() const { return object_; }
    T& operator*() const { return *object_; }
    T* get() const { return object_; }

    void release() {
      object_ = nullptr;
      pin_.release();
    }
    // The pin alone, for a list of pins on objects of several types.
    UntypedPin untyped() && { return std::move(pin_); }

   private:
    UntypedPin pin_;
    T* object_ = nullptr;
  };

  // Returns false if the handle is not alive: if two threads destroy the same object, one gets
  // false. last(T&) is called by the thread that destroys, before the destructor.
  template <class F = void (*)(T&)>
  bool destroy(const void* handle, F last = [](T&) {}) {
    Hold hold(*this, handle);
    if (!hold) return false;
    hold.withdraw(End::destroyed);
    if constexpr (kIsPinned) slot_of(handle)->pins.wait_for_none();
    last(*hold);
    return true;
  }

  // Whether the last object with this handle was consumed, rather than destroyed.
  bool was_consumed(const void* handle) const {
    const Slot* slot = slot_of(handle);
    const size_t turn = slot == nullptr ? kTurns : turn_of(slot, handle);
    return turn < kTurns && (slot->consumed.load(std::memory_order_relaxed) >> turn & 1) != 0;
  }

  // Calls f(T&) for every object that is alive throughout the call, pinned; objects created or
  // destroyed meanwhile may be left out. For a type without pins, no other thread may destroy
  // objects meanwhile.
  template <class F>
  void for_each(F f) {
    for (size_t i = 0; i < used_.load(std::memory_order_acquire); ++i) {
      T* object = slots_[i].live.load(std::memory_order_acquire);
      if constexpr (kIsPinned) {
        const Pin pin(*this, object);
        if (pin) f(*pin);
      } else if (object != nullptr) {
        f(*object);
      }
    }
  }

  // In a child of fork: the threads that held pins do not exist here.
  void forget_pins() {
    for (size_t i = 0; i < used_; ++i) slots_[i].pins.forget_all();
  }

 private:
  static constexpr size_t kRest = 16;
  static constexpr size_t kTurns = 8;
  static constexpr size_t kStep = alignof(T) > 16 ? alignof(T) : 16;
  static constexpr bool kIsPinned = requires { T::kPinned; };

  struct Slot {
    std::atomic<T*> live;  // where in `bytes`; nullptr when none
    Slot* next;
    size_t turn;
    ForkSafeLock lock;               // of a hold
    std::atomic<uint32_t> consumed;  // bit i: the last object of turn i was
    PinCount pins;
    alignas(kStep) unsigned char bytes[sizeof(T) + kStep * (kTurns - 1)];
  };

  Slot* slot_of(const void* handle) const {
    const auto distance = reinterpret_cast<uintptr_t>(handle) - reinterpret_cast<uintptr_t>(slots_);
    const size_t range = used_.load(std::memory_order_relaxed) * sizeof(Slot);
    return distance < range ? slots_ + distance / sizeof(Slot) : nullptr;
  }

  // The caller owns the slot.
  static void note_end(Slot* slot, size_t turn, End end) {
    const uint32_t others = slot->consumed.load(std::memory_order_relaxed) & ~(1u << turn);
    const uint32_t own = end == End::consumed ? 1u << turn : 0;
    slot->consumed.store(others | own, std::memory_order_relaxed);
  }

  // >= kTurns: no object of this slot begins there.
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

// Pools are never destroyed, because exit handlers of the program may still destroy objects.
// `in_child` runs in the child of a fork.
template <class T>
HandlePool<T>& pool_of(size_t capacity, void (*in_child)() = nullptr) {
  static constinit NoDestructor<HandlePool<T>> pool;
  return pool.get([=] {
    if (in_child != nullptr) after_fork_in_child(in_child);
    return HandlePool<T>(capacity);
  });
}

}  // namespace openaclnn
