// SPDX-License-Identifier: Apache-2.0
// GroupNormSwish for channels of many positions: one sweep finds mean and variance of a group, the
// next stores y = v σ(s v) with v = (x - mean) rstd γ + β, or v itself.
#pragma once

#include "core/kernels/group_norm_factors.h"
#include "core/kernels/group_norm_tiles.h"

namespace openaclnn::OPENACLNN_ISA {
namespace {

// Mean and rstd of a group. The mean has two parts: where |mean| >> std one would be too coarse.
struct GroupMoments {
  double mean, rstd;

  GroupMoments(double m, double squares, double count, double eps)
      : mean(m), rstd(1 / __builtin_sqrt(squares / count + eps)) {}
  GroupMoments(const double* pair) : mean(pair[0]), rstd(pair[1]) {}
};

// Near: v = (x - high - low) γ + β and t = (x - high - low) slope + shift = s v, with rstd in γ and
// s in slope and shift. γ and slope are NaN where fp32 is not enough.
struct NormalRow {  // passed by reference: a copy would wait for all stores before it
  float high, low;
  NearFactors near;
  WideFactors wide;

  NormalRow(const GroupNormCall& call, const GroupMoments& m, int64_t channel) {
    high = static_cast<float>(m.mean);
    low = static_cast<float>(m.mean - static_cast<double>(high));
    const double g = m.rstd * static_cast<double>(value_of(call.gamma, channel));
    const float beta = value_of(call.beta, channel);
    near = NearFactors(call, m.mean, g, beta);
    wide = {m.mean, g, static_cast<double>(beta), static_cast<double>(call.scale)};
  }
};

[[gnu::noinline, gnu::flatten]] inline void group_norm_values(const NormalRow& given,
                                                              const float* x, float* y, int64_t n,
                                                              bool past, const float* next) {
  const NormalRow row = given;
  store_values(y, n, past, next, [&](int64_t i, int) {
    return canonical(fused((x[i] - row.high) - row.low, row.near.gamma, row.near.beta));
  });
}

// False where some |t| is beyond the formula.
[[gnu::noinline, gnu::flatten]] inline bool group_norm_swish_near(const NormalRow& given,
                                                                  const float* x, float* y,
                                                                  int64_t n, bool past,
                                                                  const float* next) {
  const NormalRow row = given;
  LargestBits largest;
  store_values(y, n, past, next, [&](int64_t i, int k) {
    const float d = (x[i] - row.high) - row.low;
    const float v = fused(d, row.near.gamma, row.near.beta),
                t = fused(d, row.near.slope, row.near.shift);
    largest.see(k, bits_of(magnitude(t)));
    return canonical(swish_near(v, t));
  });
  return largest.at_most(bits_of(kNear));
}

// Elements within kNear have the bits of the near formula: which others are beside them depends on
// the layout.
[[gnu::noinline, gnu::flatten]] inline void group_norm_swish_far(const NormalRow& given,
                                                                 const float* x, float* y,
                                                                 int64_t n) {
  const NormalRow row = given;
  OPENACLNN_INDEPENDENT
  for (int64_t i = 0; i < n; ++i) {
    const float d = (x[i] - row.high) - row.low;
    y[i] = canonical(swish_of(x[i], d, row.near, row.wide));
  }
}

[[gnu::noinline, gnu::flatten]] inline void group_norm_values_far(const NormalRow& given,
                                                                  const float* x, float* y,
                                                                  int64_t n) {
  const NormalRow row = given;
  OPENACLNN_INDEPENDENT
  for (int64_t i = 0; i < n; ++i) y[i] = canonical(static_cast<float>(row.wide.value(x[i])));
}

class GroupNormForward {
 public:
  explicit GroupNormForward(const GroupNormCall& call) : call_(call), tiles_(call) {}

  // Of each row over one segment.
  void moments(const Slice& at, Moments* found) {
    const int64_t begin = at.segment * kSegment;
    const int64_t end = least(begin + kSegment, call_.positions);
    for (int64_t r = 0; r < at.rows; ++r) found[r] = {0, 0, 0};
    for (int64_t first = begin; first < end; first += call_.columns) {
      const Place place{at.sample, at.channel, first, at.rows, least(call_.columns, end - first)};
      const Rows x = tiles_.load(call_.x, place, x_, Tiles::Fill::first);
      for (int64_t r = 0; r < at.rows; ++r) {
        for (int64_t i = 0; i < place.columns; i += kMomentBlock)
          found[r].add(moments_of(x[r] + i, least(kMomentBlock, place.columns - i)));
      }
    }
  }

