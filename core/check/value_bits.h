// SPDX-License-Identifier: Apache-2.0
// The shadow bits of one allocation: which bytes were written.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/check/allocations.h"
#include "core/check/initialised_bytes.h"

namespace openaclnn::check {

class Bits {
 public:
  explicit Bits(const Block& own)
      : begin_(own.begin), end_(own.end()), words_(bits_at(own.begin)) {}

  uintptr_t begin() const { return begin_; }
  uintptr_t end() const { return end_; }

  void set(uintptr_t low, uintptr_t high, uint64_t stride_mask = ~uint64_t{0}) {
    const Words w = words(low, high);
    words_[w.first] |= w.mask(w.first) & stride_mask;
    for (size_t i = w.first + 1; i < w.last; ++i) words_[i] |= stride_mask;
    words_[w.last] |= w.mask(w.last) & stride_mask;
  }

  void clear(uintptr_t low, uintptr_t high, uint64_t stride_mask = ~uint64_t{0}) {
    const Words w = words(low, high);
    for (size_t i = w.first; i <= w.last; ++i) words_[i] &= ~(w.mask(i) & stride_mask);
  }

  std::vector<uint64_t> copy(uintptr_t low, uintptr_t high) const {
    const Words w = words(low, high);
    return {words_ + w.first, words_ + w.last + 1};
  }
  // From a copy that begins at `from`.
  void restore(uintptr_t low, uintptr_t high, uintptr_t from, const std::vector<uint64_t>& copy) {
    const Words w = words(low, high);
    const size_t first = (from - begin_) / 64;
    for (size_t i = w.first; i <= w.last; ++i) {
      words_[i] = (words_[i] & ~w.mask(i)) | (copy[i - first] & w.mask(i));
    }
  }

  // Returns the first address in [low, high) whose bit is `value`, or high.
  uintptr_t first_with(bool value, uintptr_t low, uintptr_t high) const {
    const Words w = words(low, high);
    for (size_t i = w.first; i <= w.last; ++i) {
      const uint64_t hits = (value ? words_[i] : ~words_[i]) & w.mask(i);
      if (hits != 0) return begin_ + i * 64 + static_cast<size_t>(std::countr_zero(hits));
    }
    return high;
  }

  Missing missing(uintptr_t low, uintptr_t high, uint64_t stride_mask = ~uint64_t{0}) const {
    Missing found{low, 0, 0};
    const Words w = words(low, high);
    found.of = ones(w.mask(w.first) & stride_mask);
    if (w.first < w.last) {
      found.of += ones(w.mask(w.last) & stride_mask) + (w.last - w.first - 1) * ones(stride_mask);
    }
    for (size_t i = w.first; i <= w.last; ++i) {
      constexpr size_t kAtOnce = 8;  // words, if all bits are set
      while (i > w.first && i + kAtOnce < w.last && all_set(i, kAtOnce, stride_mask)) i += kAtOnce;
      const uint64_t zeros = ~words_[i] & w.mask(i) & stride_mask;
      if (zeros == 0) continue;
      if (found.count == 0) {
        found.first = begin_ + i * 64 + static_cast<size_t>(std::countr_zero(zeros));
      }
      found.count += ones(zeros);
    }
    return found;
  }

 private:
  // The words that hold the bits of a range, with masks for the first and the last word.
  struct Words {
    size_t first, last;
    uint64_t head, tail;

    uint64_t mask(size_t i) const {
      return (i == first ? head : ~uint64_t{0}) & (i == last ? tail : ~uint64_t{0});
    }
  };
  Words words(uintptr_t low, uintptr_t high) const {  // low < high
    const size_t first = low - begin_, last = high - 1 - begin_;
    return {first / 64, last / 64, ~uint64_t{0} << first % 64, ~uint64_t{0} >> (63 - last % 64)};
  }

  static size_t ones(uint64_t word) { return static_cast<size_t>(std::popcount(word)); }

  bool all_set(size_t i, size_t count, uint64_t stride_mask) const {
    uint64_t all = stride_mask;
    for (size_t k = 0; k < count; ++k) all &= words_[i + k];
    return all == stride_mask;
  }

  uintptr_t begin_, end_;  // begin_ is aligned to a page
  uint64_t* words_;
};

}  // namespace openaclnn::check
