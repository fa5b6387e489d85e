// SPDX-License-Identifier: Apache-2.0
// In channels-last tensors the channels of a position lie side by side. The loops work on kMaxRows
// of them at a time, position by position. Sums use the lanes of rows, one set for each channel, so
// results have the same bits.
#pragma once

#include "core/kernels/group_norm_dense.h"

namespace openaclnn::OPENACLNN_ISA {
namespace {

// What a sweep knows about each channel.
using OfChannels = float[kMaxRows];

// The positions of a segment, with `channels` values at each.
template <class Type, class Raw = typename Type::Raw>
inline RowsOf<Raw> positions_of(const GroupNormTensor& t, const Slice& at, const Segment& part) {
  const int64_t step = t.position[0];
  Raw* const first = static_cast<Raw*>(t.data) + at.sample * t.sample;
  return {first + at.channel + part.begin * step, step};
}

template <int K>
[[gnu::always_inline]] inline Registers<K> of_channels(const OfChannels& values, int64_t c) {
  return load_registers<F32, K>(values + c);
}

// Whether streaming stores of whole blocks begin where lines do.
template <class Raw>
inline bool at_lines(const RowsOf<Raw>& rows) {
  return ((reinterpret_cast<uintptr_t>(rows.first) | rows.step * sizeof(Raw)) & 63) == 0;
}

// Calls work(part, first row) for the parts of a slice that a tile has room for.
inline void for_tiles(const Slice& at, const auto& work) {
  for (int64_t r = 0; r < at.rows; r += kTileRows) {
    const int64_t count = least(kTileRows, at.rows - r);
    work(Slice{at.sample, at.channel + r, count, at.segment}, r);
  }
}

}  // namespace
}  // namespace openaclnn::OPENACLNN_ISA
