// SPDX-License-Identifier: Apache-2.0
// GroupNormSwish of channels-last tensors.
#pragma once

#include "core/kernels/group_norm/forward_rows.h"
#include "core/kernels/group_norm/channels_last.h"

namespace openaclnn::OPENACLNN_ISA {
namespace {

struct ChannelMoments {
  alignas(64) double pivot[kMaxRows], d[kWideLanes][kMaxRows], dd[kWideLanes][kMaxRows];
};

// Computes the moments of a block, for every channel.
template <class Type, class Raw = typename Type::Raw>
[[gnu::noinline, gnu::flatten]] void group_norm_channels_last_moments(
    const StridedRows<const Raw>& x, int64_t channels, int64_t positions, ChannelMoments& to) {
  constexpr int kWidth = kRegisterBytes / sizeof(double);
  std::memset(&to, 0, sizeof to);
  for (int64_t c = 0; c < channels; ++c) to.pivot[c] = pivot_of(Type::from(x[0][c]));
  const auto add = [&]<int K>(int64_t p, int64_t c, int64_t,
                              const Registers<K>& in) __attribute__((always_inline)) {
#pragma GCC unroll 8
    for (int k = 0; k < K; ++k) {
#pragma GCC unroll 2
      for (int half = 0; half < 2; ++half) {
        const int64_t i = c + (2 * k + half) * kWidth;
        double *const to_d = to.d[p % kWideLanes] + i, *const to_dd = to.dd[p % kWideLanes] + i;
        const auto at = [](const double* lane) { return load_register<DoubleRegister>(lane); };
        const DoubleRegister d = widened_half(in.r[k], half) - at(to.pivot + i);
        store_register(to_d, at(to_d) + d);
        store_register(to_dd, at(to_dd) + d * d);
      }
    }
  };
  for_channels_last<Type>(channels, positions, add, x);
}

// Stores y or, without swish, v, if it is wanted. Returns false if some t is unusual.
template <class Type, From from = From::memory, int64_t N, class Raw = typename Type::Raw>
[[gnu::noinline, gnu::flatten]] bool group_norm_channels_last_values(
    const ForwardFactors<N>& of, int64_t channels, bool swish, const StridedRows<const Raw>& x,
    const StridedRows<Raw>& y, int64_t positions, bool stream) {
  SwishDoubts doubts;
  const auto make = [&]<int K>(int64_t c, const Registers<K>& in) __attribute__((always_inline)) {
    return swish ? of.template at<K>(c).swish(in, doubts) : of.template at<K>(c).value(in);
  };
  store_channels_last<Type, from>(y, channels, positions, stream, make, x);
  return !doubts.any();
}

// Rows are gathered of the pieces in which some t is unusual.
template <class Type>
class ChannelsLastForward : public ForwardSweeps<GatheredRows> {
 public:
  using ForwardSweeps::ForwardSweeps;

  // Computes the moments of each channel over one segment.
  void sum(const Region& at, Moments* found) {
    const auto x = positions_of<Type, const Raw>(call_.x, at);
    for (int64_t r = 0; r < at.rows; ++r) found[r] = {0, 0, 0};
    for (int64_t p = 0; p < at.columns; p += kMomentBlock) {
      const int64_t n = smaller(kMomentBlock, at.columns - p);
      group_norm_channels_last_moments<Type>(x.from(p), at.rows, n, moments_);
      for (int64_t r = 0; r < at.rows; ++r) {
        double d[kWideLanes], dd[kWideLanes];
        for (int l = 0; l < kWideLanes; ++l) d[l] = moments_.d[l][r], dd[l] = moments_.dd[l][r];
        found[r].add(
            moments_from(n, moments_.pivot[r], tree_sum<kWideLanes>(d), tree_sum<kWideLanes>(dd)));
      }
    }
  }

  // Stores y of each channel over one segment.
  void store(const Region& at, const double* pairs) {
    set(at, pairs);
    of_.fill(at.rows);
    const bool fits_fp32 = call_.swish || of_.fits_fp32(0, at.rows);
    const bool in_place = call_.x.data == call_.out.data;
    for_regions(at, Pieces{}, Direction::first_to_last, [&](const Region& piece, int64_t) {
      const StridedRows<Raw> y = positions_of<Type>(call_.out, piece);
      const bool again = call_.swish && in_place;  // rows need x
      if (!fits_fp32 || (again && !values(piece, {})) || !values(piece, y)) store_rows(piece);
    });
  }

 private:
  using Raw = typename Type::Raw;

  bool values(const Region& at, const StridedRows<Raw>& y) const {
    return group_norm_channels_last_values<Type>(of_, at.rows, call_.swish,
                                                 positions_of<Type, const Raw>(call_.x, at), y,
                                                 at.columns, call_.stream && at_lines(y));
  }

  ChannelMoments moments_;
};

}  // namespace
}  // namespace openaclnn::OPENACLNN_ISA
