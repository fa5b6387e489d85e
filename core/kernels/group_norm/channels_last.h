// SPDX-License-Identifier: Apache-2.0
// The loop over channels, of normalise.h, gradient_sums.h and input_gradient.h (moments.h has its
// own, add_channel_moments): of tensors whose channels are contiguous, kMaxRows of them at a time,
// position by position. Sums use the lanes of rows, one set for each channel, so results have the
// same bits.
#pragma once

#include "core/kernels/group_norm/tiles.h"

namespace openaclnn::OPENACLNN_ISA {
namespace {

// What a sweep knows about each channel.
using OfChannels = float[kMaxRows];

// The positions of a region, with `channels` values at each.
template <class Type, class Raw = typename Type::Raw>
inline StridedRows<Raw> positions_of(const GroupNormTensor& t, const Region& at) {
  return {static_cast<Raw*>(address_of(t, at)), t.position[0]};
}

// Tiles lie in L1: fetching them too takes 8 % of the forward of 1x32x8x8.
enum class From : uint8_t { memory, tile };

// Calls work(p, c, n, the registers of each input) at each position p for n channels from c on.
// Lambdas that GCC inlines late, because of `flatten`, take 1.2 times as long.
template <class Type, From from = From::memory, class Raw = typename Type::Raw>
[[gnu::always_inline]] inline void for_channels_last(int64_t channels, int64_t positions,
                                                     const auto& work, const auto&... in) {
  for (int64_t p = 0; p < positions; ++p) {
    if constexpr (from == From::memory)
      (fetch_row<0>(in.address(p + kAheadRows), channels * sizeof(Raw)), ...);
    for_registers(channels,
                  [&]<int K>(Registers<K>, int64_t c, int64_t n) __attribute__((always_inline)) {
                    work(p, c, n, load_some<Type, K>(in[p] + c, n)...);
                  });
  }
}

// Stores `channels` elements at each position, unless `out` is NULL: make(c, registers of each
// input) returns those from channel c on.
template <class Type, From from = From::memory, class Raw = typename Type::Raw>
[[gnu::always_inline]] inline void store_channels_last(const StridedRows<Raw>& out,
                                                       int64_t channels, int64_t positions,
                                                       bool stream, const auto& make,
                                                       const auto&... in) {
  const auto store = [&](int64_t p, int64_t c, int64_t n, const auto&... values)
                         __attribute__((always_inline)) {
                           const auto y = make(c, values...);
                           if (out.first == nullptr) return;
                           if (from == From::memory && !stream && c == 0)
                             fetch_row<1>(out.address(p + kAheadRows), channels * sizeof(Raw));
                           store_some<Type>(out[p] + c, y, n, stream);
                         };
  for_channels_last<Type, from>(channels, positions, store, in...);
}

// Whether non-temporal stores of whole blocks begin where lines do.
template <class Raw>
inline bool at_lines(const StridedRows<Raw>& rows) {
  return ((reinterpret_cast<uintptr_t>(rows.first) | rows.step * sizeof(Raw)) & 63) == 0;
}

}  // namespace
}  // namespace openaclnn::OPENACLNN_ISA
