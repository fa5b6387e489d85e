// SPDX-License-Identifier: Apache-2.0
// Scores of attention, [B, N, S, K]: masks and biases.
#pragma once

#include <algorithm>

#include "core/torch/aten/composites/checks.h"

namespace openaclnn::aten {

// ---- masks ----

// Column - row of each pair, as [rows, columns].
inline Tensor distances(const Tensor& scores) {
  const auto options = scores.options().dtype(at::kLong);
  return at::arange(scores.size(-1), options).unsqueeze(0) -
         at::arange(scores.size(-2), options).unsqueeze(1);
}

// Returns where column - row is not in [shift - before, shift + after].
inline Tensor outside_band(const Tensor& scores, int64_t shift, int64_t before, int64_t after) {
  constexpr int64_t kFar = int64_t{1} << 40;  // no distance is as large
  const auto near = [=](int64_t tokens) { return std::clamp(tokens, -kFar, kFar); };
  const Tensor distance = distances(scores);
  return (distance > shift + near(after)).logical_or(distance < shift - near(before));
}

struct Masking {
  Tensor mask;
  int64_t sparse, before, after;
  Ints prefix;  // of each batch
};

// Returns the mask of [B, N, S, K], true: excluded; undefined: none is. Mode 0: those of the mask
// and outside the band from the upper left; 1, 5: those of the mask. The others leave the mask
// unread: 2: above the diagonal from the upper left; 3: above that from the lower right; 4: outside
// the band from there; 6: like 3, and behind the prefix.
inline Tensor left_out(const Masking& m, const Tensor& scores) {
  constexpr int64_t kAll = INT64_MAX;
  const int64_t rows = scores.size(2), columns = scores.size(3), shift = columns - rows;
  if (m.sparse < 0 || m.sparse > 6)
    throw Refusal("sparseMode must be in [0, 6], but got " + std::to_string(m.sparse));
  if (!m.mask.defined() || m.mask.numel() == 0) return {};
  if (m.sparse >= 5 && static_cast<int64_t>(m.prefix.size()) != scores.size(0))
    throw Refusal(c10::str("prefix must have a number for each of the ", scores.size(0),
                           " batches in sparseMode 5 and 6, but has ", m.prefix.size()));
  switch (m.sparse) {
    case 2: return outside_band(scores, 0, kAll, 0);
    case 3: return outside_band(scores, shift, kAll, 0);
    case 4: return outside_band(scores, shift, m.before, m.after);
    case 6: {
      const auto options = scores.options().dtype(at::kLong);
      const Tensor behind = at::arange(columns, options).unsqueeze(0) >=
                            at::tensor(m.prefix, at::kLong).to(options.device()).unsqueeze(1);
      return outside_band(scores, shift, kAll, 0).logical_and(behind.unsqueeze(1).unsqueeze(1));
    }
    default: break;
  }
  const Tensor mask = m.mask.to(at::kBool);
  if (m.sparse != 0 || (m.before >= rows && m.after >= columns)) return mask;
  return mask.logical_or(outside_band(scores, 0, m.before, m.after));
}

// ---- biases ----

struct Bias {
  Tensor pse;
  int64_t type;
  Ints q_start, kv_start;
};

inline int64_t first_or_zero(const Ints& list) { return list.empty() ? 0 : list[0]; }

// Adds the bias. Type 0: to the scaled scores; 1: before they are scaled; 2 and 3: -slope d and
// -slope sqrt(d) for the distance d, with a slope for each head.
inline Tensor scaled(const Tensor& scores, double scale, const Bias& bias) {
  if (bias.type < 0 || bias.type > 3)
    throw Refusal("pseType must be in [0, 3], but got " + std::to_string(bias.type));
  if (!bias.pse.defined() || bias.pse.numel() == 0) return scores * scale;
  Tensor pse = bias.pse.to(at::kFloat);
  const int64_t rows = scores.size(2), columns = scores.size(3);
  if (bias.type >= 2) {
    if (pse.dim() == 0 || pse.size(-1) != scores.size(1))
      throw Refusal(c10::str("pse must have a slope for each of the ", scores.size(1),
                             " heads in pseType 2 and 3, but has shape ", pse.sizes()));
    const int64_t start = first_or_zero(bias.kv_start) - first_or_zero(bias.q_start);
    const Tensor d = (distances(scores) + start).abs().to(at::kFloat);
    return scores * scale - pse.unsqueeze(-1).unsqueeze(-1) * (bias.type == 2 ? d : d.sqrt());
  }
  // The last 1024 rows of a bias of the distance alone; the columns behind the diagonal are masked.
  constexpr int64_t kCompressed = 1024;
  if (pse.dim() == 4 && pse.size(2) == kCompressed && rows > kCompressed && rows == columns) {
    const Tensor place = (distances(scores) + rows - 1).clamp(0, columns - 1);
    pse = pse.select(2, -1).index_select(-1, place.flatten()).unflatten(-1, place.sizes());
  }
  return bias.type == 1 ? (scores + pse) * scale : scores * scale + pse;
}

}  // namespace openaclnn::aten
