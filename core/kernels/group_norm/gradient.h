// SPDX-License-Identifier: Apache-2.0
// GroupNormSwishGrad for channels of many positions. With x̂ = (x - mean) rstd, t = s (x̂ γ + β) and
// u = dy σ(t) (1 + t (1 - σ(t))), one sweep sums u and u x̂ of each channel, and the next stores dx
// = rstd (γ u - c1 - x̂ c2), where c1 and c2 are the means of γ u and γ u x̂ over the group.
#pragma once

#include "core/kernels/group_norm/gradient_inside.h"
#include "core/kernels/group_norm/gradient_rows.h"
#include "core/kernels/group_norm/slot.h"

namespace openaclnn::OPENACLNN_ISA {
namespace {

inline void with_gradient_rows(const GroupNormCall& call, void* workspace, const auto& work) {
  const bool dense = is_dense(call, call.x) && is_dense(call, call.dy) && is_dense(call, call.out);
  with_layout<GradientSweeps, InsideGradient>(call, dense, [&](auto& rows) {
    rows.lifts_in(workspace);
    work(rows);
  });
}

// Computes a whole bundle for a block of samples.
template <class Rows>
class BundleGradient {
 public:
  BundleGradient(const GroupNormCall& call, int64_t item, Rows& rows)
      : call_(call), bundle_(call, item), groups_(call), rows_(rows) {}

  void run(void* workspace, float* cache) {
    rows_.keep_in(cache, Slot::pitch(call_), bundle_.first_channel);
    for_samples(call_, bundle_, workspace,
                [&](int64_t n, double* beta, double* gamma) { sample(n, beta, gamma); });
  }

 private:
  void sample(int64_t n, double* beta, double* gamma) {
    double mean[2 * kMaxBundle] = {};
    for (int64_t c = 0; c < bundle_.channels; c += rows_.rows())
      sums({n, bundle_.first_channel + c, rows_from(c), 0}, beta, gamma, mean);
    for (int64_t g = 0; g < 2 * bundle_.groups; ++g) mean[g] /= group_size(call_);
    const int64_t step = rows_.rows();
    for (int64_t c = (bundle_.channels - 1) / step * step; c >= 0; c -= step) {
      const int64_t channel = bundle_.first_channel + c;
      const double* const means = mean_of(mean, channel);
      for (int64_t segment = segments_of(call_.positions) - 1; segment >= 0; --segment)
        rows_.input_gradient({n, channel, rows_from(c), segment}, means);
    }
  }

  void sums(Slice at, double* beta, double* gamma, double* mean) {
    double total_u[kMaxRows] = {}, total_ux[kMaxRows] = {};
    for (; at.segment < segments_of(call_.positions); ++at.segment) {
      double u[kMaxRows], ux[kMaxRows];
      rows_.sums(at, u, ux);
      for (int64_t r = 0; r < at.rows; ++r) total_u[r] += u[r], total_ux[r] += ux[r];
    }
    for (int64_t r = 0; r < at.rows; ++r) {
      const int64_t c = at.channel + r;
      const double weight = value_of(call_.gamma, c);
      beta[c] += total_u[r], gamma[c] += total_ux[r];
      double* const to = mean_of(mean, c);
      to[0] += weight * total_u[r], to[1] += weight * total_ux[r];
    }
  }

  int64_t rows_from(int64_t c) const { return least(rows_.rows(), bundle_.channels - c); }

  double* mean_of(double* mean, int64_t channel) {
    return mean + 2 * (groups_[channel] - bundle_.first_group);
  }

  const GroupNormCall& call_;
  const Bundle bundle_;
  Groups groups_;
  Rows& rows_;
};

inline void group_norm_backward(const void* given, void* workspace, int64_t begin, int64_t end) {
  const GroupNormCall& call = group_norm_call(given);
  const Slot slot(call, workspace);
  with_gradient_rows(call, workspace, [&]<class Rows>(Rows& rows) {
    for (int64_t item = begin; item < end; ++item)
      BundleGradient<Rows>(call, item, rows).run(workspace, slot.data());
  });
}

}  // namespace
}  // namespace openaclnn::OPENACLNN_ISA
