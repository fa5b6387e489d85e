// SPDX-License-Identifier: Apache-2.0
// One bit for each byte of device memory says whether it was given a value. Work counts when it is
// submitted, in the order of submission.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "core/base/tensor.h"

namespace openaclnn::check {

// The bytes of a view as runs. A run has the bytes of [low, high) at addresses whose bit in
// `stride_mask`, by the address modulo 64, is set. Its only gaps are those that repeat every 64
// bytes, as those of every other element do.
class Runs {
 public:
  explicit Runs(const Tensor& view);
  bool dense() const { return rank_ == 0 && stride_mask_ == kAll; }  // it is one run without gaps
  uintptr_t begin() const { return begin_; }

  // Calls see(low, high, comb) for each run.
  template <class F>
  void for_each(F see) const {
    uintptr_t at = begin_;
    int64_t index[kMaxDims] = {};
    while (true) {
      see(at, at + length_, std::rotl(stride_mask_, static_cast<int>(at % 64)));
      int i = 0;
      for (; i < rank_ && ++index[i] == dim_[i]; ++i) {
        at -= step_[i] * static_cast<uintptr_t>(dim_[i] - 1);
        index[i] = 0;
      }
      if (i == rank_) return;
      at += step_[i];
    }
  }

 private:
  static constexpr uint64_t kAll = ~uint64_t{0};

  uintptr_t begin_ = 0;
  size_t length_ = 0;            // of a run
  uint64_t stride_mask_ = kAll;  // of a run that begins where the address divides by 64
  int rank_ = 0;                 // of the dims that are left, innermost first
  int64_t dim_[kMaxDims];
  uintptr_t step_[kMaxDims];  // in bytes
};

// Bytes that were never given a value.
struct Missing {
  uintptr_t first = 0;
  size_t count = 0;
  size_t of = 0;  // of this many bytes
};

// Not safe for two threads at once. Addresses of host memory, and those in no live allocation, are
// ignored.
class InitialisedBytes {
 public:
  // Bytes that are marked or unmarked later are not restored.
  void mark(uintptr_t low, uintptr_t high);
  void mark(const Tensor& view);
  // Takes that back, whatever was written before.
  void unmark(uintptr_t low, uintptr_t high);
  void unmark(const Tensor& view);
  // Which bytes of [low, high) have a value. Taken before mark and remembered after it, so that
  // `restore` takes the mark back for a part. Of outputs that overlap the last is remembered.
  struct Snapshot {
    uintptr_t block, low, high;
    std::vector<uint64_t> words;
  };
  Snapshot snapshot(uintptr_t low, uintptr_t high) const;
  void remember(Snapshot before);
  void restore(uintptr_t low, uintptr_t high);
  // Gives dst a value where src has one.
  void copy(uintptr_t dst, uintptr_t src, size_t count);

  Missing missing(uintptr_t low, uintptr_t high) const;
  Missing missing(const Tensor& view) const;

  // An operator wrote a view that leaves gaps in this storage. A program that copies the whole
  // storage does not mean to read the gaps.
  void mark_gaps(uintptr_t low, uintptr_t high);
  Missing missing_beside_gaps(uintptr_t low, uintptr_t high) const;
  void forget(uintptr_t block) { gaps_.erase(block), before_.erase(block); }

 private:
  struct Gaps {
    uintptr_t low, high;
  };

  void forget_remembered(uintptr_t block, uintptr_t low, uintptr_t high);

  std::unordered_map<uintptr_t, std::vector<Gaps>> gaps_;        // by block
  std::unordered_map<uintptr_t, std::vector<Snapshot>> before_;  // by block
};

}  // namespace openaclnn::check
