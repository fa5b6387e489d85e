// SPDX-License-Identifier: Apache-2.0
// GroupNormSwish for channels of many positions: one sweep finds the mean and variance of a group,
// the next stores y = v σ(s v) with v = (x - mean) rstd γ + β, or v itself.
#pragma once

#include "core/kernels/group_norm/forward_inside.h"
#include "core/kernels/group_norm/forward_rows.h"

namespace openaclnn::OPENACLNN_ISA {
namespace {

inline void with_forward_rows(const GroupNormCall& call, const auto& work) {
  const bool dense = is_dense(call, call.x) && is_dense(call, call.out);
  with_layout<ForwardSweeps, InsideForward>(call, dense, work);
}

// Stores mean and rstd of a group, and returns them in fp64.
inline void finish_group(const GroupNormCall& call, int64_t index, const Moments& group,
                         double* pair) {
  const GroupMoments m(group.mean, group.squares, group.count, call.eps);
  store_value(call.mean, index, m.mean);
  store_value(call.rstd, index, m.rstd);
  pair[0] = m.mean, pair[1] = m.rstd;
}

// Computes a whole bundle.
template <class Rows>
class BundleForward {
 public:
  BundleForward(const GroupNormCall& call, int64_t item, Rows& rows)
      : call_(call), bundle_(call, item), groups_(call), rows_(rows) {}

  void run() {
    Moments group[kMaxBundle];
    double pairs[2 * kMaxBundle];
    for (int64_t g = 0; g < bundle_.groups; ++g) group[g] = {0, 0, 0};
    const int64_t step = rows_.rows();
    for (int64_t c = 0; c < bundle_.channels; c += step)
      moments({bundle_.outer, bundle_.first_channel + c, rows_from(c), 0}, group);
    for (int64_t g = 0; g < bundle_.groups; ++g) {
      const int64_t index = bundle_.outer * call_.groups + bundle_.first_group + g;
      finish_group(call_, index, group[g], pairs + 2 * g);
    }
    for (int64_t c = (bundle_.channels - 1) / step * step; c >= 0; c -= step) {
      const int64_t channel = bundle_.first_channel + c;
      const double* const of_rows = pairs + 2 * (groups_[channel] - bundle_.first_group);
      for (int64_t segment = segments_of(call_.positions) - 1; segment >= 0; --segment)
        rows_.normalise({bundle_.outer, channel, rows_from(c), segment}, of_rows);
    }
  }

 private:
  void moments(Slice at, Moments* group) {
    Moments channels[kMaxRows];
    for (int64_t r = 0; r < at.rows; ++r) channels[r] = {0, 0, 0};
    for (; at.segment < segments_of(call_.positions); ++at.segment) {
      Moments parts[kMaxRows];
      rows_.moments(at, parts);
      for (int64_t r = 0; r < at.rows; ++r) channels[r].add(parts[r]);
    }
    for (int64_t r = 0; r < at.rows; ++r)
      group[groups_[at.channel + r] - bundle_.first_group].add(channels[r]);
  }

  int64_t rows_from(int64_t c) const { return least(rows_.rows(), bundle_.channels - c); }

  const GroupNormCall& call_;
  const Bundle bundle_;
  Groups groups_;
  Rows& rows_;
};

inline void group_norm_forward(const void* given, void*, int64_t begin, int64_t end) {
  const GroupNormCall& call = group_norm_call(given);
  with_forward_rows(call, [&]<class Rows>(Rows& rows) {
    for (int64_t item = begin; item < end; ++item) BundleForward<Rows>(call, item, rows).run();
  });
}

}  // namespace
}  // namespace openaclnn::OPENACLNN_ISA