  void normalise(const Slice& at, const double* pairs) {
    const int64_t width = call_.channels / call_.groups, first_group = at.channel / width;
    const int64_t begin = at.segment * kSegment;
    const int64_t end = least(begin + kSegment, call_.positions);
    // backwards: what the sweep before read last is still in the cache
    for (int64_t first = begin + (end - 1 - begin) / call_.columns * call_.columns; first >= begin;
         first -= call_.columns) {
      const Place place{at.sample, at.channel, first, at.rows, least(call_.columns, end - first)};
      const Rows x = tiles_.load(call_.x, place, x_, Tiles::Fill::zero);
      const Rows y = tiles_.target(call_.out, place, y_);
      const int64_t n = round_up(place.columns, kLanes);
      for (int64_t r = 0; r < at.rows; ++r) {
        const int64_t channel = at.channel + r;
        const NormalRow row(call_, GroupMoments(pairs + 2 * (channel / width - first_group)),
                            channel);
        values(row, x[r], y[r], n, y.past, x[r] - call_.columns);
      }
      tiles_.store(call_.out, place, y);
    }
  }

  void bundle(int64_t item) {
    const Bundle bundle(call_, item);
    const int64_t width = call_.channels / call_.groups, segments = segments_of(call_);
    Moments group[kMaxBundle];
    double pairs[2 * kMaxBundle];
    for (int64_t g = 0; g < bundle.groups; ++g) group[g] = {0, 0, 0};
    const auto for_rows = [&](const auto& work) {
      for (int64_t c = 0; c < bundle.channels; c += call_.rows)
        work(bundle.first_channel + c, least(call_.rows, bundle.channels - c));
    };
    for_rows([&](int64_t channel, int64_t rows) {
      Moments channels[kMaxRows];
      for (int64_t r = 0; r < rows; ++r) channels[r] = {0, 0, 0};
      for (int64_t segment = 0; segment < segments; ++segment) {
        Moments parts[kMaxRows];
        moments({bundle.outer, channel, rows, segment}, parts);
        for (int64_t r = 0; r < rows; ++r) channels[r].add(parts[r]);
      }
      for (int64_t r = 0; r < rows; ++r)
        group[(channel + r) / width - bundle.first_group].add(channels[r]);
    });
    for (int64_t g = 0; g < bundle.groups; ++g)
      finish(bundle.outer * call_.groups + bundle.first_group + g, group[g], pairs + 2 * g);
    for (int64_t c = (bundle.channels - 1) / call_.rows * call_.rows; c >= 0; c -= call_.rows) {
      const int64_t channel = bundle.first_channel + c,
                    rows = least(call_.rows, bundle.channels - c);
      for (int64_t segment = segments - 1; segment >= 0; --segment)
        normalise({bundle.outer, channel, rows, segment},
                  pairs + 2 * (channel / width - bundle.first_group));
    }
  }

  // Stores mean and rstd of a group, and gives them in fp64.
  void finish(int64_t index, const Moments& group, double* pair) const {
    const GroupMoments m(group.mean, group.squares, group.count, call_.eps);
    store_value(call_.mean, index, m.mean);
    store_value(call_.rstd, index, m.rstd);
    pair[0] = m.mean, pair[1] = m.rstd;
  }

 private:
  void values(const NormalRow& row, const float* x, float* y, int64_t n, bool past,
              const float* next) {
    if (!call_.swish) {
      if (row.near.enough()) {
        group_norm_values(row, x, y, n, past, next);
      } else {
        group_norm_values_far(row, x, y, n);
      }
      return;
    }
    if (x == y) {  // the far formula needs x again
      std::memcpy(spare_, x, n * sizeof(float));
      x = spare_;
    }
    if (!group_norm_swish_near(row, x, y, n, past, next)) group_norm_swish_far(row, x, y, n);
  }

  const GroupNormCall& call_;
  Tiles tiles_;
  alignas(64) float x_[kTileRoom], y_[kTileRoom], spare_[kMaxColumns];
};

inline void group_norm_forward(const void* call, void*, int64_t begin, int64_t end) {
  GroupNormForward forward(group_norm_call(call));
  for (int64_t item = begin; item < end; ++item) forward.bundle(item);
}

}  // namespace
}  // namespace openaclnn::OPENACLNN_ISA
