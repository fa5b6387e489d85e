// SPDX-License-Identifier: Apache-2.0
// Tiles of channels × positions move between tensors of any strides and fp32 rows in L1.
#pragma once

#include "core/kernels/group_norm.h"
#include "core/kernels/transpose.h"

namespace openaclnn::OPENACLNN_ISA {
namespace {

// Channels [channel, channel + rows) of a sample at positions [first, first + columns).
struct Place {
  int64_t sample, channel, first, rows, columns;
};

inline constexpr int64_t kTileFloats = 8192;  // kTileRows × call.columns
inline constexpr int64_t kSkew = 16;  // between rows, so that they do not share the sets of L1
inline constexpr int64_t kTileRoom = kTileFloats + kTileRows * kSkew;

// Rows of fp32 that begin every `pitch` floats. Each has room for a multiple of 32 columns.
struct Rows {
  float* data;
  int64_t pitch;
  bool past = false;  // to be written with streaming stores
  float* operator[](int64_t row) const { return data + row * pitch; }
};

class Tiles {
 public:
  explicit Tiles(const GroupNormCall& call) : call_(call) {}

  // Returns rows to read: in place if they can be used there, otherwise copied to `buffer`.
  Rows load(const GroupNormTensor& t, const Place& at, float* buffer) {
    const int64_t width = round_up(at.columns, kLanes);
    if (t.element == Element::f32 && dense(t) && at.rows == 1 && width == at.columns)
      return {static_cast<float*>(address(t, at, 0)), width};
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
  Rows target(const GroupNormTensor& t, const Place& at, float* buffer) const {
    const int64_t width = round_up(at.columns, kLanes);
    if (t.element == Element::f32 && dense(t) && at.rows == 1 && width == at.columns) {
      auto* const there = static_cast<float*>(address(t, at, 0));
      const bool lines = (reinterpret_cast<uintptr_t>(there) & 63) == 0;
      if (!call_.stream || lines) return {there, width, call_.stream};
    }
    return {buffer, at.rows == 1 ? width : width + kSkew};
  }

  void store(const GroupNormTensor& t, const Place& at, const Rows& rows) {
    if (rows.data == address(t, at, 0)) return;
    if (dense(t)) {
      for (int64_t r = 0; r < at.rows; ++r) store_row(t, address(t, at, r), rows[r], at.columns);
      return;
    }
    if (channels_inside(t)) {
      const int64_t step = t.position[0];
      auto* const to = static_cast<float*>(address(t, at, 0));
      if (t.element == Element::f32) {
        transpose(to, step, rows.data, rows.pitch, at.columns, at.rows);
        return;
      }
      transpose(stage(), at.rows, rows.data, rows.pitch, at.columns, at.rows);
      for (int64_t c = 0; c < at.columns; ++c) {
        fetch_row<1>(element_at(to, t.element, (c + kAheadRows) * step),
                     at.rows * bytes_of(t.element));
        narrow(element_at(to, t.element, c * step), stage() + c * at.rows, t.element, at.rows);
      }
      return;
    }
    if (t.element == Element::f32) {
      scatter_runs(t, at, rows.data, rows.pitch);
      return;
    }
    for (int64_t r = 0; r < at.rows; ++r)
      narrow(raw_ + r * rows.pitch * 2, rows[r], t.element, at.columns);
    scatter_runs(t, at, raw_, rows.pitch);
  }

  bool dense(const GroupNormTensor& t) const { return is_dense(call_, t); }

  // The channels of a position lie side by side.
  bool channels_inside(const GroupNormTensor& t) const { return has_channels_inside(call_, t); }

  void* address(const GroupNormTensor& t, const Place& at, int64_t row) const {
    return element_at(t.data, t.element,
                      at.sample * t.sample + (at.channel + row) * t.channel +
                          (call_.spatial_loops == 1 ? at.first * t.position[0] : 0));
  }

 private:
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

  // Visits the positions in runs of the innermost loop.
  template <class Run>
  void for_runs(const GroupNormTensor& t, const Place& at, const Run& run) const {
    const int inner = call_.spatial_loops - 1;
    const int64_t length = call_.spatial_size[inner];
    for (int64_t done = 0; done < at.columns;) {
      int64_t index = at.first + done, offset = at.sample * t.sample + at.channel * t.channel;
      const int64_t start = index % length, n = least(length - start, at.columns - done);
      offset += start * t.position[inner];
      index /= length;
      for (int l = inner - 1; l >= 0; --l) {
        offset += index % call_.spatial_size[l] * t.position[l];
        index /= call_.spatial_size[l];
      }
      run(element_at(t.data, t.element, offset), Steps{t.channel, t.position[inner]}, done, n);
      done += n;
    }
  }

  void gather_runs(const GroupNormTensor& t, const Place& at, void* out, int64_t pitch) const {
    for_runs(t, at, [&](void* from, const Steps& in, int64_t done, int64_t n) {
      move(element_at(out, t.element, done), {pitch, 1}, from, in, at.rows, n, t.element);
    });
  }

  void scatter_runs(const GroupNormTensor& t, const Place& at, const void* in,
                    int64_t pitch) const {
    for_runs(t, at, [&](void* to, const Steps& out, int64_t done, int64_t n) {
      move(to, out, static_cast<const char*>(in) + done * bytes_of(t.element), {pitch, 1}, at.rows,
           n, t.element);
    });
  }

  float* stage() { return reinterpret_cast<float*>(raw_); }

  const GroupNormCall& call_;
  alignas(64) char raw_[kTileRoom * 4];
};

}  // namespace
}  // namespace openaclnn::OPENACLNN_ISA
