// SPDX-License-Identifier: Apache-2.0
// Each thread of a region owns one contiguous share and takes it in blocks of `grain` items; who is
// done takes blocks of the others. Shares keep a core on the data its L2 already holds (64 Ki
// elements fp32: 153 against 90 GB/s when shares wander); taking over means that nobody waits for a
// thread that the system has not woken yet.
#include "core/runtime/parallel.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <new>
#include <thread>

#include "core/runtime/fork.h"

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

int threads_from_environment() {
  if (const char* text = std::getenv("OPENACLNN_NUM_THREADS")) {
    const int count = std::atoi(text);
    if (count > 0) return std::min(count, kMaxThreads);
  }
  cpu_set_t mask;
  if (sched_getaffinity(0, sizeof mask, &mask) == 0)
    return std::clamp(CPU_COUNT(&mask), 1, kMaxThreads);
  return std::clamp(static_cast<int>(std::thread::hardware_concurrency()), 1, kMaxThreads);
}

class Pool {
 public:
  void run(int64_t n, int64_t grain, int threads, RangeFunction function, void* context) {
    start_workers(threads - 1);
    function_ = function;
    context_ = context;
    n_ = n;
    grain_ = grain;
    threads_ = threads;
    const int64_t blocks = (n + grain - 1) / grain;
    for (int i = 0; i < threads; ++i) {
      share_[i].next.store(blocks * i / threads, std::memory_order_relaxed);
      share_[i].end = blocks * (i + 1) / threads;
    }
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
  struct alignas(64) Share {
    std::atomic<int64_t> next;
    int64_t end;
  };

  void start_workers(int count) {
    if (workers_ >= count) return;
    sigset_t all, before;  // signals belong to the threads of the program
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    for (; workers_ < count; ++workers_) std::thread(&Pool::work, this, workers_ + 1).detach();
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }

  void take_part(int self) {
    for (int i = 0; i < threads_; ++i) {
      Share& share = share_[(self + i) % threads_];
      for (;;) {
        const int64_t block = share.next.fetch_add(1, std::memory_order_relaxed);
        if (block >= share.end) break;
        function_(context_, block * grain_, std::min(n_, (block + 1) * grain_));
      }
    }
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
      if (std::chrono::steady_clock::now() > give_up) region_.wait(seen);
    }
  }

  RangeFunction function_ = nullptr;
  void* context_ = nullptr;
  int64_t n_ = 0, grain_ = 1;
  int threads_ = 0;
  int workers_ = 0;
  alignas(64) std::atomic<int> region_ = 0;
  alignas(64) std::atomic<bool> open_ = false;
  alignas(64) std::atomic<int> inside_ = 0;
  Share share_[kMaxThreads];
};

Pool& pool() {
  static Pool* const instance = [] {
    after_fork_in_child([] { new (&pool()) Pool; });  // its workers stayed in the parent
    return new Pool;
  }();
  return *instance;
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
    return;
  }
  pool().run(n, grain, threads, function, context);
  pool().busy.clear(std::memory_order_release);
}

}  // namespace openaclnn
