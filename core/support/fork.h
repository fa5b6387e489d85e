// SPDX-License-Identifier: Apache-2.0
// Fork safety of process-wide objects: the child of fork() stays usable (multiprocessing, test
// runners).
//
// A registered mutex is held across fork, so the child finds consistent data. Registered mutexes
// are leaves: code that holds one takes no other lock.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>

namespace openaclnn {

void hold_across_fork(std::mutex& mutex);  // a second time: no effect

// A mutex held across fork. With NoDestructor: one for the whole process.
struct ForkHeldMutex {
  ForkHeldMutex() { hold_across_fork(mutex); }
  std::mutex mutex;
};

// Runs in the child, after the mutexes are released: worker threads do not survive a fork, their
// owners start again. Registered a second time: no effect.
void after_fork_in_child(void (*reset)());

extern std::atomic<uint32_t> generation;
// 1, and one more in each child than in its parent.
inline uint32_t process_generation() { return generation.load(std::memory_order_relaxed); }

// ---- a lock that a child of fork finds free ----

// A ticket lock for rare contention: uncontended, lock is one compare-exchange and unlock one
// store. It may be held while work runs, may live in zeroed memory, and is free in a child of fork.
//
// It is fair. Otherwise a thread that runs one executor in a loop would starve a thread that wants
// to destroy the executor.

class ForkSafeLock {
 public:
  void lock() {
    uint32_t next = next_.load(std::memory_order_relaxed), ticket;
    do {
      ticket = in_this_process(next);
    } while (!next_.compare_exchange_weak(next, after(ticket), std::memory_order_relaxed));
    if (served() != ticket) [[unlikely]]
      wait(ticket);
  }
  // Fails where another thread has the lock or waits for it.
  bool try_lock() {
    uint32_t next = next_.load(std::memory_order_relaxed);
    const uint32_t ticket = in_this_process(next);
    return served() == ticket &&
           next_.compare_exchange_strong(next, after(ticket), std::memory_order_relaxed);
  }
  void unlock() {
    // Read before the store: after it, a waiting thread may free the lock.
    const uint32_t next = next_.load(std::memory_order_relaxed);
    if (is_of_parent(next)) return;  // it was held across a fork
    const uint32_t mine = served();
    served_.store(after(mine), std::memory_order_release);
    if (next != after(mine)) [[unlikely]]
      wake();
  }

 private:
  // A word is the process generation (16 bits) and a ticket (16 bits). A word of another generation
  // counts as ticket 0 of this one.
  static constexpr uint32_t kTickets = 0xffff;
  static uint32_t in_this_process(uint32_t word) {
    const uint32_t first = process_generation() << 16;
    return (word & ~kTickets) == first ? word : first;
  }
  static bool is_of_parent(uint32_t word) { return word != in_this_process(word); }
  static uint32_t after(uint32_t word) { return (word & ~kTickets) | ((word + 1) & kTickets); }

  uint32_t served() const { return in_this_process(served_.load(std::memory_order_acquire)); }
  void wait(uint32_t ticket);
  void wake();

  std::atomic<uint32_t> next_ = 0;    // the ticket that is drawn next
  std::atomic<uint32_t> served_ = 0;  // whose turn it is
};

}  // namespace openaclnn
