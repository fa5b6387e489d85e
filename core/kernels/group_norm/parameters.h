// SPDX-License-Identifier: Apache-2.0
// The small tensors: values of parameters (gamma, beta and their gradients) and of statistics
// (mean, rstd) are read and written, and the gradients of parameters are added up.
#pragma once

#include "core/kernels/group_norm/partition.h"

namespace openaclnn::OPENACLNN_ISA {
namespace {

// Where the value of a channel or group is, and whether all values lie side by side.
inline void* place_of(const GroupNormParameter& p, int64_t channel) {
  return element_at(p.data, p.element, channel * p.stride);
}
inline void* place_of(const GroupNormStatistic& s, int64_t index) {
  int64_t offset = 0;
  for (int l = s.loops - 1; l > 0; --l) {
    offset += index % s.size[l] * s.stride[l];
    index /= s.size[l];
  }
  return element_at(s.data, s.element, offset + index * s.stride[0]);
}
inline bool side_by_side(const GroupNormParameter& p) { return p.stride == 1; }
inline bool side_by_side(const GroupNormStatistic& s) { return s.loops == 1 && s.stride[0] == 1; }

inline double value_of(const auto& of, int64_t i) {
  double value;
  widen(&value, place_of(of, i), of.element, 1);
  return value;
}
[[gnu::noinline]] inline void values_of(const auto& of, int64_t first, int64_t n, float* out) {
  if (side_by_side(of)) return widen(out, place_of(of, first), of.element, n);
  for (int64_t i = 0; i < n; ++i) out[i] = static_cast<float>(value_of(of, first + i));
}

// NaNs in `values` become the canonical NaN.
[[gnu::noinline]] inline void store_values(const auto& to, int64_t first, int64_t n,
                                           double* values) {
  for (int64_t i = 0; i < n; ++i) values[i] = canonical(values[i]);
  if (side_by_side(to)) return narrow(place_of(to, first), values, to.element, n);
  for (int64_t i = 0; i < n; ++i) narrow(place_of(to, first + i), values + i, to.element, 1);
}

inline constexpr int64_t kParameters = 256;  // that are added up at a time

// Adds n terms to sums that keep what rounding takes from them: for DOUBLE.
inline void add_terms(double* sum, double* lost, const double* terms, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    const Pair next = sum_of(sum[i], terms[i]);
    sum[i] = next.high, lost[i] += next.low;
  }
}

// Adds up dgamma and dbeta. Items: channels. The samples of a block are added up first.
inline void group_norm_parameter_gradients(const void* given, void* workspace, int64_t begin,
                                           int64_t end) {
  const GroupNormCall& call = group_norm_call(given);
  const auto combine = [&](const GroupNormParameter& out, uint64_t offset) {
    for (int64_t c = begin; c < end && out.data != nullptr; c += kParameters) {
      const int64_t n = smaller(kParameters, end - c), step = call.sum_step;
      double total[kParameters] = {}, lost[kParameters] = {};
      for (int64_t b = 0, row = 0; b < call.sample_blocks; ++b) {
        double block[kParameters] = {};
        for (const int64_t last = call.sum_rows * (b + 1) / call.sample_blocks; row < last; ++row) {
          const double* const sums =
              doubles_at(workspace, offset) + (row * call.channels + c) * step;
          for (int64_t i = 0; i < n; ++i) block[i] += sums[i * step];
        }
        add_terms(total, lost, block, n);
      }
      for (int64_t i = 0; i < n; ++i) total[i] += lost[i] == lost[i] ? lost[i] : 0;
      store_values(out, c, n, total);
    }
  };
  combine(call.dgamma, call.gamma_sums);
  combine(call.dbeta, call.beta_sums);
}

}  // namespace
}  // namespace openaclnn::OPENACLNN_ISA
