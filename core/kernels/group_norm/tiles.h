// SPDX-License-Identifier: Apache-2.0
// Tiles: regions of tensors of any strides and dtypes are gathered to fp32 in L1, and written back.
#pragma once

#include "core/kernels/group_norm/loops.h"

namespace openaclnn::OPENACLNN_ISA {
namespace {

// Tiles of at most kRoom floats. Their lines are the channels or, if side is Side::channels, the
// positions; what lies side by side in a line may do so in the tensor, or be in any other order.
template <Side side, int64_t kRoom>
class Tiles {
 protected:
  explicit Tiles(const GroupNormCall& call) : call_(call) {}

  // Copies a tile to lines that begin `pitch` floats apart.
  [[gnu::noinline]] void gather(const GroupNormTensor& t, const Region& at, float* out,
                                int64_t pitch) {
    const Lines of = lines_of(t, at, at.columns);
    if (t.side == side) {
      void* const first = address_of(t, at);
      const int64_t bytes = of.length * bytes_of(t.element);
      for (int64_t l = 0; l < of.count; ++l) {
        const char* const from =
            static_cast<const char*>(element_at(first, t.element, l * of.line));
        // Lines of small-spatial channels follow each other: fetching them too takes 1.2 times as
        // long (gradient of channels-last 1x32x64).
        for (int64_t b = 0; b < bytes && side == Side::positions; b += 64)
          __builtin_prefetch(address_of(from, kAheadBytes + b));
        widen(out + l * pitch, from, t.element, of.length);
      }
    } else {
      const bool wide = t.element == Element::f32;
      for_line_runs(
          t, at, wide ? out : stage(), pitch, [&](void* tile, void* tensor, const Lines& run) {
            move(tile, {pitch, 1}, tensor, {run.line, run.step}, run.count, run.length, t.element);
          });
      for (int64_t l = 0; l < of.count && !wide; ++l)
        widen(out + l * pitch, element_at(raw_, t.element, l * pitch), t.element, of.length);
    }
  }

  // … and back.
  [[gnu::noinline]] void scatter(const GroupNormTensor& t, const Region& at, const float* in,
                                 int64_t pitch) {
    const Lines of = lines_of(t, at, at.columns);
    if (t.side == side) {
      void* const first = address_of(t, at);
      for (int64_t l = 0; l < of.count; ++l)
        store_line(element_at(first, t.element, l * of.line), in + l * pitch, t.element, of.length);
    } else {
      const bool wide = t.element == Element::f32;
      for (int64_t l = 0; l < of.count && !wide; ++l)
        narrow(element_at(raw_, t.element, l * pitch), in + l * pitch, t.element, of.length);
      for_line_runs(t, at, wide ? const_cast<float*>(in) : stage(), pitch,
                    [&](void* tile, void* tensor, const Lines& run) {
                      move(tensor, {run.line, run.step}, tile, {pitch, 1}, run.count, run.length,
                           t.element);
                    });
    }
  }

  const GroupNormCall& call_;

 private:
  // The lines of a tile, or of the positions of a run: how many elements they have, and how far
  // lines, and elements of a line, lie apart in the tensor.
  struct Lines {
    int64_t count, length, line, step;
  };
  Lines lines_of(const GroupNormTensor& t, const Region& at, int64_t positions) const {
    const int64_t step = t.position[call_.spatial_loops - 1];
    return side == Side::channels ? Lines{positions, at.rows, step, t.channel}
                                  : Lines{at.rows, positions, t.channel, step};
  }

  // Calls work(where it lies in the tile, where in the tensor, its lines) for each run of
  // positions.
  void for_line_runs(const GroupNormTensor& t, const Region& at, void* tile, int64_t pitch,
                     const auto& work) const {
    for_runs(call_, t, at.sample, at.channel, at.first, at.columns,
             [&](int64_t offset, int64_t i, int64_t n) {
               work(element_at(tile, t.element, side == Side::channels ? i * pitch : i),
                    element_at(t.data, t.element, offset), lines_of(t, at, n));
             });
  }

  void store_line(void* to, const float* from, Element element, int64_t n) {
    if (side == Side::channels || !call_.stream) return narrow(to, from, element, n);
    if (element != Element::f32) narrow(raw_, from, element, n);
    stream_copy(to, element == Element::f32 ? static_cast<const void*>(from) : raw_,
                n * bytes_of(element));
  }

  float* stage() { return reinterpret_cast<float*>(raw_); }

  alignas(64) char raw_[kRoom * sizeof(float)];
};

inline constexpr int64_t kTileFloats = kTileRows * kPiece;
inline constexpr int64_t kSkew = 16;  // between rows, so that they do not share the sets of L1
inline constexpr int64_t kTileRoom = kTileFloats + kTileRows * kSkew;

// Rows of fp32 in L1, with room for a multiple of 32 columns each; a tile is one row or whole
// pieces of several.
class GatheredRows : Tiles<Side::positions, kTileRoom> {
 public:
  using Type = F32;
  struct Buffer {
    alignas(64) float values[kTileRoom];
  };

  explicit GatheredRows(const GroupNormCall& call) : Tiles(call) {}

  int64_t rows() const { return smaller(call_.rows, kTileRows); }
  int64_t columns() const { return call_.columns; }

  // Returns rows to read, in `buffer`.
  StridedRows<const float> load(const GroupNormTensor& t, const Region& at, Buffer& buffer) {
    gather(t, at, buffer.values, pitch(at));
    return {buffer.values, pitch(at)};
  }

  // Returns rows to write, for store().
  StridedRows<float> target(const GroupNormTensor&, const Region& at, Buffer& buffer) const {
    return {buffer.values, pitch(at)};
  }

  void store(const GroupNormTensor& t, const Region& at, const StridedRows<float>& rows) {
    scatter(t, at, rows.first, rows.step);
  }

 private:
  static int64_t pitch(const Region& at) {
    return round_up(at.columns, kLanes) + (at.rows == 1 ? 0 : kSkew);
  }
};

// ---- short rows ----

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

// What both operators share in the loop of short rows (kSmallSpatial), down to one position: tiles
// of positions × the channels of many groups, whose lines are the positions; of whole groups, or of
// a part of one. Sums over positions are taken in order. The loops of longer rows take 6 to 70
// times as long for 1 to 4 positions, 1.3 to 4.9 times for 49, and 0.8 to 1.4 times for 64 (Zen 4).
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

  // Marks the groups with a channel of a tile for which of(channel) is true; whether there are
  // some.
  [[gnu::noinline, gnu::flatten]] bool mark_exact(int64_t n, const auto& of) {
    if (!some(n, of)) return false;
    for (int64_t c = 0; c < n; ++c) exact_[c / width_] |= of(c);
    return true;
  }

  using Tiles::call_;
  const int64_t width_, tile_channels_;
  bool exact_[kSmallSpatialChannels];  // groups that `exact` computes
};

}  // namespace
}  // namespace openaclnn::OPENACLNN_ISA
