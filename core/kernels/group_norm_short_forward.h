// SPDX-License-Identifier: Apache-2.0
// GroupNormSwish for channels of few positions.
#pragma once

#include "core/kernels/group_norm_factors.h"
#include "core/kernels/group_norm_short.h"

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
    for_channels(n, bundle, [&](const Channels& at) {
      load(call_.x, at, x_);
      if (at.first == bundle.first_channel) {
        for (int64_t g = 0; g < groups; ++g)
          pivot_[g] = static_cast<float>(pivot_of(x_[g * width_]));
      }
      spread(at, pivot_, high_);
      add(at.count);
      reduce(at, sum_, mean_);
      reduce(at, squares_, rstd_);
    });
    finish(groups);
    store(call_.mean, index, groups, mean_);
    store(call_.rstd, index, groups, rstd_);
    for_channels(n, bundle, [&](const Channels& at) {
      prepare(at);
      if (!once) load(call_.x, at, x_);
      if (call_.swish ? !swish_values_near(at.count) : !values(at.count)) {
        spread(at, mean_, wide_mean_);
        call_.swish ? swish_values_far(at.count) : values_far(at.count);
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
        const double d = static_cast<double>(x_[i + c]) - static_cast<double>(high_[c]);
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

  void prepare(const Channels& at) {
    spread(at, group_high_, high_);
    spread(at, group_low_, low_);
    spread(at, rstd_, wide_gamma_);
    values_of(call_.gamma, at.first, at.count, gamma_);
    values_of(call_.beta, at.first, at.count, beta_);
    for (int64_t c = 0; c < at.count; ++c) {
      const double g = wide_gamma_[c] * static_cast<double>(gamma_[c]);
      const NearFactors near(call_, static_cast<double>(high_[c]), g, beta_[c]);
      gamma_[c] = near.gamma, slope_[c] = near.slope, shift_[c] = near.shift;
      wide_gamma_[c] = g;
    }
  }

  // Returns false if some channel is beyond the formula.
  [[gnu::noinline, gnu::flatten]] bool values(int64_t n) {
    uint32_t largest = 0;
    for (int64_t c = 0; c < n; ++c) {
      const uint32_t size = bits_of(magnitude(gamma_[c]));
      largest = largest > size ? largest : size;
    }
    if (largest > bits_of(kLargest)) return false;
    for (int64_t i = 0; i < call_.positions * n; i += n) {
      OPENACLNN_INDEPENDENT
      for (int64_t c = 0; c < n; ++c)
        y_[i + c] = fused((x_[i + c] - high_[c]) - low_[c], gamma_[c], beta_[c]);
    }
    return true;
  }

  WideFactors wide(int64_t c) const {
    return {wide_mean_[c], wide_gamma_[c], static_cast<double>(beta_[c]),
            static_cast<double>(call_.scale)};
  }

  [[gnu::noinline, gnu::flatten]] void values_far(int64_t n) {
    for (int64_t i = 0; i < call_.positions * n; i += n) {
      OPENACLNN_INDEPENDENT
      for (int64_t c = 0; c < n; ++c) {
        const float d = (x_[i + c] - high_[c]) - low_[c];
        const float usual = fused(d, gamma_[c], beta_[c]);
        const float far = static_cast<float>(wide(c).value(x_[i + c]));
        y_[i + c] = canonical(gamma_[c] == gamma_[c] ? usual : far);
      }
    }
  }

  [[gnu::noinline, gnu::flatten]] bool swish_values_near(int64_t n) {
    AllNear all;
    for (int64_t i = 0; i < call_.positions * n; i += n) {
      for_registers(n, [&]<int K>(Registers<K>, int64_t c,
                                  int64_t count) __attribute__((always_inline)) {
        const auto some = [=](const float* values) { return load_some<F32, K>(values + c, count); };
        const Registers<K> d = (some(x_ + i) - some(high_)) - some(low_);
        const Registers<K> v = fused(d, some(gamma_), some(beta_));
        const Registers<K> t = fused(d, some(slope_), some(shift_));
        all.see(sixteenths_of_minus(t));
        store_some<F32>(y_ + i + c, swish_near(v, t), count, false);
      });
    }
    return all.are();
  }

  [[gnu::noinline, gnu::flatten]] void swish_values_far(int64_t n) {
    for (int64_t i = 0; i < call_.positions * n; i += n) {
      OPENACLNN_INDEPENDENT
      for (int64_t c = 0; c < n; ++c) {
        const float d = (x_[i + c] - high_[c]) - low_[c];
        NearFactors near;
        near.gamma = gamma_[c], near.beta = beta_[c], near.slope = slope_[c],
        near.shift = shift_[c];
        y_[i + c] = canonical(swish_of(x_[i + c], d, near, wide(c)));
      }
    }
  }

  using Tile = float[kShortTile];
  using Values = float[kShortChannels];
  using Wide = double[kShortChannels];
  alignas(64) Tile x_, y_;
  alignas(64) Values high_, low_, gamma_, beta_, slope_, shift_;
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
