// SPDX-License-Identifier: Apache-2.0
// The call that phase 1 passes to the group norm kernels (core/ops/group_norm.cpp fills it).
//
// How this works
//
// Tensors are (samples, channels, positions); positions are the spatial dims in row-major order,
// whatever the strides. A group is a set of neighbouring channels of one sample. Both operators
// sweep twice over a group (sweeps.h), one Op each (forward.h, gradient.h):
//
//   1. sum:   Part  = sums of one channel and segment (kSegment positions)
//             Group = its Parts, added in fp64 in a fixed order --> a pair of numbers
//             forward: mean, rstd         gradient: the sums of u and u x̂
//   2. store: y or dx of every element, from the pair
//
// How work is cut into items (partition.h):
//
//   small_spatial*.h  positions < kSmallSpatial: tiles of positions × many channels
//   group batches     both sweeps of a few whole groups in one item, whose data stays in the cache
//   slices            few large groups: threads share a group. Three steps: sum, finish, store;
//                     parts and pairs are in the workspace
//
// How memory is read and written (Layout):
//
//   rows      dense.h          positions are contiguous: used in place
//   channels  channels_last.h  channels are contiguous: *_channels_last.h
//   gathered  tiles.h          any other strides and dtypes: copied to fp32 tiles
//
// Arithmetic: fp32 lanes where the fast formula holds, else fp64 for that element or piece
// (factors.h, swish.h: t outside its range; rescale.h: sums of the gradient that would leave fp32,
// multiplied by powers of 2). The order of summation depends only on the shape, so results do not
// depend on layout, threads or instruction set. double.h computes DOUBLE.
//
// The gradient keeps u = dy swish'(v) between its sweeps, in a slot of the workspace (slot.h), in
// the memory of dx (Keep), or computes it twice.
#pragma once

#include "core/kernels/element.h"

namespace openaclnn {

inline constexpr int kMaxSpatial = 6;
// The most channels that a group may have.
inline constexpr int64_t kMaxGroupChannels = 4000;
inline constexpr int kMaxGroupBatch = 64;  // groups of one work item, unless channels are short

// The order of summation depends only on the shape. Pieces of a channel's positions are summed in
// 32 fp32 lanes; the pieces of a segment, and the segments of a channel, are added in fp64.
inline constexpr int64_t kPiece = 512;
inline constexpr int64_t kMomentBlock = 512;  // … and the moments of the forward over blocks
inline constexpr int64_t kSegment = 16 * 1024;
constexpr int64_t segments_of(int64_t positions) { return (positions + kSegment - 1) / kSegment; }
// The most rows (channels of one sample) that are worked on at a time, and in a tile.
inline constexpr int64_t kMaxRows = 64, kTileRows = 16;
// Channels of fewer positions than this are summed position by position, many channels at a time.
inline constexpr int64_t kSmallSpatial = 65;
// The most elements and channels of a tile of small-spatial channels.
inline constexpr int64_t kSmallSpatialTile = 4096;
inline constexpr int64_t kSmallSpatialChannels = 1024;
// The number of channels that fill a tile. A group batch of several groups has at most that many
// channels; a larger group batch is a part of one group. The order of summation depends on this
// number.
constexpr int64_t small_spatial_channels(int64_t positions) {
  const int64_t fit = kSmallSpatialTile / positions / 8 * 8;
  return fit < kSmallSpatialChannels ? fit : kSmallSpatialChannels;
}
// A group batch of small-spatial channels is one group, or groups that fill the tile.
inline constexpr int64_t kMostChannels =
    kMaxGroupChannels > kSmallSpatialChannels ? kMaxGroupChannels : kSmallSpatialChannels;
// The gradient computes u = dy swish'(v) of a group batch, where v = x̂ γ + β (docs/numerics.md). It
// keeps u in a slot if it fits, and computes it twice if not. All slots take at most kSlotsBytes.
inline constexpr int64_t kSlotBytes = 256 * 1024;
inline constexpr int64_t kSlotsBytes = 768 * 1024;

// How the large tensors of a call are read and written: in tiles of fp32, to which they are
// gathered, or directly, where the positions of all their rows lie side by side, or their channels.
enum class Layout : uint8_t { gathered, rows, channels };

// What lies side by side in memory, where spatial dims are one loop.
enum class Side : uint8_t { neither, positions, channels };

struct GroupNormTensor {
  void* data;
  int64_t sample, channel;        // strides in elements
  int64_t position[kMaxSpatial];  // outermost loop first
  Element element;
  Side side;
};

struct GroupNormParameter {  // one value for each channel
  void* data;                // nullptr: not wanted
  int64_t stride;
  Element element;
};

struct GroupNormStatistic {  // one value for each (sample, group), in any shape
  void* data;
  int32_t loops;
  Element element;
  int64_t size[8], stride[8];
};

// Where the gradient keeps u between its two sweeps: in the memory of the dx of the same group, or
// in the memory of the last group's dx, for one group after the other.
enum class Keep : uint8_t { nowhere, in_place, cache_last_group };

struct GroupNormCall {
  GroupNormTensor x, dy, out;  // out: y or dx
  GroupNormStatistic mean, rstd;
  GroupNormParameter gamma, beta, dgamma, dbeta;
  int64_t samples, channels, groups, positions;
  int64_t spatial_size[kMaxSpatial];
  int64_t sample_blocks;           // one item sums the parameter gradients of a block of samples
  int64_t group_batch;             // groups of an item
  int64_t rows, columns;           // of a tile or, channels-last, of a slice: channels × positions
  uint64_t beta_sums, gamma_sums;  // workspace: fp64, [sum_rows][channel], sum_step apart
  int64_t sum_rows, sum_step;      // one of a sample block, or in the parts, one of a sample
  uint64_t taken, cache;  // workspace: which slots are in use, one bit each; the slots, each
                          // with room for the u of a group batch in fp32
  int32_t slots;
  uint64_t rescales;      // workspace, gradient of long channels: [sample][channel][segment], bytes
  uint64_t parts, pairs;  // workspace, when groups are split among items: the sums of
                          // [sample][channel][segment], and fp64, [sample][group][2]
  double eps;
  double wide_scale;  // swishScale, for DOUBLE
  double scale;       // the same as fp32 rounds it, but not to 0: t of an infinite v is infinite
  int32_t spatial_loops;
  bool swish;
  Layout layout;
  bool stream;  // non-temporal stores
  Keep keep;
};

using GroupNormKernel = void (*)(const void* call, void* workspace, int64_t begin, int64_t end);

// The kernels of one operator. Items: (sample or sample block, group batch), or, when groups are
// split, (sample, rows, segment), (sample, group), (sample, rows, segment).
struct GroupNormSweeps {
  GroupNormKernel whole, whole_small_spatial;
  GroupNormKernel sum, finish, store;
};

struct GroupNormKernels {
  GroupNormSweeps forward, backward;
  GroupNormKernel free_slots;           // one item
  GroupNormKernel parameter_gradients;  // channels
  // of DOUBLE tensors; items: (sample, group), (sample, group), channels
  GroupNormKernel forward_double, backward_double, parameters_double;
};

}  // namespace openaclnn
