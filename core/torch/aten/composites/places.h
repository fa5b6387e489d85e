// SPDX-License-Identifier: Apache-2.0
// Rows by their places, where places outside are no rows: -1, and tokens that were dropped.
#pragma once

#include "core/torch/aten/composites/quantised.h"

namespace openaclnn::aten {

// Equal ones keep their order.
inline Tensor stable_order(const Tensor& keys, bool descending = false) {
  return std::get<1>(at::sort(keys, std::optional<bool>(true), -1, descending));
}

inline Tensor numbers_to(int64_t count, const Tensor& like) {
  return at::arange(count, like.options().dtype(at::kLong));
}

// inverse[order] = 0, 1, 2, ...
inline Tensor inverse_of(const Tensor& order) {
  return at::empty_like(order).scatter_(0, order, numbers_to(order.numel(), order));
}

// x[places], zeros for the places outside.
inline Tensor rows_at(const Tensor& x, const Tensor& places) {
  check_rank(x, "the tensor of rows", 2, 2);
  const int64_t rows = x.size(0);
  if (rows == 0) return at::zeros({places.numel(), x.size(1)}, x.options());
  const Tensor found = select_rows(x, at::clamp(places, 0, rows - 1));
  const Tensor inside = (places >= 0).bitwise_and(places < rows);
  if (!inside.is_meta() && inside.all().item<bool>()) return found;
  return choose(inside.unsqueeze(1), found, at::zeros({}, found.options()));
}

// made[places] = x in so many rows, others zero; x at places outside is left out. Where places
// repeat, the last one counts.
inline Tensor rows_to(const Tensor& x, const Tensor& places, int64_t rows) {
  const Tensor inside = (places >= 0).bitwise_and(places < rows);
  const Tensor made = at::zeros({rows + 1, x.size(1)}, x.options());  // the last takes the outside
  made.index_copy_(0, choose(inside, places, rows), x);
  return made.slice(0, 0, rows);
}

}  // namespace openaclnn::aten
