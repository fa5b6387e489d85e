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

// sum over k of x[places[t K + k]] weights[t, k], in float: in blocks of tokens that caches hold.
inline Tensor summed_rows(const Tensor& x, const Tensor& places, const Tensor& weights,
                          int64_t choices) {
  check_rank(x, "the tensor of rows", 2, 2);
  at::ScalarType wide = at_least_float(x.slice(0, 0, 0)).scalar_type();
  Tensor w;
  if (has(weights)) {
    w = at_least_float(weights).reshape({-1, 1});
    wide = c10::promoteTypes(wide, w.scalar_type());
  }
  const int64_t tokens = places.numel() / choices, h = x.size(1);
  const Tensor made = at::empty({tokens, h}, x.options().dtype(wide));
  if (made.is_meta()) return made;
  const int64_t block =
      std::max<int64_t>(1, (int64_t{1} << 18) / std::max<int64_t>(1, choices * h));
  for (int64_t t = 0; t < tokens; t += block) {
    const int64_t end = std::min(tokens, t + block);
    Tensor rows = rows_at(x, places.slice(0, t * choices, end * choices)).to(wide);
    if (w.defined()) rows = rows * w.slice(0, t * choices, end * choices);
    made.slice(0, t, end).copy_(rows.reshape({end - t, choices, h}).sum(1));
  }
  return made;
}

// out = x[index], without a copy between where out is dense, of the same dtype and apart from x.
inline void put_rows(const Out& out, const Tensor& x, const Tensor& index) {
  const Tensor& to = out.tensor();
  const bool direct = to.defined() && !x.is_meta() && to.dim() == x.dim() && to.dim() == 2 &&
                      to.scalar_type() == x.scalar_type() && to.is_contiguous() &&
                      to.size(0) == index.numel() && to.size(1) == x.size(1) && to.numel() > 0;
  if (!direct) {
    out = select_rows(x, index);
    return;
  }
  Tensor made = to;
  at::index_select_out(made, copy_if_overlapping(x, to), 0, index);
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
