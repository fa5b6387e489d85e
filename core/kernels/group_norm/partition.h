// SPDX-License-Identifier: Apache-2.0
// How this works
//
// Tensors are (samples, channels, positions). Positions are the spatial dims in row-major order,
// whatever the strides. A group is a set of neighbouring channels of one sample:
//
//                    0                    16384                32768  positions
//           channel 0┌────────────────────┬────────────────────┬────┐
//   group 0         1│    segment 0       │    segment 1       │    │ <- a row
//                   2├─ ─ ─ ─ ─ ─ ─ ─ ─ ─ ┼ ─ ─ ─ ─ ─ ─ ─ ─ ─ ─┼ ─ ─┤
//                   3│ piece │ piece │ …  │                    │    │
//   group 1         4│       ┌──────┐     │                    │    │
//                   5│       │region│     │                    │    │
//                    └───────└──────┘─────┴────────────────────┴────┘
//   row      all positions of one channel of one sample
//   segment  up to kSegment positions of a row; its sums are a Part
//   piece    up to kPiece positions, summed in a fixed number of lanes
//   region   neighbouring positions of neighbouring rows within one segment: what a loop works on
//   tile     a copy of a region in L1, in fp32
//   batch    the whole groups of one sample that one item computes
//
// Both operators sweep twice over a group (sweeps.h): the first sweep sums Parts, from which come
// two numbers of the group, a pair; the second sweep needs the pair and stores. Each sweep has one
// body for each loop:
//
//               first sweep                    second sweep
//   forward     moments.h                      forward.h
//   gradient    gradient_bodies.h              gradient_bodies.h
//
//   loop over positions      loops.h           rows whose positions are contiguous
//   loop over channels       loops.h           positions whose channels are contiguous
//   loop of short rows       small_spatial_*.h positions × the channels of many groups, in a tile
//   any other strides are gathered (tiles.h): copied to tiles, and written back
//
// The gradient keeps u = dy swish'(v) between its sweeps: in a slot of the workspace (Slot), in
// the memory of dx (Keep), or it computes u twice.
//
// Items are batches; or, where threads share the few large groups of a call, regions of whole
// segments, in three steps: sum, finish, store. Parts and pairs are then in the workspace.
//
// Bodies are `fast`: in fp32, for groups that fp32 is enough for. `needs_exact` decides that
// between the two sweeps, from the data of the group alone; then `exact` (exact.h) computes the
// group in fp64 at once, and the second sweep leaves it out. DOUBLE tensors are `exact` throughout.
// The order of summation depends only on the shape, so results do not depend on layout, threads or
// instruction set.
#pragma once

#include "core/kernels/group_norm/call.h"
#include "core/kernels/tile.h"

