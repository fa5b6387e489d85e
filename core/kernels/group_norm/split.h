// SPDX-License-Identifier: Apache-2.0
// These kernels split groups among items, by segments of positions, with sums in the workspace.
#pragma once

#include "core/kernels/group_norm/forward.h"
#include "core/kernels/group_norm/gradient.h"
#include "core/kernels/group_norm/parameters.h"

namespace openaclnn::OPENACLNN_ISA {
namespace {

// ---- forward ----

inline Moments* moments_at(const GroupNormCall& call, void* workspace) {
  return reinterpret_cast<Moments*>(doubles_at(workspace, call.beta_sums));
}

inline void group_norm_statistics(const void* given, void* workspace, int64_t begin, int64_t end) {
  const GroupNormCall& call = group_norm_call(given);
  const int64_t segments = segments_of(call.positions);
  with_forward_rows(call, [&](auto& rows) {
    for (int64_t item = begin; item < end; ++item) {
      const Slice at = slice_of(call, item);
      Moments found[kMaxRows];
      rows.moments(at, found);
      for (int64_t r = 0; r < at.rows; ++r) {
        const int64_t to = (at.sample * call.channels + at.channel + r) * segments + at.segment;
        moments_at(call, workspace)[to] = found[r];
      }
    }
  });
}

inline void group_norm_mean_and_rstd(const void* given, void* workspace, int64_t begin,
                                     int64_t end) {
  const GroupNormCall& call = group_norm_call(given);
  const int64_t segments = segments_of(call.positions), width = call.channels / call.groups;
  for (int64_t item = begin; item < end; ++item) {
    Moments group{0, 0, 0};
    for (int64_t c = item * width; c < (item + 1) * width; ++c) {
      Moments channel{0, 0, 0};
      for (int64_t s = 0; s < segments; ++s)
        channel.add(moments_at(call, workspace)[c * segments + s]);
      group.add(channel);
    }
    finish_group(call, item, group, doubles_at(workspace, call.coefficients) + 2 * item);
  }
}

inline void group_norm_normalise(const void* given, void* workspace, int64_t begin, int64_t end) {
  const GroupNormCall& call = group_norm_call(given);
  const double* const pairs = doubles_at(workspace, call.coefficients);
  with_forward_rows(call, [&](auto& rows) {
    for (int64_t item = begin; item < end; ++item) {
      const Slice at = slice_of(call, item);
      rows.normalise(at, pairs + 2 * group_of(call, at));
    }
  });
}

// ---- gradient ----

inline void group_norm_sums(const void* given, void* workspace, int64_t begin, int64_t end) {
  const GroupNormCall& call = group_norm_call(given);
  const int64_t segments = segments_of(call.positions);
  double* const beta = doubles_at(workspace, call.beta_sums);
  double* const gamma = doubles_at(workspace, call.gamma_sums);
  with_gradient_rows(call, workspace, [&](auto& rows) {
    for (int64_t item = begin; item < end; ++item) {
      const Slice at = slice_of(call, item);
      double u[kMaxRows], ux[kMaxRows];
      rows.sums(at, u, ux);
      for (int64_t r = 0; r < at.rows; ++r) {
        const int64_t to = (at.sample * call.channels + at.channel + r) * segments + at.segment;
        beta[to] = u[r], gamma[to] = ux[r];
      }
    }
  });
}

inline void group_norm_coefficients(const void* given, void* workspace, int64_t begin,
                                    int64_t end) {
  const GroupNormCall& call = group_norm_call(given);
  const int64_t segments = segments_of(call.positions), width = call.channels / call.groups;
  const double* const beta = doubles_at(workspace, call.beta_sums);
  const double* const gamma = doubles_at(workspace, call.gamma_sums);
  double* const out = doubles_at(workspace, call.coefficients);
  for (int64_t item = begin; item < end; ++item) {
    double mean[2] = {0, 0};
    const int64_t sample = item / call.groups, first = item % call.groups * width;
    for (int64_t c = first; c < first + width; ++c) {
      const int64_t from = (sample * call.channels + c) * segments;
      const double weight = value_of(call.gamma, c);
      mean[0] += weight * total_of(beta + from, segments);
      mean[1] += weight * total_of(gamma + from, segments);
    }
    out[2 * item] = mean[0] / group_size(call), out[2 * item + 1] = mean[1] / group_size(call);
  }
}

inline void group_norm_split_gradient(const void* given, void* workspace, int64_t begin,
                                      int64_t end) {
  const GroupNormCall& call = group_norm_call(given);
  const double* const mean = doubles_at(workspace, call.coefficients);
  with_gradient_rows(call, workspace, [&](auto& rows) {
    for (int64_t item = begin; item < end; ++item) {
      const Slice at = slice_of(call, item);
      rows.input_gradient(at, mean + 2 * group_of(call, at));
    }
  });
}

}  // namespace
}  // namespace openaclnn::OPENACLNN_ISA
