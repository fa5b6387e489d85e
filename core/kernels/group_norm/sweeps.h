// SPDX-License-Identifier: Apache-2.0
// Both operators sweep twice over a group. The first sweep sums Parts, each of one row and segment;
// the second stores, and needs a pair of fp64 numbers of each group. An Op has the type of a Part,
// `finish`, which makes the pair from the sums of the group's channels, and the sweeps: Rows in
// some Memory, or ChannelsLast. Items are batches or, where threads share a group, segments of some
// rows; then Parts and pairs are in the workspace.
#pragma once

#include "core/kernels/group_norm/tiles.h"

namespace openaclnn::OPENACLNN_ISA {
namespace {

// The second number of a pair whose group `exact` has stored.
inline constexpr double kStoredAlready = __builtin_nan("");
inline bool is_stored(const double* pair) { return pair[1] != pair[1]; }

// Calls work(sweeps) with those of the call's layout. Only shared groups are channels-last.
enum class Items : uint8_t { batches, segments };
template <class Op, Items items>
inline void with_sweeps(const GroupNormCall& call, void* workspace, const auto& work) {
  if (call.layout == Layout::gathered) {
    typename Op::template Rows<GatheredRows> sweeps(call, workspace);
    return work(sweeps);
  }
  with_type(call.x.element, [&]<class Type>(Type) {
    if (items == Items::batches || call.layout == Layout::rows) {
      typename Op::template Rows<DirectRows<Type>> sweeps(call, workspace);
      work(sweeps);
    } else if constexpr (items == Items::segments) {
      typename Op::template ChannelsLast<Type> sweeps(call, workspace);
      work(sweeps);
    }
  });
}

// Stores a region but for the groups that are stored already. `pairs` begins with its first group.
[[gnu::noinline]] void store_region(const GroupNormCall& call, auto& sweeps, const Region& at,
                                    const double* pairs) {
  int64_t begin = 0, first = 0;  // of the rows still to be stored, and their group
  const auto store_to = [&](int64_t end) {
    if (begin != end)
      sweeps.store({at.sample, at.channel + begin, at.first, end - begin, at.columns},
                   pairs + 2 * first);
  };
  for_groups(call, at, [&](int64_t g, int64_t r, int64_t end) {
    if (is_stored(pairs + 2 * g)) store_to(r), begin = end, first = g + 1;
  });
  store_to(at.rows);
}

// Computes a batch of one sample, and calls take(channel, its sums).
template <class Op>
[[gnu::noinline]] void sweep_batch(const GroupNormCall& call, const GroupBatch& batch,
                                   int64_t sample, auto& sweeps, const auto& take) {
  const int64_t segments = segments_of(call.positions), step = sweeps.rows();
  const auto region = [&](int64_t c, int64_t segment) {
    const int64_t rows = smaller(step, batch.channels - c);
    return segment_of(call, sample, batch.first_channel + c, rows, segment);
  };
  typename Op::Part sums[kMaxGroupChannels];
  double pairs[2 * kMaxGroupBatch];
  for (int64_t c = 0; c < batch.channels; c += step) {
    sweeps.sum(region(c, 0), sums + c);
    for (int64_t segment = 1; segment < segments; ++segment) {
      typename Op::Part more[kMaxRows];
      const Region at = region(c, segment);
      sweeps.sum(at, more);
      for (int64_t r = 0; r < at.rows; ++r) sums[c + r].add(more[r]);
    }
  }
  const int64_t width = channels_of_group(call);
  for (int64_t g = 0; g < batch.groups; ++g) {
    const StridedRows<typename Op::Part> channels{sums + g * width, 1};
    Op::finish(call, sample * call.groups + batch.first_group + g, channels, pairs + 2 * g);
  }
  for (int64_t c = 0; c < batch.channels; ++c) take(batch.first_channel + c, sums[c]);
  // The last rows first, which are still in the cache.
  for (int64_t c = (batch.channels - 1) / step * step; c >= 0; c -= step) {
    for (int64_t segment = segments - 1; segment >= 0; --segment)
      store_region(call, sweeps, region(c, segment), pairs + 2 * (c / width));
  }
}

// ---- groups that threads share ----

// The Parts of a channel of a sample, one for each segment.
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
  with_sweeps<Op, Items::segments>(call, workspace, [&](auto& sweeps) {
    for (int64_t item = begin; item < end; ++item) {
      const Region at = region_of(call, item);
      typename Op::Part found[kMaxRows];
      sweeps.sum(at, found);
      auto* const parts =
          parts_at<Op>(call, workspace, at.sample, at.channel) + at.first / kSegment;
      for (int64_t r = 0; r < at.rows; ++r) parts[r * segments] = found[r];
    }
  });
}

// Items: (sample, group). The first Part of a channel becomes its sum.
template <class Op>
inline void group_norm_finish(const void* given, void* workspace, int64_t begin, int64_t end) {
  const GroupNormCall& call = group_norm_call(given);
  const int64_t width = channels_of_group(call), segments = segments_of(call.positions);
  for (int64_t item = begin; item < end; ++item) {
    const StridedRows<typename Op::Part> channels{
        parts_at<Op>(call, workspace, item / call.groups, item % call.groups * width), segments};
    for (int64_t c = 0; c < width; ++c) {
      for (int64_t s = 1; s < segments; ++s) channels[c]->add(channels[c][s]);
    }
    Op::finish(call, item, channels, doubles_at(workspace, call.pairs) + 2 * item);
  }
}

// Items: (sample, rows, segment).
template <class Op>
inline void group_norm_store(const void* given, void* workspace, int64_t begin, int64_t end) {
  const GroupNormCall& call = group_norm_call(given);
  const double* const pairs = doubles_at(workspace, call.pairs);
  with_sweeps<Op, Items::segments>(call, workspace, [&](auto& sweeps) {
    for (int64_t item = begin; item < end; ++item) {
      const Region at = region_of(call, item);
      store_region(call, sweeps, at, pairs + 2 * group_of(call, at));
    }
  });
}

// ---- between the sweeps of the gradient ----

// RAII: a slot of the workspace, if one is free.
class Slot {
 public:
  Slot(const GroupNormCall& call, void* workspace)
      : taken_(reinterpret_cast<uint64_t*>(static_cast<char*>(workspace) + call.taken)) {
    for (int i = 0; i < call.slots; ++i) {
      const uint64_t bit = uint64_t{1} << i;
      if ((__atomic_fetch_or(taken_, bit, __ATOMIC_ACQUIRE) & bit) != 0) continue;
      bit_ = bit;
      const int64_t size = call.group_batch * (call.channels / call.groups) * pitch(call);
      data_ = reinterpret_cast<float*>(static_cast<char*>(workspace) + call.cache) + i * size;
      return;
    }
  }
  ~Slot() {
    if (bit_ != 0) __atomic_fetch_and(taken_, ~bit_, __ATOMIC_RELEASE);
  }
  Slot(const Slot&) = delete;

  float* data() const { return data_; }  // rows of pitch(call)
  static int64_t pitch(const GroupNormCall& call) { return round_up(call.positions, kLanes); }

 private:
  uint64_t* taken_;
  uint64_t bit_ = 0;
  float* data_ = nullptr;
};

inline void group_norm_free_slots(const void* given, void* workspace, int64_t, int64_t) {
  const GroupNormCall& call = group_norm_call(given);
  __atomic_store_n(reinterpret_cast<uint64_t*>(static_cast<char*>(workspace) + call.taken),
                   uint64_t{0}, __ATOMIC_RELEASE);
}

}  // namespace
}  // namespace openaclnn::OPENACLNN_ISA
