// SPDX-License-Identifier: Apache-2.0
// Tiles: regions of tensors of any strides and dtypes are gathered to fp32 in L1, and written back.
#pragma once

#include "core/kernels/group_norm/positions.h"

namespace openaclnn::OPENACLNN_ISA {
namespace {

// Not inlined: tiles of all kinds move with them.
[[gnu::noinline, gnu::flatten]] inline void move_elements(void* to, Steps out, const void* from,
                                                          Steps in, int64_t rows, int64_t columns,
                                                          Element element) {
  move(to, out, from, in, rows, columns, element);
}
[[gnu::noinline, gnu::flatten]] inline void widen_line(float* out, const void* in, Element element,
                                                       int64_t n) {
  widen(out, in, element, n);
}
[[gnu::noinline, gnu::flatten]] inline void narrow_line(void* out, const float* in, Element element,
                                                        int64_t n) {
  narrow(out, in, element, n);
}

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
        widen_line(out + l * pitch, from, t.element, of.length);
      }
    } else {
      const bool wide = t.element == Element::f32;
      for_line_runs(t, at, wide ? out : stage(), pitch,
                    [&](void* tile, void* tensor, const Lines& run) {
                      move_elements(tile, {pitch, 1}, tensor, {run.line, run.step}, run.count,
                                    run.length, t.element);
                    });
      for (int64_t l = 0; l < of.count && !wide; ++l)
        widen_line(out + l * pitch, element_at(raw_, t.element, l * pitch), t.element, of.length);
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
        narrow_line(element_at(raw_, t.element, l * pitch), in + l * pitch, t.element, of.length);
      for_line_runs(t, at, wide ? const_cast<float*>(in) : stage(), pitch,
                    [&](void* tile, void* tensor, const Lines& run) {
                      move_elements(tensor, {run.line, run.step}, tile, {pitch, 1}, run.count,
                                    run.length, t.element);
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
    if (side == Side::channels || !call_.stream) return narrow_line(to, from, element, n);
    if (element != Element::f32) narrow_line(raw_, from, element, n);
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

  // Returns rows to read: in place if they can be used there, otherwise copied to `buffer`.
  StridedRows<const float> load(const GroupNormTensor& t, const Region& at, Buffer& to) {
    if (is_usable(t, at)) return {static_cast<const float*>(address_of(t, at)), at.columns};
    gather(t, at, to.values, pitch(at));
    return {to.values, pitch(at)};
  }

  // Returns rows to write: the memory itself, or `buffer` for store().
  StridedRows<float> target(const GroupNormTensor& t, const Region& at, Buffer& buffer) const {
    if (is_usable(t, at)) {
      auto* const there = static_cast<float*>(address_of(t, at));
      const bool lines = (reinterpret_cast<uintptr_t>(there) & 63) == 0;
      if (!call_.stream || lines) return {there, at.columns, call_.stream};
    }
    return {buffer.values, pitch(at)};
  }

  void store(const GroupNormTensor& t, const Region& at, const StridedRows<float>& rows) {
    if (is_usable(t, at) && rows.first == address_of(t, at)) return;
    scatter(t, at, rows.first, rows.step);
  }

 private:
  // One row of whole blocks of lanes can be used where it lies.
  static bool is_usable(const GroupNormTensor& t, const Region& at) {
    return t.element == Element::f32 && t.side == Side::positions && at.rows == 1 &&
           at.columns % kLanes == 0;
  }
  static int64_t pitch(const Region& at) {
    return round_up(at.columns, kLanes) + (at.rows == 1 ? 0 : kSkew);
  }
};

}  // namespace
}  // namespace openaclnn::OPENACLNN_ISA
