// SPDX-License-Identifier: Apache-2.0
// What the group norm kernels share: values of parameters and statistics, and tiles of channels ×
// positions between any strides and fp32 rows in L1.
#pragma once

#include "core/kernels/group_norm_call.h"
#include "core/kernels/lanes.h"
#include "core/kernels/swish.h"
#include "core/kernels/tile.h"
#include "core/kernels/transpose.h"

namespace openaclnn::OPENACLNN_ISA {
namespace {

inline int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }
inline int64_t round_up(int64_t n, int64_t to) { return (n + to - 1) / to * to; }

// What fp32 cannot hold is NaN: then no comparison with kNear holds, and the wide formula is taken.
inline float fp32_or_nan(double x) {
  const bool fits = magnitude(x) <= static_cast<double>(kLargest);
  return fits ? static_cast<float>(x) : __builtin_nanf("");
}

// A difference to a mean of less than this does not overflow.
inline constexpr float kHugeMean = 0x1p103f;

inline void* element_at(void* data, Element element, int64_t index) {
  return static_cast<char*>(data) + index * bytes_of(element);
}

inline float value_of(const GroupNormParameter& p, int64_t channel) {
  float value;
  widen(&value, element_at(p.data, p.element, channel * p.stride), p.element, 1);
  return value;
}

inline void values_of(const GroupNormParameter& p, int64_t channel, int64_t n, float* out) {
  if (p.stride == 1) {
    widen(out, element_at(p.data, p.element, channel), p.element, n);
  } else {
    for (int64_t i = 0; i < n; ++i) out[i] = value_of(p, channel + i);
  }
}

inline void* place_of(const GroupNormStatistic& s, int64_t index) {
  int64_t offset = 0;
  for (int l = s.loops - 1; l > 0; --l) {
    offset += index % s.size[l] * s.stride[l];
    index /= s.size[l];
  }
  return element_at(s.data, s.element, offset + index * s.stride[0]);
}

inline float value_of(const GroupNormStatistic& s, int64_t index) {
  float value;
  widen(&value, place_of(s, index), s.element, 1);
  return value;
}

inline void store_value(const GroupNormStatistic& s, int64_t index, double value) {
  const double one = canonical(value);
  narrow(place_of(s, index), &one, s.element, 1);
}

// Channels [channel, channel + rows) of a sample at positions [first, first + columns).
struct Place {
  int64_t sample, channel, first, rows, columns;
};

inline constexpr int64_t kTileFloats = 8192;
inline constexpr int64_t kMaxColumns = 1024;
inline constexpr int64_t kMaxRows = 32;
inline constexpr int64_t kSkew = 16;  // between rows, so that they do not share the sets of L1
inline constexpr int64_t kTileRoom = kTileFloats + kMaxRows * kSkew;

// Rows of fp32 that begin every `pitch` floats; room for a multiple of 32 columns in each.
struct Rows {
  float* data;
  int64_t pitch;
  bool past = false;  // to be written with streaming stores
  float* operator[](int64_t row) const { return data + row * pitch; }
};

class Tiles {
 public:
  explicit Tiles(const GroupNormCall& call) : call_(call) {}

