// SPDX-License-Identifier: Apache-2.0
// Tiles of channels × positions move between tensors of any strides and fp32 rows in L1.
#pragma once

#include "core/kernels/group_norm/dense.h"
#include "core/kernels/transpose.h"

namespace openaclnn::OPENACLNN_ISA {
namespace {

inline constexpr int64_t kTileFloats = kTileRows * kPiece;
inline constexpr int64_t kSkew = 16;  // between rows, so that they do not share the sets of L1
inline constexpr int64_t kTileRoom = kTileFloats + kTileRows * kSkew;

// Rows of fp32 in L1, with room for a multiple of 32 columns each; a tile is one row or whole
// pieces of several.
class GatheredRows {
 public:
  using Type = F32;
  using Rows = RowsOf<float>;
  struct Buffer {
    alignas(64) float values[kTileRoom];
  };

  explicit GatheredRows(const GroupNormCall& call) : call_(call) {}

  int64_t rows() const { return call_.rows; }
  int64_t columns() const { return call_.columns; }

  // Returns rows to read: in place if they can be used there, otherwise copied to `buffer`.
  RowsOf<const float> load(const GroupNormTensor& t, const Place& at, Buffer& to) {
    float* const buffer = to.values;
    const int64_t width = round_up(at.columns, kLanes);
    if (t.element == Element::f32 && dense(t) && at.rows == 1 && width == at.columns)
      return {static_cast<const float*>(address(t, at, 0)), width};
    const int64_t pitch = at.rows == 1 ? width : width + kSkew;
    if (dense(t)) {
      for (int64_t r = 0; r < at.rows; ++r) {
        const auto* from = static_cast<const char*>(address(t, at, r));
        const int64_t bytes = at.columns * bytes_of(t.element);
        for (int64_t b = 0; b < bytes; b += 64) __builtin_prefetch(from + kAheadBytes + b);
        widen(buffer + r * pitch, from, t.element, at.columns);
      }
    } else if (channels_inside(t)) {
      const auto* from = static_cast<const float*>(address(t, at, 0));
      int64_t step = t.position[0];
      if (t.element != Element::f32) {
        for (int64_t c = 0; c < at.columns; ++c) {
          fetch_row<0>(element_at(address(t, at, 0), t.element, (c + kAheadRows) * step),
                       at.rows * bytes_of(t.element));
          widen(stage() + c * at.rows, element_at(address(t, at, 0), t.element, c * step),
                t.element, at.rows);
        }
        from = stage(), step = at.rows;
      }
      transpose(buffer, pitch, from, step, at.rows, at.columns);
    } else if (t.element == Element::f32) {
      gather_runs(t, at, buffer, pitch);
    } else {
      gather_runs(t, at, raw_, pitch);
      for (int64_t r = 0; r < at.rows; ++r)
        widen(buffer + r * pitch, raw_ + r * pitch * 2, t.element, at.columns);
    }
    return {buffer, pitch};
  }

  // Returns rows to write: the memory itself, or `buffer` for store().
  Rows target(const GroupNormTensor& t, const Place& at, Buffer& buffer) const {
    const int64_t width = round_up(at.columns, kLanes);
    if (t.element == Element::f32 && dense(t) && at.rows == 1 && width == at.columns) {
      auto* const there = static_cast<float*>(address(t, at, 0));
      const bool lines = (reinterpret_cast<uintptr_t>(there) & 63) == 0;
      if (!call_.stream || lines) return {there, width, call_.stream};
    }
    return {buffer.values, at.rows == 1 ? width : width + kSkew};
  }

  void store(const GroupNormTensor& t, const Place& at, const Rows& rows) {
    if (rows.first == address(t, at, 0)) return;
    if (dense(t)) {
      for (int64_t r = 0; r < at.rows; ++r) store_row(t, address(t, at, r), rows[r], at.columns);
      return;
    }
    if (channels_inside(t)) {
      const int64_t step = t.position[0];
      auto* const to = static_cast<float*>(address(t, at, 0));
      if (t.element == Element::f32) {
        transpose(to, step, rows.first, rows.step, at.columns, at.rows);
        return;
      }
      transpose(stage(), at.rows, rows.first, rows.step, at.columns, at.rows);
      for (int64_t c = 0; c < at.columns; ++c) {
        fetch_row<1>(element_at(to, t.element, (c + kAheadRows) * step),
                     at.rows * bytes_of(t.element));
        narrow(element_at(to, t.element, c * step), stage() + c * at.rows, t.element, at.rows);
      }
      return;
    }
    if (t.element == Element::f32) {
      scatter_runs(t, at, rows.first, rows.step);
      return;
    }
    for (int64_t r = 0; r < at.rows; ++r)
      narrow(raw_ + r * rows.step * 2, rows[r], t.element, at.columns);
    scatter_runs(t, at, raw_, rows.step);
  }

 private:
  bool dense(const GroupNormTensor& t) const { return is_dense(call_, t); }
  bool channels_inside(const GroupNormTensor& t) const { return has_channels_inside(call_, t); }

  void* address(const GroupNormTensor& t, const Place& at, int64_t row) const {
    return element_at(t.data, t.element,
                      at.sample * t.sample + (at.channel + row) * t.channel +
                          (call_.spatial_loops == 1 ? at.first * t.position[0] : 0));
  }

  void store_row(const GroupNormTensor& t, void* to, const float* from, int64_t n) {
    if (t.element == Element::f32) {
      call_.stream ? stream_copy(to, from, n * 4) : void(std::memcpy(to, from, n * 4));
    } else if (call_.stream) {
      narrow(raw_, from, t.element, n);
      stream_copy(to, raw_, n * bytes_of(t.element));
    } else {
      narrow(to, from, t.element, n);
    }
  }

  void gather_runs(const GroupNormTensor& t, const Place& at, void* out, int64_t pitch) const {
    const Steps in{t.channel, t.position[call_.spatial_loops - 1]};
    for_runs(call_, t, at.sample, at.channel, at.first, at.columns,
             [&](int64_t offset, int64_t i, int64_t n) {
               move(element_at(out, t.element, i), {pitch, 1},
                    element_at(t.data, t.element, offset), in, at.rows, n, t.element);
             });
  }

  void scatter_runs(const GroupNormTensor& t, const Place& at, const void* in,
                    int64_t pitch) const {
    const Steps out{t.channel, t.position[call_.spatial_loops - 1]};
    for_runs(call_, t, at.sample, at.channel, at.first, at.columns,
             [&](int64_t offset, int64_t i, int64_t n) {
               move(element_at(t.data, t.element, offset), out,
                    static_cast<const char*>(in) + i * bytes_of(t.element), {pitch, 1}, at.rows, n,
                    t.element);
             });
  }

  float* stage() { return reinterpret_cast<float*>(raw_); }

  const GroupNormCall& call_;
  alignas(64) char raw_[kTileRoom * 4];
};

// Calls work(sweeps) with sweeps that read and write the large tensors in their layout, `dense` or
// not.
template <template <class> class Sweeps, template <class> class Inside>
inline void with_layout(const GroupNormCall& call, bool dense, const auto& work) {
  if (call.inside || (dense && call.rows == 1)) {
    with_type(call.x.element, [&]<class Type>(Type) {
      if (call.inside) {
        Inside<Type> sweeps(call);
        work(sweeps);
      } else {
        Sweeps<DirectRows<Type>> sweeps(call);
        work(sweeps);
      }
    });
  } else {
    Sweeps<GatheredRows> sweeps(call);
    work(sweeps);
  }
}

}  // namespace
}  // namespace openaclnn::OPENACLNN_ISA
