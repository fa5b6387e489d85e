// SPDX-License-Identifier: Apache-2.0
// GroupNormSwishGrad of channels-last tensors.
#pragma once

#include "core/kernels/group_norm/gradient_rows.h"
#include "core/kernels/group_norm/inside.h"

namespace openaclnn::OPENACLNN_ISA {
namespace {

struct ChannelLanes {
  alignas(64) OfChannels u[kLanes], ud[kLanes];
};

// Adds u and u d of a piece to the lanes. Returns false if some t is not near.
template <class Type, class Raw = typename Type::Raw>
[[gnu::noinline, gnu::flatten]] bool group_norm_inside_sums(
    const GradientFactors& of, int64_t channels, const RowsOf<const Raw>& dy,
    const RowsOf<const Raw>& x, int64_t positions, ChannelLanes& lanes) {
  AllNear all;
  const auto add = [&]<int K>(int64_t p, int64_t c, int64_t, const Registers<K>& g,
                              const Registers<K>& in) __attribute__((always_inline)) {
    float *const to_u = lanes.u[p % kLanes] + c, *const to_ud = lanes.ud[p % kLanes] + c;
    const auto terms = of.at<K>(c);
    const auto d = terms.d(in), u = terms.u(g, d, all);
    store_registers<F32>(to_u, load_registers<F32, K>(to_u) + u);
    store_registers<F32>(to_ud, fused(u, d, load_registers<F32, K>(to_ud)));
  };
  for_inside<Type>(channels, positions, add, dy, x);
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
    const GradientFactors& of, int64_t channels, const RowsOf<const Raw>& dy,
    const RowsOf<const Raw>& x, const RowsOf<Raw>& dx, int64_t positions, bool stream) {
  AllNear all;
  const auto make = [&]<int K>(int64_t c, const Registers<K>& g, const Registers<K>& in)
                        __attribute__((always_inline)) {
                          const auto terms = of.at<K>(c);
                          const Registers<K> d = terms.d(in);
                          return terms.dx(terms.u(g, d, all), d);
                        };
  store_inside<Type>(dx, channels, positions, stream, make, dy, x);
  return all.are();
}

// Where some t is not near, rows are gathered.
template <class Type>
class InsideGradient : public GradientSweeps<GatheredRows> {
 public:
  using GradientSweeps::GradientSweeps;

  // Computes Σ u and Σ u x̂ of each channel over one segment.
  void sum(const Place& at, Sums* found) {
    read_rows_of_sums(at);
    if (!sums(at, found)) sum_rows(at, found);
  }

  // Stores dx of each channel over one segment.
  void store(const Place& at, const double* mean) {
    read_rows(at, mean);
    bool near = true;
    for (int64_t r = 0; r < at.rows; ++r) near &= input_[r].enough(row_[r]);
    const bool in_place = call_.out.data == call_.x.data || call_.out.data == call_.dy.data;
    Sums unused[kMaxRows];
    if (near && in_place) near = sums(at, unused);  // rows need x and dy again
    if (!near || !gradient(at)) store_rows(at);
  }

 private:
  using Raw = typename Type::Raw;

  bool sums(const Place& at, Sums* found) {
    const RowsOf<const Raw> dy = positions_of<Type>(call_.dy, at),
                            x = positions_of<Type>(call_.x, at);
    of_.fill(at.rows);
    double u[kMaxRows] = {}, ux[kMaxRows] = {};
    bool near = true;
    for (int64_t p = 0; p < at.columns && near; p += kPiece) {
      std::memset(&lanes_, 0, sizeof lanes_);
      near = group_norm_inside_sums<Type>(of_, at.rows, dy.from(p), x.from(p),
                                          smaller(kPiece, at.columns - p), lanes_);
      group_norm_inside_trees(lanes_.u, at.rows, u);
      group_norm_inside_trees(lanes_.ud, at.rows, ux);
    }
    for (int64_t r = 0; r < at.rows; ++r) found[r] = {u[r], ux[r] * row_[r].unit()};
    return near;
  }

  bool gradient(const Place& at) {
    const RowsOf<const Raw> dy = positions_of<Type>(call_.dy, at),
                            x = positions_of<Type>(call_.x, at);
    const RowsOf<Raw> dx = positions_of<Type>(call_.out, at);
    const bool stream = call_.stream && at_lines(dx);
    of_.fill(at.rows);
    return group_norm_inside_gradient<Type>(of_, at.rows, dy, x, dx, at.columns, stream);
  }

  alignas(64) ChannelLanes lanes_;
};

}  // namespace
}  // namespace openaclnn::OPENACLNN_ISA
