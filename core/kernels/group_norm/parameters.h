// SPDX-License-Identifier: Apache-2.0
// dgamma and dbeta are added up from the sums of sample blocks or, when groups are split, of
// segments, where the two sums of a part lie side by side.
#pragma once

#include "core/kernels/group_norm/items.h"

namespace openaclnn::OPENACLNN_ISA {
namespace {

// Stores out[channel + i] = values[i]; NaNs in `values` become the canonical NaN.
[[gnu::noinline]] inline void store_parameters(const GroupNormParameter& out, int64_t channel,
                                               double* values, int64_t n) {
  for (int64_t i = 0; i < n; ++i) values[i] = canonical(values[i]);
  if (out.stride == 1) {
    narrow(element_at(out.data, out.element, channel), values, out.element, n);
    return;
  }
  for (int64_t i = 0; i < n; ++i)
    narrow(element_at(out.data, out.element, (channel + i) * out.stride), values + i, out.element,
           1);
}

// total(parts, first, n, totals) adds up the `parts` of channels [first, first + n).
template <class Total>
inline void combine_parameters(const GroupNormCall& call, void* workspace, int64_t begin,
                               int64_t end, const Total& total) {
  constexpr int64_t kChannels = 256;
  const auto combine = [&](const GroupNormParameter& out, uint64_t offset) {
    if (out.data == nullptr) return;
    double totals[kChannels];
    for (int64_t c = begin; c < end; c += kChannels) {
      const int64_t n = least(kChannels, end - c);
      total(doubles_at(workspace, offset), c, n, totals);
      store_parameters(out, c, totals, n);
    }
  };
  combine(call.dgamma, call.gamma_sums);
  combine(call.dbeta, call.beta_sums);
}

inline void group_norm_parameter_gradients(const void* given, void* workspace, int64_t begin,
                                           int64_t end) {
  const GroupNormCall& call = group_norm_call(given);
  combine_parameters(call, workspace, begin, end,
                     [&](const double* parts, int64_t first, int64_t n, double* totals) {
                       for (int64_t i = 0; i < n; ++i) totals[i] = 0;
                       for (int64_t b = 0; b < call.sample_blocks; ++b) {
                         const double* const block = parts + b * call.channels + first;
                         for (int64_t i = 0; i < n; ++i) totals[i] += block[i];
                       }
                     });
}

inline void group_norm_split_parameter_gradients(const void* given, void* workspace, int64_t begin,
                                                 int64_t end) {
  const GroupNormCall& call = group_norm_call(given);
  const int64_t segments = segments_of(call.positions);
  const auto total_of_channel = [&](const double* parts, int64_t channel) {
    double total = 0;
    for (int64_t b = 0; b < call.sample_blocks; ++b) {
      const int64_t last = call.samples * (b + 1) / call.sample_blocks;
      double block = 0;
      for (int64_t n = call.samples * b / call.sample_blocks; n < last; ++n) {
        const double* const part = parts + 2 * segments * (n * call.channels + channel);
        double sum = 0;
        for (int64_t s = 0; s < segments; ++s) sum += part[2 * s];
        block += sum;
      }
      total += block;
    }
    return total;
  };
  combine_parameters(call, workspace, begin, end,
                     [&](const double* parts, int64_t first, int64_t n, double* totals) {
                       for (int64_t i = 0; i < n; ++i)
                         totals[i] = total_of_channel(parts, first + i);
                     });
}

}  // namespace
}  // namespace openaclnn::OPENACLNN_ISA
