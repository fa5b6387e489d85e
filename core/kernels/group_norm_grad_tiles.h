// SPDX-License-Identifier: Apache-2.0
// Rows of GroupNormSwishGrad in any layout go tile by tile through fp32 rows in L1.
#pragma once

#include "core/kernels/group_norm_grad_rows.h"
#include "core/kernels/group_norm_tiles.h"

namespace openaclnn::OPENACLNN_ISA {
namespace {

class TiledGradient : public GradientRows {
 public:
  explicit TiledGradient(const GroupNormCall& call) : GradientRows(call), tiles_(call) {}

  int64_t rows() const { return call_.rows; }

  // Computes Σ u and Σ u x̂ of each row over one segment.
  void sums(const Slice& at, double* u, double* ux) {
    LaneSums lanes[kTileRows];
    read_rows_of_sums(at);
    for (int64_t r = 0; r < at.rows; ++r) lanes[r].clear(), u[r] = ux[r] = 0;
    const int64_t begin = at.segment * kSegment;
    const int64_t end = least(begin + kSegment, call_.positions);
    for (int64_t first = begin; first < end; first += call_.columns) {
      const Place place{at.sample, at.channel, first, at.rows, least(call_.columns, end - first)};
      const Rows dy = tiles_.load(call_.dy, place, dy_);
      const Rows x = tiles_.load(call_.x, place, x_);
      const Rows kept = keep_ != Keep::nowhere ? tiles_.target(call_.out, place, dy_) : Rows{};
      for (int64_t r = 0; r < at.rows; ++r) {
        float* const keep = cache_ != nullptr      ? cached(at.channel + r, first)
                            : kept.data != nullptr ? kept[r]
                                                   : nullptr;
        for (int64_t i = 0; i < place.columns; i += kPiece) {
          const int64_t n = least(kPiece, place.columns - i);
          add_terms(row_[r], dy[r] + i, x[r] + i, keep == nullptr ? nullptr : keep + i, n,
                    lanes[r]);
          if ((first + i + n) % kPiece != 0 && first + i + n < end) continue;
          u[r] += tree(lanes[r].u), ux[r] += tree(lanes[r].ud);
          lanes[r].clear();
        }
      }
      if (keep_ != Keep::nowhere) tiles_.store(call_.out, place, kept);
    }
    for (int64_t r = 0; r < at.rows; ++r) u[r] *= row_[r].u_unit(), ux[r] *= row_[r].unit();
  }

  // Stores dx of each row over one segment.
  void input_gradient(const Slice& at, const double* mean) {
    read_rows(at, mean);
    const int64_t begin = at.segment * kSegment;
    const int64_t end = least(begin + kSegment, call_.positions);
    const bool in_dx = keep_ != Keep::nowhere, kept = cache_ != nullptr || in_dx;
    for (int64_t first = begin + (end - 1 - begin) / call_.columns * call_.columns; first >= begin;
         first -= call_.columns) {
      const Place place{at.sample, at.channel, first, at.rows, least(call_.columns, end - first)};
      const Rows x = tiles_.load(call_.x, place, x_);
      const Rows dx = tiles_.target(call_.out, place, dx_);
      const Rows dy =
          cache_ != nullptr ? Rows{} : tiles_.load(in_dx ? call_.out : call_.dy, place, dy_);
      for (int64_t r = 0; r < at.rows; ++r) {
        const float* const from = cache_ != nullptr ? cached(at.channel + r, first) : dy[r];
        gradient<F32>(r,
                      {from, kept ? from : nullptr, x[r], nullptr, dx[r], place.columns, dx.past});
      }
      tiles_.store(call_.out, place, dx);
    }
  }

 private:
  void add_terms(const GradientRow& row, const float* dy, const float* x, float* keep, int64_t n,
                 LaneSums& sums) {
    if (keep == dy) dy = copied(spare_dy_, dy, n);
    const LaneSums before = sums;
    if (group_norm_sums_near(row, dy, x, keep, n, sums)) return;
    sums = before;
    sums_far(row, Element::f32, dy, x, keep, n, sums);
  }

  Tiles tiles_;
  alignas(64) float x_[kTileRoom], dy_[kTileRoom], dx_[kTileRoom];
};

}  // namespace
}  // namespace openaclnn::OPENACLNN_ISA
