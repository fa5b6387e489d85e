// SPDX-License-Identifier: Apache-2.0
// Channels-last tensors: the channels of a position lie side by side, kMaxRows of them at a time
// are worked on position by position. Sums have the lanes of rows, one set for each channel: the
// same bits.
#pragma once

#include "core/kernels/group_norm_dense.h"

namespace openaclnn::OPENACLNN_ISA {
namespace {

// What a sweep knows of each channel.
using OfChannels = float[kMaxRows];

// The positions of a segment, `channels` values at each.
template <class Type, class Raw = typename Type::Raw>
inline RowsOf<Raw> positions_of(const GroupNormTensor& t, const Slice& at, const Segment& part) {
  const int64_t step = t.position[0];
  Raw* const first = static_cast<Raw*>(t.data) + at.sample * t.sample;
  return {first + at.channel + part.begin * step, step};
}

// work(Registers<K>, channel, count) for all channels; count is less than K registers hold only in
// the last one.
template <class Work>
[[gnu::always_inline]] inline void for_registers(int64_t channels, const Work& work) {
  constexpr int64_t kMany = kTogether * kRegisterFloats;
  int64_t c = 0;
  for (; c + kMany <= channels; c += kMany) work(Registers<kTogether>{}, c, kMany);
  for (; c < channels; c += kRegisterFloats)
    work(Registers<1>{}, c, least(kRegisterFloats, channels - c));
}

// n values and then zeros.
template <class Type, int K>
[[gnu::always_inline]] inline Registers<K> load_some(const typename Type::Raw* in, int64_t n) {
  if (K > 1 || n == kRegisterFloats) return load_registers<Type, K>(in);
  typename Type::Raw part[kRegisterFloats] = {};
  std::memcpy(part, in, n * sizeof *in);
  return load_registers<Type, K>(part);
}

template <class Type, int K>
[[gnu::always_inline]] inline void store_some(typename Type::Raw* out, const Registers<K>& y,
                                              int64_t n, bool stream) {
  if constexpr (K > 1) {
    store_registers<Type>(out, y, stream);
  } else {
    float part[kRegisterFloats];
    store_register(part, y.r[0]);
    narrow(out, part, Type::kElement, n);
  }
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

// work(part, first row) for the parts of a slice that a tile has room for.
inline void for_tiles(const Slice& at, const auto& work) {
  for (int64_t r = 0; r < at.rows; r += kTileRows) {
    const int64_t count = least(kTileRows, at.rows - r);
    work(Slice{at.sample, at.channel + r, count, at.segment}, r);
  }
}

}  // namespace
}  // namespace openaclnn::OPENACLNN_ISA
