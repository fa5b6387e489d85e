// SPDX-License-Identifier: Apache-2.0
// How a call of GroupNormSwish or GroupNormSwishGrad is cut into items (core/kernels/group_norm/
// partition.h): layout, batches, workspace and steps.
#include "core/ops/group_norm_steps.h"

#include <algorithm>
#include <cstdlib>

#include "core/base/dtype.h"
#include "core/base/view.h"
#include "core/ops/isa.h"
#include "core/ops/streaming.h"
#include "core/support/parallel.h"

namespace openaclnn {
namespace {

bool interleaved(const GroupNormCall& call, const GroupNormTensor& t) {
  return t.channel != 0 && std::abs(t.position[call.spatial_loops - 1]) > std::abs(t.channel);
}

// Fewer channels than this would not fill registers.
constexpr int64_t kLeastChannelsLast = 16;

// Decides how much work one item is, so that a group stays in the cache between its sweeps. This
// never changes a result.
void fill_blocking(GroupNormCall& call, const GroupNorm& g) {
  const int64_t width = g.channels / g.groups;
  const auto size = static_cast<int64_t>(dtype_size(g.x->dtype));
  const bool some_interleaved = interleaved(call, call.x) || interleaved(call, call.out) ||
                                (g.dy != nullptr && interleaved(call, call.dy));
  call.group_batch = 1;
  if (call.positions < kSmallSpatial) {
    call.group_batch = std::max<int64_t>(1, small_spatial_channels(call.positions) / width);
  } else if (some_interleaved) {
    call.group_batch = std::clamp<int64_t>(128 / (width * size), 1,
                                           kMaxGroupBatch);  // two cache lines of each position
  }
  call.group_batch = std::min(call.group_batch, g.groups);
  const auto last = [&](const GroupNormTensor& t) {
    return t.side == Side::channels && t.position[0] >= g.channels;
  };
  const bool channels_last = some_interleaved && call.positions >= kSmallSpatial &&
                             g.channels >= kLeastChannelsLast && last(call.x) && last(call.out) &&
                             (g.dy == nullptr || last(call.dy));
  call.columns = some_interleaved ? kPiece : 2 * kPiece;  // of a tile: whole pieces
  if (channels_last) {
    call.layout = Layout::channels;
    const int64_t blocks = (g.channels + kMaxRows - 1) / kMaxRows;
    const int64_t even = (g.channels + blocks - 1) / blocks;
    call.rows = std::min((even + 31) / 32 * 32, g.channels);
    return;
  }
  const int64_t channels = call.group_batch * width,
                blocks = (channels + kTileRows - 1) / kTileRows;
  call.rows = some_interleaved ? std::min((channels + blocks - 1) / blocks, kTileRows) : 1;
  const auto dense = [](const GroupNormTensor& t) { return t.side == Side::positions; };
  const bool all = dense(call.x) && dense(call.out) && (g.dy == nullptr || dense(call.dy));
  call.layout = all && call.rows == 1 ? Layout::rows : Layout::gathered;
}

constexpr int64_t kGrain = 8 * 1024;  // elements

// Bytes of x and u of a group on which threads work together: smaller ones fit the cache of one
// core, larger ones not even the shared cache. Time with rounds over time without, by MiB of x and
// u: 1: 0.90, 2: 0.89, 4: 0.87, 8: 0.83, 16: 0.86, 32: 0.96 (gradient of 32 Mi fp32 values, 2
// threads).
constexpr int64_t kLeastRound = int64_t{1} << 20, kMostRound = int64_t{16} << 20;

// The tiles and sums of an item take up to 250 KiB of stack, including the frames below.
constexpr size_t kStack = 320 * 1024;
constexpr size_t kDoubleStack = 32 * 1024;  // four pieces of 4 KiB

// Whether dx can hold u between the sweeps.
bool can_keep(const GroupNorm& g, const GroupNormCall& call) {
  return g.backward() && g.out->dtype == ACL_FLOAT && call.out.side == Side::positions;
}

// A gradient that bypasses the cache, of groups that fit the cache: all threads work on one group
// after the other. The u of each group lies in the cache, where the dx of the last group will be,
// and dx bypasses the cache. With u in the place of each dx, whose lines are fetched first and
// written back later, 1x128x512x512 with 32 groups (fp32, 2 threads) takes 1.12 times as long; with
// u computed twice, 1.2 times.
int64_t rounds_of(const GroupNorm& g, const GroupNormCall& call) {
  if (!call.stream || !can_keep(g, call)) return 1;
  const int64_t width = g.channels / g.groups, bytes = 2 * width * call.positions * 4;
  const bool fits = bytes >= kLeastRound && bytes <= kMostRound;
  const bool dense = call.rows == 1 && call.x.position[0] == 1 && call.dy.position[0] == 1;
  const bool one_by_one = call.positions > kPiece;  // shorter rows are summed many at a time
  const bool enough_items =
      width * segments_of(call.positions) >= 2 * num_threads();  // items for all
  return fits && dense && one_by_one && enough_items ? g.samples * g.groups : 1;
}

void add_float_steps(const GroupNorm& g, GroupNormCall& call, Executor& executor) {
  const GroupNormKernels& group_norm = kernels().group_norm;
  const GroupNormSweeps& k = g.backward() ? group_norm.backward : group_norm.forward;
  const int64_t elements = g.samples * g.channels * call.positions;
  const bool few = call.positions < kSmallSpatial;
  const int64_t group_batches = (g.groups + call.group_batch - 1) / call.group_batch;
  // At most this many partial sums for each channel, so that they stay below 512 KiB.
  call.slots = 0, call.taken = call.cache = 0;
  call.sample_blocks = std::min(g.samples, std::max<int64_t>(8, 32 * 1024 / g.channels));
  const int64_t outer = g.backward() ? call.sample_blocks : g.samples;
  const auto step = [&](Kernel kernel, int64_t items, int64_t work, int64_t in_rounds = 1) {
    executor.add_step(kernel, items, std::max<int64_t>(1, kGrain * items / std::max(work, items)),
                      in_rounds);
  };
  const auto add_parameters = [&] {
    if (g.dgamma != nullptr || g.dbeta != nullptr)
      step(group_norm.parameter_gradients, g.channels, call.sum_rows * g.channels);
  };
  const int64_t threads = num_threads();
  const int64_t rounds = rounds_of(g, call);
  const int64_t parts = g.samples * g.channels * segments_of(call.positions);
  const bool split =
      call.layout == Layout::channels || rounds > 1 ||
      (!few && threads > 1 && outer * group_batches < 4 * threads && elements >= 4 * kGrain);
  if (!split) {
    if (g.backward()) {
      const uint64_t bytes = static_cast<uint64_t>(call.sample_blocks * g.channels) * 8;
      call.beta_sums = executor.book(bytes);
      call.gamma_sums = executor.book(bytes);
      const int64_t slot =
          call.group_batch * (g.channels / g.groups) * ((call.positions + 31) / 32 * 32) * 4;
      if (!few && call.keep == Keep::nowhere && slot <= kSlotBytes) {
        call.slots = static_cast<int32_t>(
            std::min({threads, outer * group_batches, kSlotsBytes / slot, int64_t{64}}));
        call.taken = executor.book(8);
        call.cache = executor.book(static_cast<uint64_t>(call.slots * slot));
        executor.add_step(group_norm.free_slots, 1, 1);
      }
    }
    step(few ? k.whole_small_spatial : k.whole, outer * group_batches, elements);
    call.sum_rows = call.sample_blocks, call.sum_step = 1;
    add_parameters();
    return;
  }
  const int64_t segments = segments_of(call.positions);
  const int64_t items = g.samples * ((g.channels + call.rows - 1) / call.rows) * segments;
  const int64_t groups = g.samples * g.groups;
  call.parts =
      executor.book(static_cast<uint64_t>(parts * (g.backward() ? kSumsBytes : kMomentsBytes)));
  call.beta_sums = call.parts, call.gamma_sums = call.parts + 8;
  call.sum_rows = g.samples, call.sum_step = 2 * segments;
  call.pairs = executor.book(static_cast<uint64_t>(groups) * 16);
  if (rounds > 1) call.keep = Keep::cache_last_group;
  step(k.sum, items, elements, rounds);
  step(k.finish, groups, parts, rounds);
  step(k.store, items, elements, rounds);
  add_parameters();
}

// DOUBLE: one group after the other.
void add_double_steps(const GroupNorm& g, GroupNormCall& call, Executor& executor) {
  const GroupNormKernels& k = kernels().group_norm;
  const int64_t elements = g.samples * g.channels * call.positions, items = g.samples * g.groups;
  const int64_t grain = std::max<int64_t>(1, kGrain / 8 * items / elements);
  if (g.backward()) {
    const auto bytes = static_cast<uint64_t>(g.samples * g.channels) * 8;
    call.beta_sums = executor.book(bytes);
    call.gamma_sums = executor.book(bytes);
    executor.add_step(k.backward_double, items, grain);
    call.sample_blocks = call.sum_rows = g.samples, call.sum_step = 1;
    if (g.dgamma != nullptr || g.dbeta != nullptr) {
      executor.add_step(k.parameter_gradients, g.channels,
                        std::max<int64_t>(1, kGrain / g.samples));
    }
  } else {
    executor.add_step(k.forward_double, items, grain);
  }
  executor.need_stack(kDoubleStack);
  executor.estimate(8 * elements);  // 4 ns an element for each of two or three sweeps
}

}  // namespace

void add_steps(const GroupNorm& g, GroupNormCall& call, Executor& executor) {
  if (g.x->dtype == ACL_DOUBLE) return add_double_steps(g, call, executor);
  fill_blocking(call, g);
  const int64_t elements = g.samples * g.channels * call.positions;
  const auto bytes = elements * static_cast<int64_t>(dtype_size(g.out->dtype));
  const bool in_place = same_view(*g.out, *g.x) || (g.dy != nullptr && same_view(*g.out, *g.dy));
  call.stream = !in_place && bytes >= streaming_threshold();
  call.keep = !call.stream && can_keep(g, call) ? Keep::in_place : Keep::nowhere;
  add_float_steps(g, call, executor);
  executor.need_stack(kStack);
  executor.estimate(elements);  // 1 ns an element: both sweeps on one thread
}

}  // namespace openaclnn
