// SPDX-License-Identifier: Apache-2.0
// The group norm kernels share the values of parameters and statistics, the groups of channels, and
// the way in which work is cut into items.
#pragma once

#include "core/kernels/group_norm/call.h"
#include "core/kernels/group_norm/lanes.h"
#include "core/kernels/group_norm/swish.h"
#include "core/kernels/tile.h"

namespace openaclnn::OPENACLNN_ISA {
namespace {

inline int64_t round_up(int64_t n, int64_t to) { return (n + to - 1) / to * to; }

// A value that fp32 cannot hold becomes NaN: then no p is usual, and the wide formula is used.
inline float fp32_or_nan(double x) {
  const bool fits = magnitude(x) <= static_cast<double>(kLargest);
  return fits ? static_cast<float>(x) : __builtin_nanf("");
}

// The difference to a mean below kHugeMean does not overflow. Two fp32 numbers hold a mean of at
// least kTinyMean to 48 bits; a mean of 0 they hold exactly.
inline constexpr float kHugeMean = 0x1p103f;
inline constexpr double kTinyMean = 0x1p-100;

// Returns the mean in fp32, or NaN where fp32 is not enough for it.
inline float high_part(double mean) {
  const double size = magnitude(mean);
  const bool lost = (size < kTinyMean) & (size > 0);
  return lost ? __builtin_nanf("") : static_cast<float>(mean);
}

// Where the value of a channel or group is, and whether all values lie side by side.
inline void* place_of(const GroupNormParameter& p, int64_t channel) {
  return element_at(p.data, p.element, channel * p.stride);
}
inline void* place_of(const GroupNormStatistic& s, int64_t index) {
  int64_t offset = 0;
  for (int l = s.loops - 1; l > 0; --l) {
    offset += index % s.size[l] * s.stride[l];
    index /= s.size[l];
  }
  return element_at(s.data, s.element, offset + index * s.stride[0]);
}

inline bool side_by_side(const GroupNormParameter& p) { return p.stride == 1; }
inline bool side_by_side(const GroupNormStatistic& s) { return s.loops == 1 && s.stride[0] == 1; }

// These functions read and write values of a parameter or statistic; as double, DOUBLE too.
template <class T = float>
inline T value_of(const auto& of, int64_t i) {
  const void* const at = place_of(of, i);
  if (__is_same(T, double) && of.element == Element::f64) return *static_cast<const T*>(at);
  return float_at(at, of.element);
}

[[gnu::noinline]] inline void values_of(const auto& of, int64_t first, int64_t n, float* out) {
  if (side_by_side(of)) return widen(out, place_of(of, first), of.element, n);
  for (int64_t i = 0; i < n; ++i) out[i] = value_of(of, first + i);
}

// NaNs in `values` become the canonical NaN.
[[gnu::noinline]] inline void store_values(const auto& to, int64_t first, int64_t n,
                                           double* values) {
  for (int64_t i = 0; i < n; ++i) values[i] = canonical(values[i]);
  if (side_by_side(to)) return narrow(place_of(to, first), values, to.element, n);
  for (int64_t i = 0; i < n; ++i) narrow(place_of(to, first + i), values + i, to.element, 1);
}

// Finds the groups of channels. Asking for channels in order costs one division for each group.
class Groups {
 public:
  explicit Groups(const GroupNormCall& call) : width_(call.channels / call.groups) {}

  int64_t operator[](int64_t channel) {
    if (channel < first_ || channel >= first_ + width_) {
      index_ = channel / width_;
      first_ = index_ * width_;
    }
    return index_;
  }

 private:
  int64_t width_, index_ = 0, first_ = 0;
};

// Work items of whole groups are group batches of one sample or block of samples.
struct GroupBatch {
  int64_t outer, first_group, groups, first_channel, channels;

