// SPDX-License-Identifier: Apache-2.0
// Each thread of a region owns one contiguous share and takes blocks of it from the front; who is
// done takes blocks of the others from the back. Shares keep a core on the data its L2 already
// holds (64 Ki elements fp32: 153 against 90 GB/s when shares wander); taking over means that
// nobody waits for a thread that the system has not woken yet.
#include "core/runtime/parallel.h"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <new>
#include <thread>

#include "core/runtime/environment.h"
#include "core/runtime/fork.h"
#include "core/runtime/immortal.h"
#include "core/runtime/thread.h"

namespace openaclnn {
namespace {

// Longer than the gap between two calls of a training loop, short against a time slice.
constexpr auto kSpin = std::chrono::microseconds(50);

inline void pause_cpu() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// Before anybody hears that a range is done: streaming stores are ordered by nothing else.
inline void order_stores() {
#if defined(__x86_64__)
  __builtin_ia32_sfence();
#endif
}

// Takes the calling thread off a CPU while it lives. A thread that is woken by one that is running
// should not be queued behind it: on a virtual machine, where an idle CPU may look taken, that is
// what happens, and it stays there until the scheduler balances (3 to 4 ms).
class OffCpu {
 public:
  explicit OffCpu(int cpu) {
    if (cpu < 0 || sched_getaffinity(0, sizeof before_, &before_) != 0) return;
    cpu_set_t others = before_;
    CPU_CLR(cpu, &others);
    moved_ = CPU_COUNT(&others) > 0 && sched_setaffinity(0, sizeof others, &others) == 0;
  }
  ~OffCpu() {
    if (moved_) sched_setaffinity(0, sizeof before_, &before_);
  }
  OffCpu(const OffCpu&) = delete;

 private:
  cpu_set_t before_;
  bool moved_ = false;
};

int threads_from_environment() {
  cpu_set_t mask;
  const int cpus = sched_getaffinity(0, sizeof mask, &mask) == 0
                       ? CPU_COUNT(&mask)
                       : static_cast<int>(std::thread::hardware_concurrency());
  return static_cast<int>(environment_number("OPENACLNN_NUM_THREADS", 1, kMaxThreads,
                                             std::clamp(cpus, 1, kMaxThreads)));
}

class Pool {
 public:
  void run(int64_t n, int64_t grain, int threads, RangeFunction function, void* context) {
    start_workers(threads - 1);
    function_ = function;
    context_ = context;
    n_ = n;
    threads_ = threads;
    // small, so that little is left over at the end, but not more than about 32 a thread
    block_ = std::max<int64_t>({grain / 8, n / (int64_t{32} * threads), 1});
    const int64_t blocks = (n + block_ - 1) / block_;
    for (int i = 0; i < threads; ++i) {
      share_[i].set(static_cast<uint32_t>(blocks * i / threads),
                    static_cast<uint32_t>(blocks * (i + 1) / threads));
    }
    caller_cpu_.store(sched_getcpu(), std::memory_order_relaxed);
    open_.store(true);
    region_.fetch_add(1);
    region_.notify_all();
    take_part(0);
    open_.store(false);
    for (int spins = 0; inside_.load() != 0; ++spins) {
      spins < 10'000 ? pause_cpu() : std::this_thread::yield();
    }
  }

  std::atomic_flag busy = ATOMIC_FLAG_INIT;

 private:
  // The blocks [begin, end) that nobody has taken, in one word.
  class alignas(64) Share {
   public:
    void set(uint32_t begin, uint32_t end) {
      left_.store(uint64_t{begin} << 32 | end, std::memory_order_relaxed);
    }
    // The first block for the owner, the last one for others; -1 when there is none.
    int64_t take(bool owner) {
      uint64_t left = left_.load(std::memory_order_relaxed);
      for (;;) {
        const auto begin = static_cast<uint32_t>(left >> 32), end = static_cast<uint32_t>(left);
        if (begin >= end) return -1;
        const uint64_t rest =
            owner ? uint64_t{begin + 1} << 32 | end : uint64_t{begin} << 32 | (end - 1);
        if (left_.compare_exchange_weak(left, rest, std::memory_order_relaxed))
          return owner ? begin : end - 1;
      }
    }

   private:
    std::atomic<uint64_t> left_;
  };

  void start_workers(int count) {
    for (; workers_ < count; ++workers_) {
      std::thread worker;
      if (!start_thread(worker, [this, self = workers_ + 1] { work(self); })) return;
      worker.detach();
    }
  }

  void take_part(int self) {
    for (int i = 0; i < threads_; ++i) {
      Share& share = share_[(self + i) % threads_];
      for (int64_t block; (block = share.take(i == 0)) >= 0;) {
        function_(context_, block * block_, std::min(n_, (block + 1) * block_));
      }
    }
    order_stores();
  }

  void work(int self) {
    int seen = 0;
    for (;;) {
      wait_for_region(seen);
      seen = region_.load();
      // The caller closes a region and then waits until nobody is inside, so either it sees us or
      // we see it closed.
      inside_.fetch_add(1);
      if (open_.load() && self < threads_) take_part(self);
      inside_.fetch_sub(1);
    }
  }

  void wait_for_region(int seen) {
    const auto give_up = std::chrono::steady_clock::now() + kSpin;
    while (region_.load() == seen) {
      for (int i = 0; i < 32; ++i) {
        if (region_.load(std::memory_order_relaxed) != seen) return;
        pause_cpu();
      }
      if (std::chrono::steady_clock::now() > give_up) {
        const OffCpu sleep(caller_cpu_.load(std::memory_order_relaxed));
        region_.wait(seen);
      }
    }
  }

  RangeFunction function_ = nullptr;
  void* context_ = nullptr;
  int64_t n_ = 0, block_ = 1;
  int threads_ = 0;
  int workers_ = 0;
  std::atomic<int> caller_cpu_ = -1;
  alignas(64) std::atomic<int> region_ = 0;
  alignas(64) std::atomic<bool> open_ = false;
  alignas(64) std::atomic<int> inside_ = 0;
  Share share_[kMaxThreads];
};

Pool& pool() {
  struct Registered {
    Registered() {
      after_fork_in_child([] { new (&pool()) Pool; });  // its workers stayed in the parent
    }
    Pool only;
  };
  static Immortal<Registered> instance;
  return (*instance).only;
}

std::atomic<int>& thread_count() {
  static std::atomic<int> count = threads_from_environment();
  return count;
}

}  // namespace

int num_threads() { return thread_count().load(std::memory_order_relaxed); }

void set_num_threads(int count) { thread_count().store(std::clamp(count, 1, kMaxThreads)); }

void parallel_for(int64_t n, int64_t grain, RangeFunction function, void* context) {
  if (n <= 0) return;
  grain = std::max<int64_t>(grain, 1);
  const auto threads = static_cast<int>(std::min<int64_t>(num_threads(), (n + grain - 1) / grain));
  if (threads <= 1 || pool().busy.test_and_set(std::memory_order_acquire)) {
    function(context, 0, n);
    order_stores();
    return;
  }
  pool().run(n, grain, threads, function, context);
  pool().busy.clear(std::memory_order_release);
}

}  // namespace openaclnn
