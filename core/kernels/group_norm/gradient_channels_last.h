// SPDX-License-Identifier: Apache-2.0
// GroupNormSwishGrad of channels-last tensors.
#pragma once

#include "core/kernels/group_norm/gradient_rows.h"
#include "core/kernels/group_norm/channels_last.h"

namespace openaclnn::OPENACLNN_ISA {
namespace {

struct ChannelLanes {
  alignas(64) OfChannels u[kLanes], ud[kLanes];
};

// Adds u and u d of a piece to the lanes. Returns false if some t is unusual.
template <class Type, class Raw = typename Type::Raw>
[[gnu::noinline, gnu::flatten]] bool group_norm_channels_last_sums(
    const GradientFactors& of, int64_t channels, const StridedRows<const Raw>& dy,
    const StridedRows<const Raw>& x, int64_t positions, ChannelLanes& lanes) {
  SwishDoubts doubts;
  const auto add = [&]<int K>(int64_t p, int64_t c, int64_t, const Registers<K>& g,
                              const Registers<K>& in) __attribute__((always_inline)) {
    float *const to_u = lanes.u[p % kLanes] + c, *const to_ud = lanes.ud[p % kLanes] + c;
    const auto terms = of.at<K>(c);
    const auto d = terms.d(in), u = terms.u(g, d, doubts);
    store_registers<F32>(to_u, load_registers<F32, K>(to_u) + u);
    store_registers<F32>(to_ud, fused(u, d, load_registers<F32, K>(to_ud)));
  };
  for_channels_last<Type>(channels, positions, add, dy, x);
  return !doubts.any();
}

// Adds up the lanes of a piece in trees.
[[gnu::noinline, gnu::flatten]] inline void group_norm_channels_last_trees(const OfChannels* lanes,
                                                                           int64_t channels,
                                                                           double* sums) {
  OPENACLNN_INDEPENDENT
  for (int64_t c = 0; c < channels; ++c) {
    double lane[kLanes / 2];
#pragma GCC unroll 16
    for (int l = 0; l < kLanes / 2; ++l)
      lane[l] = static_cast<double>(lanes[l][c]) + static_cast<double>(lanes[l + kLanes / 2][c]);
    sums[c] = tree_sum<kLanes / 2>(lane);
  }
}

// Returns false if some t is unusual.
template <class Type, class Raw = typename Type::Raw>
[[gnu::noinline, gnu::flatten]] bool group_norm_channels_last_gradient(
    const GradientFactors& of, int64_t channels, const StridedRows<const Raw>& dy,
    const StridedRows<const Raw>& x, const StridedRows<Raw>& dx, int64_t positions, bool stream) {
  SwishDoubts doubts;
  const auto make = [&]<int K>(int64_t c, const Registers<K>& g, const Registers<K>& in)
                        __attribute__((always_inline)) {
                          const auto terms = of.at<K>(c);
                          const Registers<K> d = terms.d(in);
                          return terms.dx(terms.u(g, d, doubts), d);
                        };
  store_channels_last<Type>(dx, channels, positions, stream, make, dy, x);
  return !doubts.any();
}

// Rows are gathered of the pieces in which some t is unusual.
template <class Type>
class ChannelsLastGradient : public GradientSweeps<GatheredRows> {
 public:
  using GradientSweeps::GradientSweeps;

  // Computes Σ u and Σ u x̂ of each channel over one segment.
  void sum(const Region& at, Sums* found) {
    read_rows_of_sums(at);
    of_.fill(at.rows);
    bool usual = true;
    for (int64_t r = 0; r < at.rows; ++r) {
      found[r] = {0, 0};
      usual &= row_[r].slope == row_[r].slope;
    }
    for_regions(at, Pieces{}, Direction::first_to_last, [&](const Region& piece, int64_t) {
      if (!usual || !add_sums(piece, found)) add_rows(piece, found);
    });
    finish(at, found);
  }

  // Stores dx of each channel over one segment.
  void store(const Region& at, const double* mean) {
    read_rows(at, mean);
    of_.fill(at.rows);
    bool fits_fp32 = true;
    for (int64_t r = 0; r < at.rows; ++r) fits_fp32 &= input_[r].fits_fp32(row_[r]);
    // In place, rows need x and dy again.
    const bool in_place = call_.out.data == call_.x.data || call_.out.data == call_.dy.data;
    for_regions(at, Pieces{}, Direction::first_to_last, [&](const Region& piece, int64_t) {
      Sums unused[kMaxRows] = {};
      const bool stored = fits_fp32 && (!in_place || add_sums(piece, unused)) && gradient(piece);
      if (!stored) store_rows(piece);
    });
  }

 private:
  using Raw = typename Type::Raw;

  // Returns false, and adds nothing, if some t is unusual.
  bool add_sums(const Region& at, Sums* found) {
    std::memset(&lanes_, 0, sizeof lanes_);
    if (!group_norm_channels_last_sums<Type>(
            of_, at.rows, positions_of<Type, const Raw>(call_.dy, at),
            positions_of<Type, const Raw>(call_.x, at), at.columns, lanes_))
      return false;
    double u[kMaxRows], ud[kMaxRows];
    group_norm_channels_last_trees(lanes_.u, at.rows, u);
    group_norm_channels_last_trees(lanes_.ud, at.rows, ud);
    for (int64_t r = 0; r < at.rows; ++r) found[r].add({u[r], ud[r]});
    return true;
  }

  bool gradient(const Region& at) {
    const StridedRows<Raw> dx = positions_of<Type>(call_.out, at);
    return group_norm_channels_last_gradient<Type>(
        of_, at.rows, positions_of<Type, const Raw>(call_.dy, at),
        positions_of<Type, const Raw>(call_.x, at), dx, at.columns, call_.stream && at_lines(dx));
  }

  alignas(64) ChannelLanes lanes_;
};

}  // namespace
}  // namespace openaclnn::OPENACLNN_ISA