  GroupBatch(const GroupNormCall& call, int64_t item) {
    const int64_t group_batches = (call.groups + call.group_batch - 1) / call.group_batch;
    const int64_t width = call.channels / call.groups;
    outer = item / group_batches;
    first_group = item % group_batches * call.group_batch;
    groups = smaller(call.group_batch, call.groups - first_group);
    first_channel = first_group * width;
    channels = groups * width;
  }
};

// The most positions of a row that are worked on at a time.
inline constexpr int64_t kMaxColumns = 1024;

// Positions [first, first + columns) of some rows, channels of one sample, within one segment: a
// slice, which is all of the segment, or a tile.
struct Region {
  int64_t sample, channel, first, rows, columns;
};

inline Region slice_at(const GroupNormCall& call, int64_t sample, int64_t channel, int64_t rows,
                       int64_t segment) {
  const int64_t first = segment * kSegment;
  return {sample, channel, first, rows, smaller(kSegment, call.positions - first)};
}

// Work items of split groups are slices.
inline Region slice_of(const GroupNormCall& call, int64_t item) {
  const int64_t segments = segments_of(call.positions);
  const int64_t row_blocks = (call.channels + call.rows - 1) / call.rows;
  const int64_t block = item / segments, channel = block % row_blocks * call.rows;
  const int64_t rows = smaller(call.rows, call.channels - channel);
  return slice_at(call, block / row_blocks, channel, rows, item % segments);
}

// Calls work(region, its first row in the slice) for the tiles of a slice, of at most as many rows
// and columns as a tile of `memory` has.
enum class Direction : uint8_t { first_to_last, last_to_first };
inline void for_regions(const Region& at, const auto& memory, Direction order, const auto& work) {
  const int64_t columns = memory.columns(), tiles = (at.columns + columns - 1) / columns;
  for (int64_t r = 0; r < at.rows; r += memory.kRows) {
    const int64_t rows = smaller(memory.kRows, at.rows - r);
    for (int64_t k = 0; k < tiles; ++k) {
      const int64_t i = (order == Direction::first_to_last ? k : tiles - 1 - k) * columns;
      work(Region{at.sample, at.channel + r, at.first + i, rows, smaller(columns, at.columns - i)},
           r);
    }
  }
}

// The offset of a position of a channel, in elements.
inline int64_t offset_of(const GroupNormCall& call, const GroupNormTensor& t, int64_t sample,
                         int64_t channel, int64_t position) {
  int64_t offset = sample * t.sample + channel * t.channel;
  for (int l = call.spatial_loops - 1; l > 0; --l) {
    offset += position % call.spatial_size[l] * t.position[l];
    position /= call.spatial_size[l];
  }
  return offset + position * t.position[0];
}

// Calls run(offset, i, count) for the runs of the innermost loop among n positions from `first` on:
// `count` positions from first + i on begin at the offset.
inline void for_runs(const GroupNormCall& call, const GroupNormTensor& t, int64_t sample,
                     int64_t channel, int64_t first, int64_t n, const auto& run) {
  const int64_t length = call.spatial_size[call.spatial_loops - 1];
  for (int64_t i = 0, count = 0; i < n; i += count) {
    count = smaller(n - i, length - (first + i) % length);
    run(offset_of(call, t, sample, channel, first + i), i, count);
  }
}

// The group of rows, counted over all samples, and the same rows of another one.
inline int64_t group_of(const GroupNormCall& call, const Region& at) {
  return at.sample * call.groups + at.channel / (call.channels / call.groups);
}
inline Region in_group(const GroupNormCall& call, Region at, int64_t group) {
  const int64_t width = call.channels / call.groups;
  at.sample = group / call.groups, at.channel = group % call.groups * width + at.channel % width;
  return at;
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

// Adds to the parameter sums of a group batch's channels, sample by sample of its block.
template <class Work>
inline void for_samples(const GroupNormCall& call, const GroupBatch& group_batch, void* workspace,
                        const Work& work) {
  double* const beta = doubles_at(workspace, call.beta_sums) + group_batch.outer * call.channels;
  double* const gamma = doubles_at(workspace, call.gamma_sums) + group_batch.outer * call.channels;
  for (int64_t c = group_batch.first_channel; c < group_batch.first_channel + group_batch.channels;
       ++c)
    beta[c] = gamma[c] = 0;
  const int64_t first = call.samples * group_batch.outer / call.sample_blocks;
  const int64_t last = call.samples * (group_batch.outer + 1) / call.sample_blocks;
  for (int64_t n = first; n < last; ++n) work(n, beta, gamma);
}

}  // namespace
}  // namespace openaclnn::OPENACLNN_ISA
