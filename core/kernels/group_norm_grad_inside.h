// SPDX-License-Identifier: Apache-2.0
// GroupNormSwishGrad of channels-last tensors.
#pragma once

#include "core/kernels/group_norm_grad_tiles.h"
#include "core/kernels/group_norm_inside.h"

namespace openaclnn::OPENACLNN_ISA {
namespace {

// Holds for each channel the coefficients that the loops over rows hold for a row.
struct GradientChannels {
  alignas(64) OfChannels mean, slope, shift, a, b, c;
};

struct ChannelLanes {
  alignas(64) OfChannels u[kLanes], ud[kLanes];
};

template <int K>
[[gnu::always_inline]] inline Registers<K> d_of(const GradientChannels& of, int64_t c,
                                                const Registers<K>& x) {
  return x - of_channels<K>(of.mean, c);
}
template <int K>
[[gnu::always_inline]] inline Registers<K> u_of(const GradientChannels& of, int64_t c,
                                                const Registers<K>& dy, const Registers<K>& d,
                                                AllNear& all) {
  return u_near(dy, d, of_channels<K>(of.slope, c), of_channels<K>(of.shift, c), all);
}

// Adds u and u d of a piece to the lanes. Returns false if some t is not near.
template <class Type, class Raw = typename Type::Raw>
[[gnu::noinline, gnu::flatten]] bool group_norm_inside_sums(
    const GradientChannels& of, int64_t channels, const RowsOf<const Raw>& dy,
    const RowsOf<const Raw>& x, int64_t positions, ChannelLanes& lanes) {
  AllNear all;
  for (int64_t p = 0; p < positions; ++p) {
    fetch_row<0>(dy[p + kAheadRows], channels * sizeof(Raw));
    fetch_row<0>(x[p + kAheadRows], channels * sizeof(Raw));
    float *const u_lane = lanes.u[p % kLanes], *const ud_lane = lanes.ud[p % kLanes];
    for_registers(channels,
                  [&]<int K>(Registers<K>, int64_t c, int64_t n) __attribute__((always_inline)) {
                    const auto d = d_of(of, c, load_some<Type, K>(x[p] + c, n));
                    const auto u = u_of(of, c, load_some<Type, K>(dy[p] + c, n), d, all);
                    store_registers(u_lane + c, load_registers<F32, K>(u_lane + c) + u);
                    store_registers(ud_lane + c, fused(u, d, load_registers<F32, K>(ud_lane + c)));
                  });
  }
  return all.are();
}

// Adds the lanes of a piece in trees, and the results to the sums of the channels.
[[gnu::noinline, gnu::flatten]] inline void group_norm_inside_trees(const OfChannels* lanes,
                                                                    int64_t channels,
                                                                    double* sums) {
  OPENACLNN_INDEPENDENT
  for (int64_t c = 0; c < channels; ++c) {
    double lane[kLanes / 2];
#pragma GCC unroll 16
    for (int l = 0; l < kLanes / 2; ++l)
      lane[l] = static_cast<double>(lanes[l][c]) + static_cast<double>(lanes[l + kLanes / 2][c]);
    sums[c] += halved<kLanes / 2>(lane);
  }
}

// Returns false if some t is not near.
template <class Type, class Raw = typename Type::Raw>
[[gnu::noinline, gnu::flatten]] bool group_norm_inside_gradient(
    const GradientChannels& of, int64_t channels, const RowsOf<const Raw>& dy,
    const RowsOf<const Raw>& x, const RowsOf<Raw>& dx, int64_t positions, bool stream) {
  AllNear all;
  for (int64_t p = 0; p < positions; ++p) {
    fetch_row<0>(dy[p + kAheadRows], channels * sizeof(Raw));
    fetch_row<0>(x[p + kAheadRows], channels * sizeof(Raw));
    if (!stream) fetch_row<1>(dx[p + kAheadRows], channels * sizeof(Raw));
    for_registers(channels,
                  [&]<int K>(Registers<K>, int64_t c, int64_t n) __attribute__((always_inline)) {
                    const auto d = d_of(of, c, load_some<Type, K>(x[p] + c, n));
                    const auto u = u_of(of, c, load_some<Type, K>(dy[p] + c, n), d, all);
                    const auto rest = fused(of_channels<K>(of.c, c), d, of_channels<K>(of.b, c));
                    const auto y = fused(of_channels<K>(of.a, c), u, rest);
                    store_some<Type>(dx[p] + c, y, n, stream);
                  });
  }
  return all.are();
}

template <class Type>
class InsideGradient : public GradientRows {
 public:
  explicit InsideGradient(const GroupNormCall& call) : GradientRows(call), tiles_(call) {}

