// SPDX-License-Identifier: Apache-2.0
// Work stealing: each thread owns a contiguous share and takes blocks from its front, then steals
// blocks from the back of other shares. Fixed shares keep a core on data in its L2 (64 Ki elements
// fp32: 153 against 90 GB/s); stealing means that no thread waits for one not yet woken.
#include "core/support/parallel.h"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <new>
#include <thread>

#include "core/support/environment.h"
#include "core/support/fork.h"
#include "core/support/no_destructor.h"
#include "core/support/parallel_share.h"
#include "core/support/threads.h"

namespace openaclnn {
namespace {

// Longer than the gap between two calls of a training loop, shorter than a time slice.
constexpr auto kSpin = std::chrono::microseconds(50);

inline void pause_cpu() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// Orders non-temporal stores before the range is reported done.
inline void order_stores() {
#if defined(__x86_64__)
  __builtin_ia32_sfence();
#endif
}

// RAII: excludes one CPU from the affinity of the calling thread. On a virtual machine, where an
// idle CPU may look busy, a woken thread is otherwise queued behind its waker until the scheduler
// balances (3 to 4 ms).
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
  return static_cast<int>(
      environment_number("OPENACLNN_NUM_THREADS", std::clamp(cpus, 1, kMaxThreads)));
}

// Returns how many items a block has. Small blocks leave little over at the end, but a block has
// about half a grain (with a quarter 64 Ki elements fp32 take 3.5 instead of 3.0 us), and a thread
// has at most 32 blocks, twice as many after rounding. Of the two neighbouring sizes the function
// takes the one that splits n more evenly.
int64_t block_for(int64_t n, int64_t grain, int threads) {
  static_assert(64 * kMaxThreads <= Share::kMaxBlocks);
  const int64_t half = std::max<int64_t>(grain / 2, 1);
  const int64_t wanted = threads * std::clamp<int64_t>(n / (threads * half), 1, 32);
  const int64_t least = std::max<int64_t>(n / wanted, 1);
  const auto longest = [=](int64_t block) {
    const int64_t blocks = (n + block - 1) / block, before = blocks * (threads - 1) / threads;
    return std::max(blocks / threads * block, n - before * block);
  };
  return longest(least) <= longest(least + 1) ? least : least + 1;
}

class Pool {
 public:
  void run(int64_t n, int64_t grain, int threads, RangeFunction function, void* context) {
    start_workers(threads - 1);
    const int64_t block = block_for(n, grain, threads);
    const int64_t blocks = (n + block - 1) / block;
    const Region region{function, context, n, block, threads};
    const uint32_t number = ++number_;
    caller_cpu_.store(sched_getcpu(), std::memory_order_relaxed);
    for (int i = threads - 1; i >= 0; --i) {
      share_[i].open(region, number, blocks * i / threads, blocks * (i + 1) / threads);
      if (i > 0) wake(progress_[i]);
    }
    take_part(0, number, region);
    for (int spins = 0; done(number, threads) < blocks; ++spins) {
      spins < 10'000 ? pause_cpu() : std::this_thread::yield();
    }
  }

  std::atomic_flag busy = ATOMIC_FLAG_INIT;

 private:
  void start_workers(int count) {
    for (; workers_ < count; ++workers_) {
      std::thread worker;
      if (!start_thread(worker, [this, self = workers_ + 1] { work(self); })) return;
      worker.detach();
    }
  }

  int64_t done(uint32_t number, int threads) const {
    int64_t sum = 0;
    for (int i = 0; i < threads; ++i) sum += progress_[i].done_of(number);
    return sum;
  }

  void take_part(int self, uint32_t number, const Region& region) {
    int64_t done = 0;
    const auto take_all = [&](int from) {
      for (int64_t block; (block = share_[from].take(number, from == self)) >= 0; ++done) {
        const int64_t begin = block * region.block;
        region.function(region.context, begin, std::min(region.n, begin + region.block));
      }
      order_stores();
      progress_[self].publish(number, done);
    };
    take_all(self);
    for (int i = 1; i < region.threads; ++i) {
      const int other = (self + i) % region.threads;
      if (!share_[other].empty(number)) take_all(other);
    }
  }

  void work(int self) {
    uint32_t seen = 0;
    for (;;) {
      seen = wait_for_region(self, seen);
      take_part(self, seen, share_[self].region());
    }
  }

