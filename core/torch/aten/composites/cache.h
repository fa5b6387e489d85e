// SPDX-License-Identifier: Apache-2.0
// Caches of keys and values: where rows are in their pages.
#pragma once

#include "core/torch/aten/composites/rotary.h"

namespace openaclnn::aten {

// Elements that lie together in the format of blocks: 32 bytes.
inline int64_t block_of(const Tensor& x) { return 32 / static_cast<int64_t>(x.element_size()); }

// The pages of a cache with the rows of a page in dim 1, a view: [blocks, size, ...]. blocked: a
// page is [W / c, size, c] in memory, W the width of a row.
inline Tensor pages_of(const Tensor& cache, const char* name, bool blocked) {
  check_rank(cache, name, 4, 4);
  return blocked ? cache.transpose(1, 2) : cache;
}

// Row i of rows goes to slot i, page slot / size and row slot % size there; none where it is below
// 0.
inline void write_slots(const Tensor& pages, const Tensor& slots, const Tensor& rows,
                        const char* name) {
  const int64_t size = pages.size(1), count = pages.size(0) * size;
  require_shape(slots.numel() == rows.size(0), "there must be a slot for each of the ",
                rows.size(0), " rows of ", name, ", but there are ", slots.numel());
  require_shape(rows.numel() == 0 || rows[0].numel() * count == pages.numel(), name,
                " must have rows of ", rows.size(0) == 0 ? 0 : rows[0].numel(),
                " elements, but its pages have shape ", pages.sizes());
  if (pages.is_meta() || rows.size(0) == 0) return;
  const Tensor all = slots.flatten().to(at::kLong);
  const auto most = number_in(all.max());
  require(most < count, "slots must be below ", count, ", the rows of ", name, ", but one is ",
          most);
  const Tensor valid = at::nonzero(all >= 0).flatten();
  const Tensor used = all.index_select(0, valid);
  if (used.numel() == 0) return;
  Ints shape = pages.sizes().vec();
  shape.erase(shape.begin());
  shape[0] = used.numel();
  const Tensor values = rows.index_select(0, valid).to(pages.scalar_type()).reshape(shape);
  Tensor to = pages;
  to.index_put_({at::div(used, size, "floor"), used.remainder(size)}, values);
}

}  // namespace openaclnn::aten
