// SPDX-License-Identifier: Apache-2.0
// In channels-last tensors the channels of a position lie side by side. The loops work on kMaxRows
// of them at a time, position by position. Sums use the lanes of rows, one set for each channel, so
// results have the same bits.
#pragma once

#include "core/kernels/group_norm/tiles.h"

namespace openaclnn::OPENACLNN_ISA {
namespace {

// What a sweep knows about each channel.
using OfChannels = float[kMaxRows];

inline Place whole_segment(const GroupNormCall& call, const Slice& at) {
  const int64_t first = at.segment * kSegment;
  return {at.sample, at.channel, first, at.rows, least(kSegment, call.positions - first)};
}

// The positions of a place, with `channels` values at each.
template <class Type, class Raw = typename Type::Raw>
inline RowsOf<Raw> positions_of(const GroupNormTensor& t, const Place& at) {
  const int64_t step = t.position[0];
  Raw* const first = static_cast<Raw*>(t.data) + at.sample * t.sample;
  return {first + at.channel + at.first * step, step};
}

template <int K>
[[gnu::always_inline]] inline Registers<K> of_channels(const float* values, int64_t c) {
  return load_registers<F32, K>(values + c);
}

// Tiles lie in L1: fetching them too takes 8 % of the forward of 1x32x8x8.
enum class From : uint8_t { memory, tile };

// Computes `channels` elements at each position: make(c, registers of each input) returns those
// from channel c on. Stores them unless `out` is NULL.
template <class Type, From from = From::memory, class Raw = typename Type::Raw>
[[gnu::always_inline]] inline void store_inside(const RowsOf<Raw>& out, int64_t channels,
                                                int64_t positions, bool stream, const auto& make,
                                                const auto&... in) {
  for (int64_t p = 0; p < positions; ++p) {
    if constexpr (from == From::memory) {
      (fetch_row<0>(in[p + kAheadRows], channels * sizeof(Raw)), ...);
      if (out.first != nullptr && !stream)
        fetch_row<1>(out[p + kAheadRows], channels * sizeof(Raw));
    }
    for_registers(channels,
                  [&]<int K>(Registers<K>, int64_t c, int64_t n) __attribute__((always_inline)) {
                    const Registers<K> y = make(c, load_some<Type, K>(in[p] + c, n)...);
                    if (out.first != nullptr) store_some<Type>(out[p] + c, y, n, stream);
                  });
  }
}

// Whether streaming stores of whole blocks begin where lines do.
template <class Raw>
inline bool at_lines(const RowsOf<Raw>& rows) {
  return ((reinterpret_cast<uintptr_t>(rows.first) | rows.step * sizeof(Raw)) & 63) == 0;
}

}  // namespace
}  // namespace openaclnn::OPENACLNN_ISA
