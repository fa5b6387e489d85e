// SPDX-License-Identifier: Apache-2.0
// The loop of short rows (kSmallSpatial), down to one position: tiles of positions × the channels
// of many groups in L1, whose lines are the positions. Sums over positions are taken in order. The
// loops of longer rows take 6 to 70 times as long for 1 to 4 positions, 1.3 to 4.9 times for 49,
// and 0.8 to 1.4 times for 64 (Zen 4).
#pragma once

#include "core/kernels/group_norm/parameters.h"
#include "core/kernels/group_norm/tiles.h"

namespace openaclnn::OPENACLNN_ISA {
namespace {

// Sums in 8 lanes and a fixed tree.
inline double sum_of(const double* values, int64_t n) {
  double lane[8] = {};
  int64_t i = 0;
  for (; i + 8 <= n; i += 8) {
    for (int l = 0; l < 8; ++l) lane[l] += values[i + l];
  }
  for (int l = 0; i < n; ++i, ++l) lane[l] += values[i];
  return tree_sum<8>(lane);
}

// What both operators share. A tile has all positions of whole groups, or of a part of one.
class SmallSpatial : Tiles<Side::channels, kSmallSpatialTile> {
 protected:
  using Tile = float[kSmallSpatialTile];
  using Values = float[kSmallSpatialChannels];
  using Wide = double[kSmallSpatialChannels];

  explicit SmallSpatial(const GroupNormCall& call)
      : Tiles(call),
        width_(channels_of_group(call)),
        tile_channels_(small_spatial_channels(call.positions)) {}

  bool in_one_tile(const GroupBatch& batch) const { return batch.channels <= tile_channels_; }

  // Calls work(the region of a tile) for a batch.
  void for_tiles(int64_t sample, const GroupBatch& batch, const auto& work) const {
    for (int64_t c = 0; c < batch.channels; c += tile_channels_)
      work(Region{sample, batch.first_channel + c, 0, smaller(tile_channels_, batch.channels - c),
                  call_.positions});
  }

  void load(const GroupNormTensor& t, const Region& at, float* out) { gather(t, at, out, at.rows); }

  // Writes a tile but for its groups that are stored already, if there are some: where
  // exact[group].
  void store(const GroupNormTensor& t, const Region& at, const float* values, const bool* exact) {
    if (exact == nullptr) return scatter(t, at, values, at.rows);
    for (int64_t c = 0; c < at.rows; c += width_, ++exact) {
      const Region group{at.sample, at.channel + c, 0, smaller(width_, at.rows - c), at.columns};
      if (!*exact) scatter(t, group, values + c, at.rows);
    }
  }

  // Calls work(where the value lies in a tile, channel) for all positions of n channels.
  [[gnu::always_inline]] void for_each(int64_t n, const auto& work) const {
    for (int64_t i = 0; i < call_.positions * n; i += n) {
      OPENACLNN_INDEPENDENT
      for (int64_t c = 0; c < n; ++c) work(i + c, c);
    }
  }

  // Copies the value of each group to each of its channels; a part of a group has one value.
  template <class T>
  void spread(const Region& at, const T* of_group, T* out) const {
    if (width_ == 1) {
      std::memcpy(out, of_group, at.rows * sizeof(T));
      return;
    }
    for (int64_t c = 0; c < at.rows; ++of_group) {
      const int64_t end = smaller(at.rows, c + width_);
      for (; c < end; ++c) out[c] = *of_group;
    }
  }

  // Adds the values of each group's channels to its sum.
  void reduce(const Region& at, const double* values, double* of_group) const {
    if (width_ == 1) {
      for (int64_t c = 0; c < at.rows; ++c) of_group[c] += values[c];
      return;
    }
    for (int64_t c = 0; c < at.rows; c += width_)
      *of_group++ += sum_of(values + c, smaller(width_, at.rows - c));
  }

  // Whether of(i) is true for some i.
  [[gnu::always_inline]] static bool some(int64_t n, const auto& of) {
    uint64_t found = 0;  // as wide as fp64: GCC vectorises it
    for (int64_t i = 0; i < n; ++i) found |= of(i) ? 1 : 0;
    return found != 0;
  }

  using Tiles::call_;
  const int64_t width_, tile_channels_;
};

}  // namespace
}  // namespace openaclnn::OPENACLNN_ISA
