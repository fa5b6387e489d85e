// SPDX-License-Identifier: Apache-2.0
// GroupNormSwish for channels of few positions.
#pragma once

#include "core/kernels/group_norm/forward_inside.h"
#include "core/kernels/group_norm/short.h"

namespace openaclnn::OPENACLNN_ISA {
namespace {

class ShortForward : ShortGroups {
 public:
  explicit ShortForward(const GroupNormCall& call) : ShortGroups(call) {}

  // Moments are taken about the first element of the group, in fp64. This loses at most 17 of 53
  // bits, those of the element count (kShort × 4000).
  void bundle(int64_t item) {
    const Bundle bundle(call_, item);
    const int64_t n = bundle.outer, groups = bundle.groups;
    const int64_t index = n * call_.groups + bundle.first_group;
    const bool once = bundle.channels <= together_;
    for (int64_t g = 0; g < groups; ++g) mean_[g] = rstd_[g] = 0;
    for_channels(n, bundle, [&](const Place& at) {
      load(call_.x, at, x_);
      if (at.channel == bundle.first_channel) {
        for (int64_t g = 0; g < groups; ++g)
          pivot_[g] = static_cast<float>(pivot_of(x_[g * width_]));
      }
      spread(at, pivot_, of_.high);
      add(at.rows);
      reduce(at, sum_, mean_);
      reduce(at, squares_, rstd_);
    });
    finish(groups);
    store(call_.mean, index, groups, mean_);
    store(call_.rstd, index, groups, rstd_);
    for_channels(n, bundle, [&](const Place& at) {
      prepare(at);
      if (!once) load(call_.x, at, x_);
      const RowsOf<const float> x{x_, at.rows};
      const RowsOf<float> y{y_, at.rows};
      const bool near = (call_.swish || enough(at.rows)) &&
                        group_norm_inside_values<F32, From::tile>(of_, at.rows, call_.swish, x, y,
                                                                  call_.positions, false);
      if (!near) {
        spread(at, mean_, wide_mean_);
        call_.swish ? swish_values_far(at.rows) : values_far(at.rows);
      }
      store(call_.out, at, y_);
    });
  }

 private:
  [[gnu::noinline, gnu::flatten]] void add(int64_t n) {
    for (int64_t c = 0; c < n; ++c) sum_[c] = squares_[c] = 0;
    for (int64_t i = 0; i < call_.positions * n; i += n) {
      OPENACLNN_INDEPENDENT
      for (int64_t c = 0; c < n; ++c) {
        const double d = static_cast<double>(x_[i + c]) - static_cast<double>(of_.high[c]);
        sum_[c] += d;
        squares_[c] += d * d;
      }
    }
  }

  // Computes mean and rstd from the sums.
  [[gnu::noinline, gnu::flatten]] void finish(int64_t groups) {
    const double share = 1 / group_size(call_), eps = call_.eps;
    for (int64_t g = 0; g < groups; ++g) {
      const double off = mean_[g] * share, rest = rstd_[g] - mean_[g] * off;
      const double mean = static_cast<double>(pivot_[g]) + off;
      const double squares = rest < 0 ? 0.0 : rest;
      mean_[g] = canonical(mean);
      rstd_[g] = canonical(1 / __builtin_sqrt(squares * share + eps));
      group_high_[g] = high_part(mean);
      const float low = static_cast<float>(mean - static_cast<double>(group_high_[g]));
      group_low_[g] = low;
    }
  }

  void prepare(const Place& at) {
    spread(at, group_high_, of_.high);
    spread(at, group_low_, of_.low);
    spread(at, rstd_, wide_gamma_);
    values_of(call_.gamma, at.channel, at.rows, of_.gamma);
    values_of(call_.beta, at.channel, at.rows, of_.beta);
    for (int64_t c = 0; c < at.rows; ++c) {
      const double g = wide_gamma_[c] * static_cast<double>(of_.gamma[c]);
      const NearFactors near(call_, static_cast<double>(of_.high[c]), g, of_.beta[c]);
      of_.gamma[c] = near.gamma, of_.slope[c] = near.slope, of_.shift[c] = near.shift;
      wide_gamma_[c] = g;
    }
    of_.fill(at.rows);
  }

  // Returns whether fp32 is enough for every channel. (With swish, some t is not near if it is
  // not.)
  [[gnu::noinline, gnu::flatten]] bool enough(int64_t n) const {
    uint32_t largest = 0;
    for (int64_t c = 0; c < n; ++c) {
      const uint32_t size = bits_of(magnitude(of_.gamma[c]));
      largest = largest > size ? largest : size;
    }
    return largest <= bits_of(kLargest);
  }

  WideFactors wide(int64_t c) const {
    return {wide_mean_[c], wide_gamma_[c], static_cast<double>(of_.beta[c]),
            static_cast<double>(call_.scale)};
  }

  NearFactors near(int64_t c) const {
    return {of_.gamma[c], of_.beta[c], of_.slope[c], of_.shift[c]};
  }
  float distance(int64_t i, int64_t c) const { return (x_[i + c] - of_.high[c]) - of_.low[c]; }

  [[gnu::noinline, gnu::flatten]] void values_far(int64_t n) {
    for (int64_t i = 0; i < call_.positions * n; i += n) {
      OPENACLNN_INDEPENDENT
      for (int64_t c = 0; c < n; ++c) {
        const float usual = fused(distance(i, c), of_.gamma[c], of_.beta[c]);
        const float far = static_cast<float>(wide(c).value(x_[i + c]));
        y_[i + c] = canonical(of_.gamma[c] == of_.gamma[c] ? usual : far);
      }
    }
  }

  [[gnu::noinline, gnu::flatten]] void swish_values_far(int64_t n) {
    for (int64_t i = 0; i < call_.positions * n; i += n) {
      OPENACLNN_INDEPENDENT
      for (int64_t c = 0; c < n; ++c)
        y_[i + c] = canonical(swish_of(x_[i + c], distance(i, c), near(c), wide(c)));
    }
  }

  using Tile = float[kShortTile];
  using Values = float[kShortChannels];
  using Wide = double[kShortChannels];
  alignas(64) Tile x_, y_;
  NormalChannels<kShortChannels> of_;
  alignas(64) Values pivot_, group_high_, group_low_;
  alignas(64) Wide wide_mean_, wide_gamma_;
  alignas(64) Wide sum_, squares_, mean_, rstd_;  // the last two: sums first
};

inline void group_norm_forward_short(const void* call, void*, int64_t begin, int64_t end) {
  ShortForward forward(group_norm_call(call));
  for (int64_t item = begin; item < end; ++item) forward.bundle(item);
}

}  // namespace
}  // namespace openaclnn::OPENACLNN_ISA