  int64_t rows() const { return call_.rows; }

  void lifts_in(void* workspace) {
    GradientRows::lifts_in(workspace);
    tiles_.lifts_in(workspace);
  }

  // Computes Σ u and Σ u x̂ of each channel over one segment.
  void sums(const Slice& at, double* u, double* ux) {
    read_rows_of_sums(at);
    set_channels(at);
    const Segment part(call_, at);
    if (sums(at, part, u, ux)) return;
    for_tiles(at, [&](const Slice& tile, int64_t r) { tiles_.sums(tile, u + r, ux + r); });
  }

  // Stores dx of each channel over one segment.
  void input_gradient(const Slice& at, const double* mean) {
    read_rows(at, mean);
    set_channels(at);
    bool near = true;
    for (int64_t r = 0; r < at.rows; ++r) {
      near &= input_[r].enough(row_[r]);
      of_.a[r] = input_[r].a, of_.b[r] = input_[r].b, of_.c[r] = input_[r].c;
    }
    const Segment part(call_, at);
    const bool in_place = call_.out.data == call_.x.data || call_.out.data == call_.dy.data;
    double unused[2][kMaxRows];
    if (near && in_place) near = sums(at, part, unused[0], unused[1]);  // tiles need x and dy again
    if (near && gradient(at, part)) return;
    for_tiles(at, [&](const Slice& tile, int64_t) {
      tiles_.input_gradient(tile, mean + 2 * (groups_[tile.channel] - groups_[at.channel]));
    });
  }

 private:
  using Raw = typename Type::Raw;

  void set_channels(const Slice& at) {
    for (int64_t r = 0; r < at.rows; ++r) {
      of_.mean[r] = row_[r].mean, of_.slope[r] = row_[r].slope, of_.shift[r] = row_[r].shift;
    }
    for (int64_t r = at.rows; r < kMaxRows; ++r)
      of_.mean[r] = of_.slope[r] = of_.shift[r] = of_.a[r] = of_.b[r] = of_.c[r] = 0;
  }

  bool sums(const Slice& at, const Segment& part, double* u, double* ux) {
    const RowsOf<const Raw> dy = positions_of<Type>(call_.dy, at, part),
                            x = positions_of<Type>(call_.x, at, part);
    for (int64_t r = 0; r < at.rows; ++r) u[r] = ux[r] = 0;
    bool near = true;
    for (int64_t p = 0; p < part.size && near; p += kPiece) {
      std::memset(&lanes_, 0, sizeof lanes_);
      near = group_norm_inside_sums<Type>(of_, at.rows, dy.from(p), x.from(p),
                                          least(kPiece, part.size - p), lanes_);
      group_norm_inside_trees(lanes_.u, at.rows, u);
      group_norm_inside_trees(lanes_.ud, at.rows, ux);
    }
    for (int64_t r = 0; r < at.rows; ++r) ux[r] *= row_[r].unit();
    return near;
  }

  bool gradient(const Slice& at, const Segment& part) {
    const RowsOf<const Raw> dy = positions_of<Type>(call_.dy, at, part),
                            x = positions_of<Type>(call_.x, at, part);
    const RowsOf<Raw> dx = positions_of<Type>(call_.out, at, part);
    const bool stream = call_.stream && at_lines(dx);
    return group_norm_inside_gradient<Type>(of_, at.rows, dy, x, dx, part.size, stream);
  }

  TiledGradient tiles_;  // for every t
  GradientChannels of_;
  alignas(64) ChannelLanes lanes_;
};

}  // namespace
}  // namespace openaclnn::OPENACLNN_ISA
