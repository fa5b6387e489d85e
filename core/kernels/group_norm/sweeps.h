// SPDX-License-Identifier: Apache-2.0
// Both operators sweep over a group twice. The first sweep sums parts, each of one channel and
// segment; the second stores, and needs a pair of fp64 numbers of each group. An Op has the type of
// a Part, a Group that adds up those of its channels and makes the pair, and the sweeps in each
// layout: over Rows in some Memory, or ChannelsLast. Items are whole group batches or, where
// threads share a group, slices of it; then parts and pairs are in the workspace.
#pragma once

#include "core/kernels/group_norm/tiles.h"

namespace openaclnn::OPENACLNN_ISA {
namespace {

// Calls work(sweeps) with those of the call's layout. Only slices are channels-last.
enum class Items : uint8_t { group_batches, slices };
template <class Op, Items items>
inline void with_sweeps(const GroupNormCall& call, void* workspace, const auto& work) {
  if (call.layout == Layout::gathered) {
    typename Op::template Rows<GatheredRows> sweeps(call, workspace);
    return work(sweeps);
  }
  with_type(call.x.element, [&]<class Type>(Type) {
    if (items == Items::group_batches || call.layout == Layout::rows) {
      typename Op::template Rows<DirectRows<Type>> sweeps(call, workspace);
      work(sweeps);
    } else if constexpr (items == Items::slices) {
      typename Op::template ChannelsLast<Type> sweeps(call, workspace);
      work(sweeps);
    }
  });
}

// Computes a group batch of one sample, and calls take(channel, its sums).
template <class Op>
inline void sweep_group_batch(const GroupNormCall& call, const GroupBatch& group_batch,
                              int64_t sample, auto& sweeps, const auto& take) {
  const int64_t segments = segments_of(call.positions), step = sweeps.rows();
  const auto slice = [&](int64_t c, int64_t segment) {
    const int64_t rows = smaller(step, group_batch.channels - c);
    return slice_at(call, sample, group_batch.first_channel + c, rows, segment);
  };
  Groups groups(call);
  typename Op::Group group[kMaxGroupBatch];
  double pairs[2 * kMaxGroupBatch];
  for (int64_t g = 0; g < group_batch.groups; ++g) group[g] = {};
  for (int64_t c = 0; c < group_batch.channels; c += step) {
    typename Op::Part sums[kMaxRows], parts[kMaxRows];
    const Region first = slice(c, 0);
    for (int64_t r = 0; r < first.rows; ++r) sums[r] = {};
    for (int64_t segment = 0; segment < segments; ++segment) {
      sweeps.sum(slice(c, segment), parts);
      for (int64_t r = 0; r < first.rows; ++r) sums[r].add(parts[r]);
    }
    for (int64_t r = 0; r < first.rows; ++r) {
      const int64_t channel = first.channel + r;
      take(channel, sums[r]);
      group[groups[channel] - group_batch.first_group].add(call, channel, sums[r]);
    }
  }
  for (int64_t g = 0; g < group_batch.groups; ++g)
    group[g].finish(call, sample * call.groups + group_batch.first_group + g, pairs + 2 * g);
  // The last rows first, which are still in the cache.
  for (int64_t c = (group_batch.channels - 1) / step * step; c >= 0; c -= step) {
    const int64_t group_of_rows = groups[group_batch.first_channel + c] - group_batch.first_group;
    for (int64_t segment = segments - 1; segment >= 0; --segment)
      sweeps.store(slice(c, segment), pairs + 2 * group_of_rows);
  }
}

// ---- slices ----

// The parts of a channel of a sample, one for each segment.
template <class Op>
inline auto* parts_at(const GroupNormCall& call, void* workspace, int64_t sample, int64_t channel) {
  const int64_t row = sample * call.channels + channel;
  return reinterpret_cast<typename Op::Part*>(doubles_at(workspace, call.parts)) +
         row * segments_of(call.positions);
}

// Items: (sample, rows, segment).
template <class Op>
inline void group_norm_sum(const void* given, void* workspace, int64_t begin, int64_t end) {
  const GroupNormCall& call = group_norm_call(given);
  const int64_t segments = segments_of(call.positions);
  with_sweeps<Op, Items::slices>(call, workspace, [&](auto& sweeps) {
    for (int64_t item = begin; item < end; ++item) {
      const Region at = slice_of(call, item);
      typename Op::Part found[kMaxRows];
      sweeps.sum(at, found);
      auto* const parts =
          parts_at<Op>(call, workspace, at.sample, at.channel) + at.first / kSegment;
      for (int64_t r = 0; r < at.rows; ++r) parts[r * segments] = found[r];
    }
  });
}

// Items: (sample, group).
template <class Op>
inline void group_norm_finish(const void* given, void* workspace, int64_t begin, int64_t end) {
  const GroupNormCall& call = group_norm_call(given);
  const int64_t width = call.channels / call.groups;
  for (int64_t item = begin; item < end; ++item) {
    typename Op::Group group = {};
    for (int64_t i = 0; i < width; ++i) {
      const int64_t channel = item % call.groups * width + i;
      auto* const parts = parts_at<Op>(call, workspace, item / call.groups, channel);
      typename Op::Part sum = {};
      for (int64_t s = 0; s < segments_of(call.positions); ++s) sum.add(parts[s]);
      parts[0] = sum;  // for the parameters
      group.add(call, channel, sum);
    }
    group.finish(call, item, doubles_at(workspace, call.pairs) + 2 * item);
  }
}

// Items: (sample, rows, segment).
template <class Op>
inline void group_norm_store(const void* given, void* workspace, int64_t begin, int64_t end) {
  const GroupNormCall& call = group_norm_call(given);
  const double* const pairs = doubles_at(workspace, call.pairs);
  with_sweeps<Op, Items::slices>(call, workspace, [&](auto& sweeps) {
    for (int64_t item = begin; item < end; ++item) {
      const Region at = slice_of(call, item);
      sweeps.store(at, pairs + 2 * group_of(call, at));
    }
  });
}

}  // namespace
}  // namespace openaclnn::OPENACLNN_ISA
