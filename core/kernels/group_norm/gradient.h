// SPDX-License-Identifier: Apache-2.0
// GroupNormSwishGrad for channels of many positions. With x̂ = (x - mean) rstd, t = s (x̂ γ + β) and
// u = dy σ(t) (1 + t (1 - σ(t))), one sweep sums u and u x̂ of each channel, and the next stores dx
// = rstd (γ u - c1 - x̂ c2), where c1 and c2 are the means of γ u and γ u x̂ over the group.
#pragma once

#include "core/kernels/group_norm/gradient_channels_last.h"
#include "core/kernels/group_norm/gradient_rows.h"
#include "core/kernels/group_norm/slot.h"
#include "core/kernels/group_norm/sweeps.h"

namespace openaclnn::OPENACLNN_ISA {
namespace {

struct Gradient {
  using Part = Sums;
  template <class Memory>
  using Rows = GradientSweeps<Memory>;
  template <class Type>
  using ChannelsLast = ChannelsLastGradient<Type>;

  // Its pair is c1 and c2.
  struct Group {
    Sums weighted;

    void add(const GroupNormCall& call, int64_t channel, const Sums& sums) {
      const double weight = value_of(call.gamma, channel);
      weighted.add({weight * sums.u, weight * sums.ux});
    }
    void finish(const GroupNormCall& call, int64_t, double* pair) const {
      pair[0] = weighted.u / group_size(call), pair[1] = weighted.ux / group_size(call);
    }
  };
};

// Items: (sample block, group batch).
inline void group_norm_backward(const void* given, void* workspace, int64_t begin, int64_t end) {
  const GroupNormCall& call = group_norm_call(given);
  const Slot slot(call, workspace);
  with_sweeps<Gradient, Items::group_batches>(call, workspace, [&](auto& sweeps) {
    for (int64_t item = begin; item < end; ++item) {
      const GroupBatch group_batch(call, item);
      sweeps.keep_in(slot.data(), Slot::pitch(call), group_batch.first_channel);
      for_samples(call, group_batch, workspace, [&](int64_t sample, double* beta, double* gamma) {
        sweep_group_batch<Gradient>(
            call, group_batch, sample, sweeps,
            [=](int64_t channel, const Sums& s) { beta[channel] += s.u, gamma[channel] += s.ux; });
      });
    }
  });
}

}  // namespace
}  // namespace openaclnn::OPENACLNN_ISA
