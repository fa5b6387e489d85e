// SPDX-License-Identifier: Apache-2.0
// GroupNormSwish for channels of few positions.
#pragma once

#include "core/kernels/group_norm/forward_channels_last.h"
#include "core/kernels/group_norm/small_spatial.h"

namespace openaclnn::OPENACLNN_ISA {
namespace {

class SmallSpatialForward : SmallSpatialGroups {
 public:
  explicit SmallSpatialForward(const GroupNormCall& call) : SmallSpatialGroups(call) {}

  // Moments are taken about the first element of the group, in fp64. This loses at most 18 of 53
  // bits, those of the element count (kSmallSpatial × 4000).
  void group_batch(int64_t item) {
    const GroupBatch group_batch(call_, item);
    const int64_t n = group_batch.outer, groups = group_batch.groups;
    const int64_t index = n * call_.groups + group_batch.first_group;
    const bool once = group_batch.channels <= tile_channels_;
    for (int64_t g = 0; g < groups; ++g) mean_[g] = rstd_[g] = 0;
    for_channels(n, group_batch, [&](const Region& at) {
      load(call_.x, at, x_);
      if (at.channel == group_batch.first_channel) {
        for (int64_t g = 0; g < groups; ++g)
          pivot_[g] = static_cast<float>(pivot_of(x_[g * width_]));
      }
      spread(at, pivot_, of_.high);
      add(at.rows);
      reduce(at, sum_, mean_);
      reduce(at, squares_, rstd_);
    });
    finish(groups);
    store_values(call_.mean, index, groups, mean_);
    store_values(call_.rstd, index, groups, rstd_);
    for_channels(n, group_batch, [&](const Region& at) {
      prepare(at);
      if (!once) load(call_.x, at, x_);
      const StridedRows<const float> x{x_, at.rows};
      const StridedRows<float> y{y_, at.rows};
      const bool stored = (call_.swish || of_.fits_fp32(0, at.rows)) &&
                          group_norm_channels_last_values<F32, From::tile>(
                              of_, at.rows, call_.swish, x, y, call_.positions, false);
      if (!stored) {
        spread(at, mean_, of_.mean);
        for (int64_t i = 0; i < call_.positions * at.rows; i += at.rows)
          group_norm_values_general<true>(of_, 0, call_.swish, call_.scale, x_ + i, y_ + i,
                                          at.rows);
      }
      store(call_.out, at, y_);
    });
  }

 private:
  [[gnu::noinline, gnu::flatten]] void add(int64_t n) {
    for (int64_t c = 0; c < n; ++c) sum_[c] = squares_[c] = 0;
    for_each(n, [&](int64_t i, int64_t c) {
      const double d = static_cast<double>(x_[i]) - static_cast<double>(of_.high[c]);
      sum_[c] += d;
      squares_[c] += d * d;
    });
  }

  // Computes mean and rstd from the sums.
  [[gnu::noinline, gnu::flatten]] void finish(int64_t groups) {
    const double share = 1 / group_size(call_), eps = call_.eps;
    for (int64_t g = 0; g < groups; ++g) {
      const double off = mean_[g] * share, rest = rstd_[g] - mean_[g] * off;
      const double mean = static_cast<double>(pivot_[g]) + off;
      const double squares = rest < 0 ? 0.0 : rest;
      mean_[g] = mean, rstd_[g] = 1 / __builtin_sqrt(squares * share + eps);
      group_high_[g] = high_part(mean);
      const float low = static_cast<float>(mean - static_cast<double>(group_high_[g]));
      group_low_[g] = low;
    }
  }

  void prepare(const Region& at) {
    spread(at, group_high_, of_.high);
    spread(at, group_low_, of_.low);
    spread(at, rstd_, of_.wide_gamma);
    of_.set(call_, at.channel, at.rows);
    of_.fill(at.rows);
  }

  using Tile = float[kSmallSpatialTile];
  using Values = float[kSmallSpatialChannels];
  using Wide = double[kSmallSpatialChannels];
  alignas(64) Tile x_, y_;
  ForwardFactors<kSmallSpatialChannels> of_;
  alignas(64) Values pivot_, group_high_, group_low_;
  alignas(64) Wide sum_, squares_, mean_, rstd_;  // the last two: sums first
};

inline void group_norm_forward_small_spatial(const void* call, void*, int64_t begin, int64_t end) {
  SmallSpatialForward forward(group_norm_call(call));
  for (int64_t item = begin; item < end; ++item) forward.group_batch(item);
}

}  // namespace
}  // namespace openaclnn::OPENACLNN_ISA
