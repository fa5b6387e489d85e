// SPDX-License-Identifier: Apache-2.0
// GroupNormSwish of channels-last tensors.
#pragma once

#include "core/kernels/group_norm_forward_tiles.h"
#include "core/kernels/group_norm_inside.h"

namespace openaclnn::OPENACLNN_ISA {
namespace {

// Holds for each channel the coefficients that the loops over rows hold for a row.
struct NormalChannels {
  alignas(64) OfChannels high, low, gamma, beta, slope, shift;

  template <int K>
  [[gnu::always_inline]] Normal<K> at(int64_t c) const {
    return {of_channels<K>(high, c), of_channels<K>(low, c),   of_channels<K>(gamma, c),
            of_channels<K>(beta, c), of_channels<K>(slope, c), of_channels<K>(shift, c)};
  }
};

struct ChannelMoments {
  alignas(64) double pivot[kMaxRows], d[kWideLanes][kMaxRows], dd[kWideLanes][kMaxRows];
};

// Computes the moments of a block, for every channel.
template <class Type, class Raw = typename Type::Raw>
[[gnu::noinline, gnu::flatten]] void group_norm_inside_moments(const RowsOf<const Raw>& x,
                                                               int64_t channels, int64_t positions,
                                                               ChannelMoments& to) {
  constexpr int kWidth = kRegisterBytes / sizeof(double);
  std::memset(&to, 0, sizeof to);
  for (int64_t c = 0; c < channels; ++c) to.pivot[c] = pivot_of(Type::from(x[0][c]));
  for (int64_t p = 0; p < positions; ++p) {
    fetch_row<0>(x[p + kAheadRows], channels * sizeof(Raw));
    double *const d_lane = to.d[p % kWideLanes], *const dd_lane = to.dd[p % kWideLanes];
    for_registers(channels,
                  [&]<int K>(Registers<K>, int64_t c, int64_t n) __attribute__((always_inline)) {
                    const Registers<K> in = load_some<Type, K>(x[p] + c, n);
#pragma GCC unroll 8
                    for (int k = 0; k < K; ++k) {
#pragma GCC unroll 2
                      for (int half = 0; half < 2; ++half) {
                        const int64_t i = c + (2 * k + half) * kWidth;
                        const auto at = [=](const double* lane) {
                          return load_register<DoubleRegister>(lane + i);
                        };
                        const DoubleRegister d = widened_half(in.r[k], half) - at(to.pivot);
                        store_register(d_lane + i, at(d_lane) + d);
                        store_register(dd_lane + i, at(dd_lane) + d * d);
                      }
                    }
                  });
  }
}

// Stores y or, without swish, v, unless nobody wants it. Returns false if some t is not near.
template <class Type, class Raw = typename Type::Raw>
[[gnu::noinline, gnu::flatten]] bool group_norm_inside_values(const NormalChannels& of,
                                                              int64_t channels, bool swish,
                                                              const RowsOf<const Raw>& x,
                                                              const RowsOf<Raw>& y,
                                                              int64_t positions, bool stream) {
  AllNear all;
  for (int64_t p = 0; p < positions; ++p) {
    fetch_row<0>(x[p + kAheadRows], channels * sizeof(Raw));
    if (y.first != nullptr && !stream) fetch_row<1>(y[p + kAheadRows], channels * sizeof(Raw));
    for_registers(channels,
                  [&]<int K>(Registers<K>, int64_t c, int64_t n) __attribute__((always_inline)) {
                    const Normal<K> normal = of.at<K>(c);
                    const Registers<K> in = load_some<Type, K>(x[p] + c, n);
                    const Registers<K> out = swish ? normal.swish(in, all) : normal.value(in);
                    if (y.first != nullptr) store_some<Type>(y[p] + c, out, n, stream);
                  });
  }
  return all.are();
}

template <class Type>
class InsideForward : public ForwardRows {
 public:
  explicit InsideForward(const GroupNormCall& call) : ForwardRows(call), tiles_(call) {}

  int64_t rows() const { return call_.rows; }

  // Computes the moments of each channel over one segment.
  void moments(const Slice& at, Moments* found) {
    const Segment part(call_, at);
    const RowsOf<const Raw> x = positions_of<Type>(call_.x, at, part);
    for (int64_t r = 0; r < at.rows; ++r) found[r] = {0, 0, 0};
    for (int64_t p = 0; p < part.size; p += kMomentBlock) {
      const int64_t n = least(kMomentBlock, part.size - p);
      group_norm_inside_moments<Type>(x.from(p), at.rows, n, moments_);
      for (int64_t r = 0; r < at.rows; ++r) {
        double d[kWideLanes], dd[kWideLanes];
        for (int l = 0; l < kWideLanes; ++l) d[l] = moments_.d[l][r], dd[l] = moments_.dd[l][r];
        found[r].add(
            moments_from(n, moments_.pivot[r], halved<kWideLanes>(d), halved<kWideLanes>(dd)));
      }
    }
  }

  // Stores y of each channel over one segment.
  void normalise(const Slice& at, const double* pairs) {
    const Segment part(call_, at);
    const RowsOf<const Raw> x = positions_of<Type>(call_.x, at, part);
    const RowsOf<Raw> y = positions_of<Type>(call_.out, at, part);
    bool near = true;
    for (int64_t r = 0; r < kMaxRows; ++r) {
      of_.high[r] = of_.low[r] = of_.gamma[r] = of_.beta[r] = of_.slope[r] = of_.shift[r] = 0;
      if (r >= at.rows) continue;
      const NormalRow row = this->row(at.channel + r, at.channel, pairs);
      of_.high[r] = row.high, of_.low[r] = row.low;
      of_.gamma[r] = row.near.gamma, of_.beta[r] = row.near.beta;
      of_.slope[r] = row.near.slope, of_.shift[r] = row.near.shift;
      near &= row.near.enough();
    }
    const auto run = [&](const RowsOf<Raw>& to) {
      return group_norm_inside_values<Type>(of_, at.rows, call_.swish, x, to, part.size,
                                            call_.stream && at_lines(to));
    };
    const bool in_place = call_.x.data == call_.out.data;  // tiles need x again
    if (near && in_place && call_.swish) near = run({});
    if (near && run(y)) return;
    for_tiles(at, [&](const Slice& tile, int64_t) {
      tiles_.normalise(tile, pairs + 2 * (groups_[tile.channel] - groups_[at.channel]));
    });
  }

 private:
  using Raw = typename Type::Raw;

  TiledForward tiles_;  // for every t
  NormalChannels of_;
  ChannelMoments moments_;
};

}  // namespace
}  // namespace openaclnn::OPENACLNN_ISA
