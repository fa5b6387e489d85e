// SPDX-License-Identifier: Apache-2.0
// One thread's part of a region of parallel_for.
#pragma once

#include <atomic>
#include <cstdint>

#include "core/support/parallel.h"

namespace openaclnn {

struct Region {
  RangeFunction function;
  void* context;
  int64_t n, block;  // items, and items in a block
  int threads;
};

// A thread's blocks and the region's data in one cache line, so that a spinning worker gets all at
// once. `left_` holds the region's number and the blocks [begin, end) not yet taken. Taking a block
// is a compare-exchange of that word, which fails once the region is closed; so stale data is never
// acted on.
class alignas(64) Share {
 public:
  static constexpr int64_t kMaxBlocks = 0xffff;

  void open(const Region& region, uint32_t number, int64_t begin, int64_t end) {
    function_.store(region.function, std::memory_order_relaxed);
    context_.store(region.context, std::memory_order_relaxed);
    n_.store(region.n, std::memory_order_relaxed);
    block_.store(region.block, std::memory_order_relaxed);
    threads_.store(region.threads, std::memory_order_relaxed);
    left_.store(uint64_t{number} << 32 | static_cast<uint64_t>(begin << 16 | end));
  }

  uint32_t number() const { return static_cast<uint32_t>(left_.load() >> 32); }

  Region region() const {
    return {function_.load(std::memory_order_relaxed), context_.load(std::memory_order_relaxed),
            n_.load(std::memory_order_relaxed), block_.load(std::memory_order_relaxed),
            threads_.load(std::memory_order_relaxed)};
  }

  // Takes the first block (owner) or the last (others); -1: none left.
  int64_t take(uint32_t number, bool owner) {
    uint64_t left = left_.load(std::memory_order_relaxed);
    while (left >> 32 == number && begin(left) < end(left)) {
      const uint64_t rest = owner ? left + (uint64_t{1} << 16) : left - 1;
      if (left_.compare_exchange_weak(left, rest)) return owner ? begin(left) : end(left) - 1;
    }
    return -1;
  }

  bool empty(uint32_t number) const {
    const uint64_t left = left_.load(std::memory_order_relaxed);
    return left >> 32 != number || begin(left) >= end(left);
  }

 private:
  static int64_t begin(uint64_t left) { return static_cast<int64_t>(left >> 16 & 0xffff); }
  static int64_t end(uint64_t left) { return static_cast<int64_t>(left & 0xffff); }

  std::atomic<uint64_t> left_ = 0;
  std::atomic<RangeFunction> function_ = nullptr;
  std::atomic<void*> context_ = nullptr;
  std::atomic<int64_t> n_ = 0, block_ = 1;
  std::atomic<int> threads_ = 1;
};

// What a worker reports: how many blocks of a region it has done, and whether it must be woken.
struct alignas(64) Progress {
  std::atomic<uint64_t> done = 0;  // region number and blocks
  std::atomic<int> asleep = 0;

  void publish(uint32_t number, int64_t blocks) {
    done.store(uint64_t{number} << 32 | static_cast<uint64_t>(blocks), std::memory_order_release);
  }
  int64_t done_of(uint32_t number) const {
    const uint64_t published = done.load(std::memory_order_acquire);
    return published >> 32 == number ? static_cast<int64_t>(published & 0xffffffff) : 0;
  }
};

}  // namespace openaclnn
