// SPDX-License-Identifier: Apache-2.0
// Rows of GroupNormSwish in any layout go tile by tile through fp32 rows in L1.
#pragma once

#include "core/kernels/group_norm_forward_rows.h"
#include "core/kernels/group_norm_tiles.h"

namespace openaclnn::OPENACLNN_ISA {
namespace {

class TiledForward : public ForwardRows {
 public:
  explicit TiledForward(const GroupNormCall& call) : ForwardRows(call), tiles_(call) {}

  int64_t rows() const { return call_.rows; }

  // Computes the moments of each row over one segment.
  void moments(const Slice& at, Moments* found) {
    const int64_t begin = at.segment * kSegment;
    const int64_t end = least(begin + kSegment, call_.positions);
    for (int64_t r = 0; r < at.rows; ++r) found[r] = {0, 0, 0};
    for (int64_t first = begin; first < end; first += call_.columns) {
      const Place place{at.sample, at.channel, first, at.rows, least(call_.columns, end - first)};
      const Rows x = tiles_.load(call_.x, place, x_);
      for (int64_t r = 0; r < at.rows; ++r) {
        for (int64_t i = 0, n; i < place.columns; i += n) {
          const int64_t into = (first + i) % kMomentBlock;
          n = least(kMomentBlock - into, place.columns - i);
          if (into == 0) sums_[r].begin(x[r][i]);
          group_norm_moment_sums(x[r] + i, n, sums_[r]);
          if (into + n == kMomentBlock || first + i + n == end)
            found[r].add(MomentRegisters(sums_[r]).of(into + n));
        }
      }
    }
  }

  // Stores y of each row over one segment, the last tile first.
  void normalise(const Slice& at, const double* pairs) {
    const int64_t begin = at.segment * kSegment;
    const int64_t end = least(begin + kSegment, call_.positions);
    for (int64_t first = begin + (end - 1 - begin) / call_.columns * call_.columns; first >= begin;
         first -= call_.columns) {
      const Place place{at.sample, at.channel, first, at.rows, least(call_.columns, end - first)};
      const Rows x = tiles_.load(call_.x, place, x_);
      const Rows y = tiles_.target(call_.out, place, y_);
      for (int64_t r = 0; r < at.rows; ++r)
        values<F32>(row(at.channel + r, at.channel, pairs), x[r], y[r], place.columns, y.past);
      tiles_.store(call_.out, place, y);
    }
  }

 private:
  Tiles tiles_;
  MomentSums sums_[kTileRows];
  alignas(64) float x_[kTileRoom], y_[kTileRoom];
};

}  // namespace
}  // namespace openaclnn::OPENACLNN_ISA