  // Rows to read: where they lie when they can be used there, else copied to `buffer`. After their
  // end come zeros, or copies of the first value of the last block of kBlock.
  enum class Fill { zero, first };
  Rows load(const GroupNormTensor& t, const Place& at, float* buffer, Fill fill) {
    const int64_t width = round_up(at.columns, kLanes);
    if (t.element == Element::f32 && dense(t) && at.rows == 1 && width == at.columns)
      return {static_cast<float*>(address(t, at, 0)), width};
    const int64_t pitch = at.rows == 1 ? width : width + kSkew;
    if (dense(t)) {
      for (int64_t r = 0; r < at.rows; ++r) {
        const auto* from = static_cast<const char*>(address(t, at, r));
        const int64_t bytes = at.columns * bytes_of(t.element);
        for (int64_t b = 0; b < bytes; b += 64) __builtin_prefetch(from + kAhead * 4 + b);
        widen(buffer + r * pitch, from, t.element, at.columns);
      }
    } else if (channels_inside(t)) {
      const auto* from = static_cast<const float*>(address(t, at, 0));
      int64_t step = t.position[0];
      if (t.element != Element::f32) {
        for (int64_t c = 0; c < at.columns; ++c)
          widen(stage() + c * at.rows, element_at(address(t, at, 0), t.element, c * step),
                t.element, at.rows);
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
    for (int64_t r = 0; r < at.rows; ++r) {
      float* row = buffer + r * pitch;
      for (int64_t i = at.columns; i < width; ++i)
        row[i] = fill == Fill::first ? row[at.columns / kBlock * kBlock] : 0.0f;
    }
    return {buffer, pitch};
  }

  // Rows to write: the memory itself, or `buffer` for store().
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
      for (int64_t c = 0; c < at.columns; ++c)
        narrow(element_at(to, t.element, c * step), stage() + c * at.rows, t.element, at.rows);
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

  // Element strides of position: one loop of stride 1.
  bool dense(const GroupNormTensor& t) const {
    return call_.spatial_loops == 1 && t.position[0] == 1;
  }

  // The channels of a position lie side by side.
  bool channels_inside(const GroupNormTensor& t) const {
    return call_.spatial_loops == 1 && t.channel == 1;
  }

 private:
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

  // The positions in runs of the innermost loop.
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

// n values, a multiple of kLanes, by blocks: value(i, lane) is the one with index i. `next` is what
// will be read after them.
template <class Value>
[[gnu::always_inline]] inline void store_values(float* to, int64_t n, bool past, const float* next,
                                                const Value& value) {
  for (int64_t i = 0; i < n; i += kLanes) {
    for (int k = 0; k < kLanes; k += 16) fetch(next + i + k);
    alignas(64) float block[kLanes];
    OPENACLNN_INDEPENDENT
    for (int k = 0; k < kLanes; ++k) block[k] = value(i + k, k);
    if (past) {
      stream_lines(to + i, block, sizeof block);
    } else {
      std::memcpy(to + i, block, sizeof block);
    }
  }
}

// The largest of some bits, lane by lane.
struct LargestBits {
  alignas(64) uint32_t lane[kLanes] = {};
  void see(int k, uint32_t bits) { lane[k] = lane[k] > bits ? lane[k] : bits; }
  bool at_most(uint32_t limit) const {
    uint32_t largest = 0;
    for (const uint32_t bits : lane) largest = largest > bits ? largest : bits;
    return largest <= limit;
  }
};

// Work items of whole groups: bundles of one sample or block of samples.
struct Bundle {
  int64_t outer, first_group, groups, first_channel, channels;

  Bundle(const GroupNormCall& call, int64_t item) {
    const int64_t bundles = (call.groups + call.bundle - 1) / call.bundle;
    const int64_t width = call.channels / call.groups;
    outer = item / bundles;
    first_group = item % bundles * call.bundle;
    groups = least(call.bundle, call.groups - first_group);
    first_channel = first_group * width;
    channels = groups * width;
  }
};

inline int64_t segments_of(const GroupNormCall& call) {
  return (call.positions + kSegment - 1) / kSegment;
}

// Work items of split groups: rows of one sample at the positions of one segment.
struct Slice {
  int64_t sample, channel, rows, segment;
};

inline Slice slice_of(const GroupNormCall& call, int64_t item) {
  const int64_t segments = segments_of(call);
  const int64_t row_blocks = (call.channels + call.rows - 1) / call.rows;
  const int64_t block = item / segments, channel = block % row_blocks * call.rows;
  return {block / row_blocks, channel, least(call.rows, call.channels - channel), item % segments};
}

inline const GroupNormCall& group_norm_call(const void* call) {
  return *static_cast<const GroupNormCall*>(call);
}

inline double group_size(const GroupNormCall& call) {
  return static_cast<double>(call.channels / call.groups) * static_cast<double>(call.positions);
}

inline double* doubles_at(void* workspace, uint64_t offset) {
  return reinterpret_cast<double*>(static_cast<char*>(workspace) + offset);
}

// Adds to the parameter sums of a bundle's channels, sample by sample of its block.
template <class Work>
inline void for_samples(const GroupNormCall& call, const Bundle& bundle, void* workspace,
                        const Work& work) {
  double* const beta = doubles_at(workspace, call.beta_sums) + bundle.outer * call.channels;
  double* const gamma = doubles_at(workspace, call.gamma_sums) + bundle.outer * call.channels;
  for (int64_t c = bundle.first_channel; c < bundle.first_channel + bundle.channels; ++c)
    beta[c] = gamma[c] = 0;
  const int64_t first = call.samples * bundle.outer / call.sample_blocks;
  const int64_t last = call.samples * (bundle.outer + 1) / call.sample_blocks;
  for (int64_t n = first; n < last; ++n) work(n, beta, gamma);
}

}  // namespace
}  // namespace openaclnn::OPENACLNN_ISA
