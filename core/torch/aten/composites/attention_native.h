// SPDX-License-Identifier: Apache-2.0
// What the functions of native sparse attention share.
#pragma once

#include "core/torch/aten/composites/attention_chosen.h"

namespace openaclnn::aten {

// q [T, N, D], k [L, K, D], v [L, K, E].
inline void check_heads(const Tensor& q, const Tensor& k, const Tensor& v, int64_t heads) {
  for (const auto& [x, name] : {std::pair(&q, "query"), {&k, "key"}, {&v, "value"}}) {
    check_rank(*x, name, 3, 3);
    check_real(*x, name);
  }
  require(heads == q.size(1), "headNum must be the heads of query, ", q.size(1), ", but is ",
          heads);
  check_shape(k, "key", {k.size(0), k.size(1), q.size(2)});
  check_shape(v, "value", {k.size(0), k.size(1), v.size(2)});
  check_groups(heads, k.size(1));
}

// [T, N] as the statistics of a softmax, [T, N, 8].
inline Tensor eight_of_each(const Tensor& x) {
  return x.unsqueeze(-1).expand({x.size(0), x.size(1), 8});
}

// The places of the largest along the last dim, equal ones in their order.
inline Tensor stable_first(const Tensor& x, int64_t count) {
  return std::get<1>(at::sort(x, std::optional<bool>(true), -1, true)).slice(-1, 0, count);
}

}  // namespace openaclnn::aten
