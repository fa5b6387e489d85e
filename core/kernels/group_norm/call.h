// SPDX-License-Identifier: Apache-2.0
// The call that phase 1 passes to the group norm kernels. partition.h explains how they work.
#pragma once

#include "core/kernels/element.h"

namespace openaclnn {

inline constexpr int kMaxSpatial = 6;
// The most channels that a group may have.
inline constexpr int64_t kMaxGroupChannels = 4000;
inline constexpr int kMaxGroupBatch = 64;  // groups of one work item, unless channels are short

// The order of summation depends only on the shape. Pieces of a row are summed in 32 fp32 lanes, or
// for moments in 16 fp64 lanes; the pieces of a segment, and the segments of a row, are added in
// fp64.
inline constexpr int64_t kPiece = 512;
inline constexpr int64_t kSegment = 16 * 1024;
constexpr int64_t segments_of(int64_t positions) { return (positions + kSegment - 1) / kSegment; }
inline constexpr int64_t kMaxRows = 64, kTileRows = 16;  // of a region, of a tile
// Bytes of the part of a row that a segment is: its moments, or its sums of the gradient.
inline constexpr int64_t kMomentsBytes = 32, kSumsBytes = 16;
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
// The most channels of a group batch: one group, or groups that fill a small-spatial tile.
inline constexpr int64_t kMostChannels =
    kMaxGroupChannels > kSmallSpatialChannels ? kMaxGroupChannels : kSmallSpatialChannels;
// The gradient keeps u of a group batch in a slot if it fits. All slots take at most kSlotsBytes.
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
  int64_t rows, columns;           // of a tile or, channels-last, of an item: channels × positions
  uint64_t beta_sums, gamma_sums;  // workspace: fp64, [sum_rows][channel], sum_step apart
  int64_t sum_rows, sum_step;      // one of a sample block, or in the parts, one of a sample
  uint64_t taken, cache;  // workspace: which slots are in use, one bit each; the slots, each
                          // with room for the u of a group batch in fp32
  int32_t slots;
  uint64_t parts, pairs;  // workspace, when groups are split among items: the sums of
                          // [sample][channel][segment], and fp64, [sample][group][2]
  double eps;
  double scale;  // swishScale; but for DOUBLE as fp32 rounds it, and not to 0: t of an infinite v
                 // is infinite
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
  GroupNormKernel free_slots;                       // one item
  GroupNormKernel parameter_gradients;              // channels
  GroupNormKernel forward_double, backward_double;  // DOUBLE tensors; items: (sample, group)
};

}  // namespace openaclnn
