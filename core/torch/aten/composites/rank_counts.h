// SPDX-License-Identifier: Apache-2.0
// Rows between a rank and the experts of all ranks.
#pragma once

#include <numeric>

#include "core/torch/aten/composites/group.h"

namespace openaclnn::aten {

// Rows for each (rank, expert), and what follows from them.
struct Counts {
  Ints of;
  int64_t ranks, experts;

  int64_t at(int64_t rank, int64_t expert) const {
    return of[static_cast<size_t>(rank * experts + expert)];
  }
  int64_t total() const { return std::accumulate(of.begin(), of.end(), int64_t{0}); }
  Ints by_rank() const {
    Ints sums;
    for (int64_t r = 0; r < ranks; ++r) {
      sums.push_back(0);
      for (int64_t e = 0; e < experts; ++e) sums.back() += at(r, e);
    }
    return sums;
  }
  Ints by_expert() const {
    Ints sums;
    for (int64_t e = 0; e < experts; ++e) {
      sums.push_back(0);
      for (int64_t r = 0; r < ranks; ++r) sums.back() += at(r, e);
    }
    return sums;
  }
  // For rows in the order (expert, rank) their places in the order (rank, expert).
  Tensor by_expert_first(const Tensor& like) const {
    if (like.is_meta()) return at::empty({total()}, like.options().dtype(at::kLong));
    Ints starts{0};
    for (const int64_t count : of) starts.push_back(starts.back() + count);
    const Tensor made = at::empty({total()}, at::kLong);
    auto* to = made.data_ptr<int64_t>();
    for (int64_t e = 0; e < experts; ++e)
      for (int64_t r = 0; r < ranks; ++r)
        for (int64_t i = 0; i < at(r, e); ++i)
          *to++ = starts[static_cast<size_t>(r * experts + e)] + i;
    return made;
  }
};

}  // namespace openaclnn::aten
