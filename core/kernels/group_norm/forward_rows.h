// SPDX-License-Identifier: Apache-2.0
// Rows of GroupNormSwish: one channel of one sample, its moments, and y from them.
#pragma once

#include "core/kernels/group_norm/forward_factors.h"
#include "core/kernels/group_norm/moments.h"
#include "core/kernels/group_norm/tiles.h"

namespace openaclnn::OPENACLNN_ISA {
namespace {

// What rows have in common in every layout.
class ForwardRows {
 protected:
  explicit ForwardRows(const GroupNormCall& call) : call_(call), groups_(call) {}

  // Sets the factors of rows; `pairs` holds mean and rstd of their groups.
  [[gnu::noinline]] void set(const Region& at, const double* pairs) {
    const int64_t first_group = groups_[at.channel];
    for (int64_t r = 0; r < at.rows; ++r) {
      const double* const pair = pairs + 2 * (groups_[at.channel + r] - first_group);
      of_.mean[r] = pair[0], of_.wide_gamma[r] = pair[1];
      of_.high[r] = high_part(pair[0]);
      of_.low[r] = static_cast<float>(pair[0] - static_cast<double>(of_.high[r]));
    }
    of_.set(call_, at.channel, at.rows);
  }

  // Stores y of at most kMaxColumns elements of row r.
  template <class Type, class Raw = typename Type::Raw>
  void values(int64_t r, const Raw* x, Raw* y, int64_t n, bool stream) {
    if (x == y) {  // the general formula needs x again
      std::memcpy(spare_, x, n * sizeof(Raw));
      x = reinterpret_cast<const Raw*>(spare_);
    }
    if ((call_.swish || of_.fits_fp32(r, 1)) &&
        group_norm_values<Type>(of_, r, call_.swish, x, y, n, stream))
      return;
    widen(wide_x_, x, Type::kElement, n);
    group_norm_values_general<false>(of_, r, call_.swish, call_.scale, wide_x_, wide_y_, n);
    narrow(y, wide_y_, Type::kElement, n);
  }

  const GroupNormCall& call_;
  Groups groups_;
  ForwardFactors<kMaxRows> of_;

 private:
  alignas(64) float spare_[kMaxColumns], wide_x_[kMaxColumns], wide_y_[kMaxColumns];
};

// Sweeps over rows, tile by tile.
template <class Memory>
class ForwardSweeps : public ForwardRows {
 public:
  ForwardSweeps(const GroupNormCall& call, void*) : ForwardRows(call), memory_(call) {}

  // The number of rows at a time.
  int64_t rows() const { return memory_.rows(); }

  // Computes the moments of each row over one segment.
  void sum(const Region& at, Moments* found) {
    for (int64_t r = 0; r < at.rows; ++r) found[r] = {0, 0, 0};
    for_regions(at, memory_, Direction::first_to_last, [&](const Region& region, int64_t row) {
      const auto x = memory_.load(call_.x, region, x_);
      for (int64_t r = 0; r < region.rows; ++r) {
        for (int64_t i = 0; i < region.columns; i += kMomentBlock) {
          const int64_t n = smaller(kMomentBlock, region.columns - i);
          found[row + r].add(group_norm_moments<Stored>(x[r] + i, n));
        }
      }
    });
  }

  // Stores y of each row over one segment, the last tile and row first.
  void store(const Region& at, const double* pairs) {
    set(at, pairs);
    store_rows(at);
  }

 protected:
  void store_rows(const Region& at) {
    for_regions(at, memory_, Direction::last_to_first, [&](const Region& region, int64_t row) {
      const auto x = memory_.load(call_.x, region, x_);
      const auto y = memory_.target(call_.out, region, y_);
      for (int64_t r = region.rows - 1; r >= 0; --r) {
        for_chunks(y[r], region.columns, y.non_temporal,
                   [&](int64_t first, int64_t n, bool stream) {
                     values<Stored>(row + r, x[r] + first, y[r] + first, n, stream);
                   });
      }
      memory_.store(call_.out, region, y);
    });
  }

 private:
  using Stored = typename Memory::Type;

  Memory memory_;
  [[no_unique_address]] typename Memory::Buffer x_, y_;
};

}  // namespace
}  // namespace openaclnn::OPENACLNN_ISA