namespace openaclnn::OPENACLNN_ISA {
namespace {

inline int64_t round_up(int64_t n, int64_t to) { return (n + to - 1) / to * to; }

inline const GroupNormCall& group_norm_call(const void* call) {
  return *static_cast<const GroupNormCall*>(call);
}
inline int64_t channels_of_group(const GroupNormCall& call) { return call.channels / call.groups; }
inline double group_size(const GroupNormCall& call) {
  return static_cast<double>(channels_of_group(call)) * static_cast<double>(call.positions);
}
inline double* doubles_at(void* workspace, uint64_t offset) {
  return reinterpret_cast<double*>(static_cast<char*>(workspace) + offset);
}

// Positions [first, first + columns) of rows of one sample, the first of them that of `channel`.
struct Region {
  int64_t sample, channel, first, rows, columns;
};

// A segment of some rows.
inline Region segment_of(const GroupNormCall& call, int64_t sample, int64_t channel, int64_t rows,
                         int64_t segment) {
  const int64_t first = segment * kSegment;
  return {sample, channel, first, rows, smaller(kSegment, call.positions - first)};
}
// The segment of an item, where threads share groups.
inline Region region_of(const GroupNormCall& call, int64_t item) {
  const int64_t segments = segments_of(call.positions);
  const int64_t row_blocks = (call.channels + call.rows - 1) / call.rows;
  const int64_t block = item / segments, channel = block % row_blocks * call.rows;
  const int64_t rows = smaller(call.rows, call.channels - channel);
  return segment_of(call, block / row_blocks, channel, rows, item % segments);
}

// Calls work(smaller region, its first row in `at`) for regions of at most so many rows and
// columns.
enum class Direction : uint8_t { first_to_last, last_to_first };
inline void for_regions(const Region& at, int64_t most_rows, int64_t columns, Direction order,
                        const auto& work) {
  const int64_t count = (at.columns + columns - 1) / columns;
  for (int64_t r = 0; r < at.rows; r += most_rows) {
    const int64_t rows = smaller(most_rows, at.rows - r);
    for (int64_t k = 0; k < count; ++k) {
      const int64_t i = (order == Direction::first_to_last ? k : count - 1 - k) * columns;
      work(Region{at.sample, at.channel + r, at.first + i, rows, smaller(columns, at.columns - i)},
           r);
    }
  }
}

// The group of a region, counted over all samples, and the same region of another group.
inline int64_t group_of(const GroupNormCall& call, const Region& at) {
  return at.sample * call.groups + at.channel / channels_of_group(call);
}
inline Region in_group(const GroupNormCall& call, Region at, int64_t group) {
  const int64_t width = channels_of_group(call);
  at.sample = group / call.groups, at.channel = group % call.groups * width + at.channel % width;
  return at;
}

// Calls work(g, r, end) for the groups of a region: rows [r, end) are of its group g, counted from
// the first.
inline void for_groups(const GroupNormCall& call, const Region& at, const auto& work) {
  const int64_t width = channels_of_group(call), before = at.channel % width;
  for (int64_t r = 0, g = 0; r < at.rows; ++g) {
    const int64_t end = smaller((g + 1) * width - before, at.rows);
    work(g, r, end);
    r = end;
  }
}

// The batch of an item. `outer` is a sample or a block of samples.
struct GroupBatch {
  int64_t outer, first_group, groups, first_channel, channels;

  GroupBatch(const GroupNormCall& call, int64_t item) {
    const int64_t batches = (call.groups + call.group_batch - 1) / call.group_batch;
    const int64_t width = channels_of_group(call);
    outer = item / batches;
    first_group = item % batches * call.group_batch;
    groups = smaller(call.group_batch, call.groups - first_group);
    first_channel = first_group * width;
    channels = groups * width;
  }
};

// Calls work(sample, Σ u of the parameters, Σ u x̂) for the samples of a batch's block. The sums
// have one number for each channel.
inline void for_samples(const GroupNormCall& call, const GroupBatch& batch, void* workspace,
                        const auto& work) {
  double* const beta = doubles_at(workspace, call.beta_sums) + batch.outer * call.channels;
  double* const gamma = doubles_at(workspace, call.gamma_sums) + batch.outer * call.channels;
  for (int64_t c = batch.first_channel; c < batch.first_channel + batch.channels; ++c)
    beta[c] = gamma[c] = 0;
  const int64_t first = call.samples * batch.outer / call.sample_blocks;
  const int64_t last = call.samples * (batch.outer + 1) / call.sample_blocks;
  for (int64_t n = first; n < last; ++n) work(n, beta, gamma);
}

// Calls run(offset, i, count) for the runs of the innermost loop among n positions from `first` on:
// `count` positions from first + i on begin at the offset, in elements.
inline void for_runs(const GroupNormCall& call, const GroupNormTensor& t, int64_t sample,
                     int64_t channel, int64_t first, int64_t n, const auto& run) {
  const int64_t length = call.spatial_size[call.spatial_loops - 1];
  for (int64_t i = 0, count = 0; i < n; i += count) {
    int64_t position = first + i, offset = sample * t.sample + channel * t.channel;
    count = smaller(n - i, length - position % length);
    for (int l = call.spatial_loops - 1; l > 0; --l) {
      offset += position % call.spatial_size[l] * t.position[l];
      position /= call.spatial_size[l];
    }
    run(offset + position * t.position[0], i, count);
  }
}

// Where a region of a tensor of one spatial loop begins.
inline void* address_of(const GroupNormTensor& t, const Region& at) {
  const int64_t offset = at.sample * t.sample + at.channel * t.channel + at.first * t.position[0];
  return element_at(t.data, t.element, offset);
}

}  // namespace
}  // namespace openaclnn::OPENACLNN_ISA