  uint32_t wait_for_region(int self, uint32_t seen) {
    const Share& share = share_[self];
    const auto give_up = std::chrono::steady_clock::now() + kSpin;
    for (;;) {
      for (int i = 0; i < 32; ++i) {
        if (const uint32_t number = share.number(); number != seen) return number;
        pause_cpu();
      }
      if (std::chrono::steady_clock::now() < give_up) continue;
      const OffCpu off(caller_cpu_.load(std::memory_order_relaxed));
      std::atomic<int>& asleep = progress_[self].asleep;
      while (share.number() == seen) {
        asleep.store(1);
        if (share.number() == seen) asleep.wait(1);
      }
      asleep.store(0);
    }
  }

  // Wakes a worker after its share was opened. Accesses to the share and to `asleep` have one total
  // order. We write the share and then read `asleep`; the worker writes `asleep` and then reads the
  // share; so at least one of the two sees what the other wrote. Our store of 0 may be late: the
  // worker may already have finished this region and sleep. It then wakes once for nothing, stores
  // 1 again and reads its share again. A late 0 cannot hide a sleeping worker from the next region:
  // that region is opened after our store, the worker stores 1 again before it sleeps, and so the
  // wake() of that region sees the 1.
  static void wake(Progress& progress) {
    if (progress.asleep.load() == 0) return;
    progress.asleep.store(0);
    progress.asleep.notify_one();
  }

  uint32_t number_ = 0;
  int workers_ = 0;
  std::atomic<int> caller_cpu_ = -1;
  Share share_[kMaxThreads];
  Progress progress_[kMaxThreads];
};

Pool& pool() {
  struct Registered {
    Registered() {
      after_fork_in_child([] { new (&pool()) Pool; });  // the child has no workers
    }
    Pool only;
  };
  static constinit NoDestructor<Registered> instance;
  return instance.get().only;
}

// A region on torch's threads, with shares as in the pool. It lies on the caller's stack, so it has
// few of them: where torch has more threads, several take from one share.
class TorchRegion {
 public:
  TorchRegion(int64_t n, int64_t grain, int threads, RangeFunction function, void* context)
      : region_{function, context, n, block_for(n, grain, threads), std::min(threads, kMaxShares)} {
    const int64_t blocks = (n + region_.block - 1) / region_.block;
    for (int i = 0; i < region_.threads; ++i) {
      share_[i].open(region_, kNumber, blocks * i / region_.threads,
                     blocks * (i + 1) / region_.threads);
    }
  }

  void run(int threads) {
    const auto part = [](void* region, int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) static_cast<TorchRegion*>(region)->take_part(i);
    };
    if (!run_on_torch(threads, part, this)) take_part(0);  // the rest
  }

 private:
  static constexpr int kMaxShares = 32;
  static constexpr uint32_t kNumber = 1;

  void take_part(int64_t self) {
    for (int i = 0; i < region_.threads; ++i) {
      Share& from = share_[(self + i) % region_.threads];
      for (int64_t block; (block = from.take(kNumber, i == 0)) >= 0;) {
        const int64_t begin = block * region_.block;
        region_.function(region_.context, begin, std::min(region_.n, begin + region_.block));
      }
    }
    order_stores();
  }

  const Region region_;
  Share share_[kMaxShares];
};

std::atomic<int>& thread_count() {
  static constinit NoDestructor<std::atomic<int>> count;
  return count.get([] { return std::atomic<int>(threads_from_environment()); });
}

}  // namespace

int num_threads() { return thread_count().load(std::memory_order_relaxed); }

void set_num_threads(int count) { thread_count().store(std::clamp(count, 1, kMaxThreads)); }

void parallel_for(int64_t n, int64_t grain, RangeFunction function, void* context) {
  if (n <= 0) return;
  grain = std::max<int64_t>(grain, 1);
  auto threads = static_cast<int>(std::min<int64_t>(num_threads(), (n + grain - 1) / grain));
  if (const int allowed = threads > 1 ? torch_threads() : 0; allowed > 0) {
    threads = std::min(threads, allowed);
    if (threads > 1) return TorchRegion(n, grain, threads, function, context).run(threads);
  }
  if (threads <= 1 || pool().busy.test_and_set(std::memory_order_acquire)) {
    function(context, 0, n);
    order_stores();
    return;
  }
  pool().run(n, grain, threads, function, context);
  pool().busy.clear(std::memory_order_release);
}

}  // namespace openaclnn
