// SPDX-License-Identifier: Apache-2.0
// GroupNormSwish for channels of few positions.
#pragma once

#include "core/kernels/group_norm/forward.h"

namespace openaclnn::OPENACLNN_ISA {
namespace {

class SmallSpatialForward : SmallSpatial {
 public:
  explicit SmallSpatialForward(const GroupNormCall& call) : SmallSpatial(call), limits_(call) {}

  // Moments are taken about the first element of the group, in fp64. This loses at most 18 of 53
  // bits, those of the element count (kSmallSpatial × 4000).
  void batch(int64_t item) {
    const GroupBatch batch(call_, item);
    const int64_t n = batch.outer, groups = batch.groups;
    const int64_t index = n * call_.groups + batch.first_group;
    for (int64_t g = 0; g < groups; ++g) mean_[g] = rstd_[g] = 0;
    for_tiles(n, batch, [&](const Region& at) {
      load(call_.x, at, x_);
      if (at.channel == batch.first_channel) {
        for (int64_t g = 0; g < groups; ++g)
          pivot_[g] = static_cast<float>(pivot_of(x_[g * width_]));
      }
      spread(at, pivot_, of_.high);
      moments(at.rows);
      reduce(at, sum_, mean_);
      reduce(at, squares_, rstd_);
    });
    finish(groups);
    store_values(call_.mean, index, groups, mean_);
    store_values(call_.rstd, index, groups, rstd_);
    bool exact = some(groups, [&](int64_t g) { return needs_exact(mean_[g]); });
    for_tiles(n, batch, [&](const Region& at) { exact |= set(at); });
    if (exact) exact = store_exact(n, batch);
    for_tiles(n, batch, [&](const Region& at) {
      if (!in_one_tile(batch)) load(call_.x, at, x_), set(at);
      normalise_channels<F32, From::tile>(of_, at.rows, call_.swish,
                                          StridedRows<const float>{x_, at.rows},
                                          StridedRows<float>{y_, at.rows}, call_.positions, false);
      store(call_.out, at, y_, exact ? exact_ : nullptr);
    });
  }

 private:
  // Σ (x - pivot) and Σ (x - pivot)² of n channels.
  [[gnu::noinline, gnu::flatten]] void moments(int64_t n) {
    for (int64_t c = 0; c < n; ++c) sum_[c] = squares_[c] = 0;
    for_each(n, [&](int64_t i, int64_t c) {
      const double d = static_cast<double>(x_[i]) - static_cast<double>(of_.high[c]);
      sum_[c] += d;
      squares_[c] += d * d;
    });
  }

  // Computes mean and rstd from the sums. No x of n is further than √n deviations from the mean.
  [[gnu::noinline, gnu::flatten]] void finish(int64_t groups) {
    const double share = 1 / group_size(call_), eps = call_.eps;
    const double most = __builtin_sqrt(group_size(call_));
    for (int64_t g = 0; g < groups; ++g) {
      const double off = mean_[g] * share, rest = rstd_[g] - mean_[g] * off;
      const double mean = static_cast<double>(pivot_[g]) + off;
      const double squares = rest < 0 ? 0.0 : rest;
      const double deviation = __builtin_sqrt(squares * share + eps);
      mean_[g] = mean, rstd_[g] = 1 / deviation, far_[g] = most * deviation;
      group_high_[g] = static_cast<float>(mean), group_low_[g] = low_part(mean, group_high_[g]);
    }
  }

  bool channel_needs_exact(int64_t c) const {
    return limits_.needs_exact(of_.wide_gamma[c], static_cast<double>(of_.beta[c]), distance_[c]);
  }

  // Sets the factors of a tile. Returns whether some channel needs exact.
  [[gnu::noinline, gnu::flatten]] bool set(const Region& at) {
    spread(at, group_high_, of_.high);
    spread(at, group_low_, of_.low);
    spread(at, rstd_, of_.wide_gamma);
    spread(at, far_, distance_);
    of_.set(call_, at.channel, at.rows);
    of_.fill(at.rows);
    return some(at.rows, [&](int64_t c) { return channel_needs_exact(c); });
  }

  // Finds the groups that need exact, by the distances of their x, and stores them. Returns whether
  // there are some.
  [[gnu::noinline]] bool store_exact(int64_t n, const GroupBatch& batch) {
    bool found = false;
    for (int64_t g = 0; g < batch.groups; ++g) exact_[g] = needs_exact(mean_[g]);
    for_tiles(n, batch, [&](const Region& at) {
      if (!in_one_tile(batch)) load(call_.x, at, x_), set(at);
      find_distances(at.rows);
      mark_exact(at.rows, [&](int64_t c) { return channel_needs_exact(c); });
    });
    for (int64_t g = 0; g < batch.groups; ++g) {
      found |= exact_[g];
      if (exact_[g]) ExactGroup(call_, n * call_.groups + batch.first_group + g).forward();
    }
    return found;
  }

  // Finds the largest |x - mean| of n channels.
  [[gnu::noinline, gnu::flatten]] void find_distances(int64_t n) {
    float* const most = pivot_;
    for (int64_t c = 0; c < n; ++c) most[c] = 0;
    for_each(n, [&](int64_t i, int64_t c) {
      const float size = magnitude((x_[i] - of_.high[c]) - of_.low[c]);
      most[c] = size > most[c] ? size : most[c];
    });
    for (int64_t c = 0; c < n; ++c) distance_[c] = static_cast<double>(most[c]);
  }

  const NormalLimits limits_;
  alignas(64) Tile x_, y_;
  NormalFactors<kSmallSpatialChannels> of_;
  alignas(64) Values pivot_, group_high_, group_low_;
  alignas(64) Wide sum_, squares_, distance_, mean_, rstd_, far_;  // mean and rstd: sums first
};

inline void group_norm_forward_small_spatial(const void* call, void*, int64_t begin, int64_t end) {
  SmallSpatialForward forward(group_norm_call(call));
  for (int64_t item = begin; item < end; ++item) forward.batch(item);
}

}  // namespace
}  // namespace openaclnn::OPENACLNN_ISA
