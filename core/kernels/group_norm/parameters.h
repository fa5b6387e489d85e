// SPDX-License-Identifier: Apache-2.0
// dgamma and dbeta are added up from the sums of sample blocks or, when groups are split, of
// samples.
#pragma once

#include "core/kernels/group_norm/partition.h"

namespace openaclnn::OPENACLNN_ISA {
namespace {

inline constexpr int64_t kParameters = 256;  // that are added up at a time

// total(parts, first, n, totals) adds up the `parts` of channels [first, first + n).
template <class Total>
inline void combine_parameters(const GroupNormCall& call, void* workspace, int64_t begin,
                               int64_t end, const Total& total) {
  const auto combine = [&](const GroupNormParameter& out, uint64_t offset) {
    if (out.data == nullptr) return;
    double totals[kParameters];
    for (int64_t c = begin; c < end; c += kParameters) {
      const int64_t n = smaller(kParameters, end - c);
      total(doubles_at(workspace, offset), c, n, totals);
      store_values(out, c, n, totals);
    }
  };
  combine(call.dgamma, call.gamma_sums);
  combine(call.dbeta, call.beta_sums);
}

// Items: channels. The samples of a block are added up first.
inline void group_norm_parameter_gradients(const void* given, void* workspace, int64_t begin,
                                           int64_t end) {
  const GroupNormCall& call = group_norm_call(given);
  const auto add = [&](const double* parts, int64_t first, int64_t n, double* totals) {
    const auto add_row = [&](int64_t row, double* to) {
      const double* const sums = parts + (row * call.channels + first) * call.sum_step;
      for (int64_t i = 0; i < n; ++i) to[i] += sums[i * call.sum_step];
    };
    for (int64_t i = 0; i < n; ++i) totals[i] = 0;
    for (int64_t b = 0; b < call.sample_blocks; ++b) {
      if (call.sum_rows == call.sample_blocks) {
        add_row(b, totals);
        continue;
      }
      double block[kParameters] = {};
      const int64_t last = call.sum_rows * (b + 1) / call.sample_blocks;
      for (int64_t row = call.sum_rows * b / call.sample_blocks; row < last; ++row)
        add_row(row, block);
      for (int64_t i = 0; i < n; ++i) totals[i] += block[i];
    }
  };
  combine_parameters(call, workspace, begin, end, add);
}

}  // namespace
}  // namespace openaclnn::OPENACLNN_ISA
