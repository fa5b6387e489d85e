// SPDX-License-Identifier: Apache-2.0
// Shadow memory: one bit for each byte of device memory, set if the byte was ever written. Work
// counts when it is submitted.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "core/base/tensor.h"

namespace openaclnn::check {

// The bytes of a view as runs. A run is the bytes of [low, high) whose bit (address modulo 64) is
// set in `stride_mask`: short strides that divide 64 stay in one run.
class Runs {
 public:
  explicit Runs(const Tensor& view);
  bool dense() const { return rank_ == 0 && stride_mask_ == kAll; }  // one run without gaps
  uintptr_t begin() const { return begin_; }

  // Calls see(low, high, stride_mask) for each run.
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
  uint64_t stride_mask_ = kAll;  // for a run that begins at a multiple of 64
  int rank_ = 0;                 // of the dims that are left, innermost first
  int64_t dim_[kMaxDims];
  uintptr_t step_[kMaxDims];  // in bytes
};

// Bytes that were never written.
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
  // Undoes mark, regardless of earlier writes.
  void unmark(uintptr_t low, uintptr_t high);
  void unmark(const Tensor& view);
  // The state of [low, high) before mark; after `remember`, `restore` undoes the mark for a part.
  // Of overlapping outputs the last is remembered.
  struct Snapshot {
    uintptr_t block, low, high;
    std::vector<uint64_t> words;
  };
  Snapshot snapshot(uintptr_t low, uintptr_t high) const;
  void remember(Snapshot before);
  void restore(uintptr_t low, uintptr_t high);
  // Copies the state of src to dst.
  void copy(uintptr_t dst, uintptr_t src, size_t count);

  Missing missing(uintptr_t low, uintptr_t high) const;
  Missing missing(const Tensor& view) const;

  // An operator wrote a view with gaps in this storage: copying the whole storage does not count as
  // reading the gaps.
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
