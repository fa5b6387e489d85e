// SPDX-License-Identifier: Apache-2.0
// GroupNormSwish for channels of many positions: one sweep finds the mean and variance of a group,
// the next stores y = v σ(s v) with v = (x - mean) rstd γ + β, or v itself.
#pragma once

#include "core/kernels/group_norm/forward_channels_last.h"
#include "core/kernels/group_norm/forward_rows.h"
#include "core/kernels/group_norm/sweeps.h"

namespace openaclnn::OPENACLNN_ISA {
namespace {

struct Forward {
  using Part = Moments;
  template <class Memory>
  using Rows = ForwardSweeps<Memory>;
  template <class Type>
  using ChannelsLast = ChannelsLastForward<Type>;

  // Its pair is mean and rstd in fp64.
  struct Group {
    Moments all;

    void add(const GroupNormCall&, int64_t, const Moments& channel) { all.add(channel); }
    void finish(const GroupNormCall& call, int64_t index, double* pair) const {
      pair[0] = all.mean, pair[1] = 1 / __builtin_sqrt(all.squares / all.count + call.eps);
      store_values(call.mean, index, 1, &pair[0]);
      store_values(call.rstd, index, 1, &pair[1]);
    }
  };
};

// Items: (sample, group batch).
inline void group_norm_forward(const void* given, void* workspace, int64_t begin, int64_t end) {
  const GroupNormCall& call = group_norm_call(given);
  with_sweeps<Forward, Items::group_batches>(call, workspace, [&](auto& sweeps) {
    for (int64_t item = begin; item < end; ++item) {
      const GroupBatch group_batch(call, item);
      sweep_group_batch<Forward>(call, group_batch, group_batch.outer, sweeps,
                                 [](int64_t, const Moments&) {});
    }
  });
}

}  // namespace
}  // namespace openaclnn::OPENACLNN_ISA
