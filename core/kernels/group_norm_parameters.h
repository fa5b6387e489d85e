// SPDX-License-Identifier: Apache-2.0
// dgamma and dbeta from the sums of sample blocks, or, when groups are split, of segments.
#pragma once

#include "core/kernels/group_norm.h"

namespace openaclnn::OPENACLNN_ISA {
namespace {

inline double total_of(const double* parts, int64_t n) {
  double total = 0;
  for (int64_t i = 0; i < n; ++i) total += parts[i];
  return total;
}

// out[c] = Σ parts over what comes before the channels, in order.
inline void store_parameters(const GroupNormParameter& out, int64_t channel, double* values,
                             int64_t n) {
  for (int64_t i = 0; i < n; ++i) values[i] = canonical(values[i]);
  if (out.stride == 1) {
    narrow(element_at(out.data, out.element, channel), values, out.element, n);
    return;
  }
  for (int64_t i = 0; i < n; ++i)
    narrow(element_at(out.data, out.element, (channel + i) * out.stride), values + i, out.element,
           1);
}

inline void group_norm_parameter_gradients(const void* given, void* workspace, int64_t begin,
                                           int64_t end) {
  const GroupNormCall& call = group_norm_call(given);
  const auto combine = [&](const GroupNormParameter& out, uint64_t offset) {
    if (out.data == nullptr) return;
    const double* const parts = doubles_at(workspace, offset);
    constexpr int64_t kChannels = 256;
    for (int64_t c = begin; c < end; c += kChannels) {
      double total[kChannels] = {};
      const int64_t n = least(kChannels, end - c);
      for (int64_t b = 0; b < call.sample_blocks; ++b) {
        for (int64_t i = 0; i < n; ++i) total[i] += parts[b * call.channels + c + i];
      }
      store_parameters(out, c, total, n);
    }
  };
  combine(call.dgamma, call.gamma_sums);
  combine(call.dbeta, call.beta_sums);
}

inline void group_norm_split_parameter_gradients(const void* given, void* workspace, int64_t begin,
                                                 int64_t end) {
  const GroupNormCall& call = group_norm_call(given);
  const int64_t segments = segments_of(call.positions);
  const auto combine = [&](const GroupNormParameter& out, uint64_t offset) {
    if (out.data == nullptr) return;
    const double* const parts = doubles_at(workspace, offset);
    for (int64_t c = begin; c < end; ++c) {
      double total = 0;
      for (int64_t b = 0; b < call.sample_blocks; ++b) {
        const int64_t last = call.samples * (b + 1) / call.sample_blocks;
        double block = 0;
        for (int64_t n = call.samples * b / call.sample_blocks; n < last; ++n)
          block += total_of(parts + (n * call.channels + c) * segments, segments);
        total += block;
      }
      store_parameters(out, c, &total, 1);
    }
  };
  combine(call.dgamma, call.gamma_sums);
  combine(call.dbeta, call.beta_sums);
}

}  // namespace
}  // namespace openaclnn::OPENACLNN_ISA
