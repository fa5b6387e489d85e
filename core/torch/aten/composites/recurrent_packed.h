// SPDX-License-Identifier: Apache-2.0
// Packed sequences of recurrent layers: step t counts for the first batchSizes[t] of B sequences.
// Tensors are [T B, features] or [T, B, features], with padding.
#pragma once

#include "core/torch/aten/composites/recurrent.h"

namespace openaclnn::aten {

// [T, B, 1]: 1 for the steps of a sequence, 0 for padding. B follows from the shape of input.
inline Tensor packed_mask(const Tensor& input, const Tensor& batches) {
  check_rank(batches, "batchSizes", 1, 1);
  check_rank(input, "input", 2, 3);
  const int64_t steps = batches.size(0);
  const int64_t rows = input.dim() == 2 ? input.size(0) : input.size(0) * input.size(1);
  require_shape(steps > 0 && rows % steps == 0 && (input.dim() == 2 || input.size(0) == steps),
                "input must have ", steps, " steps, as batchSizes has, but has shape ",
                input.sizes());
  const int64_t batch = rows / steps;
  if (!batches.is_meta()) {
    const Ints sizes = numbers_in(batches, "batchSizes");
    require(sizes[0] == batch && sizes.back() > 0 && std::is_sorted(sizes.rbegin(), sizes.rend()),
            "batchSizes must go down from ", batch, " and stay above 0, but are ", sizes);
  }
  const Tensor sequences = at::arange(batch, batches.options());
  return sequences.lt(batches.unsqueeze(1)).unsqueeze(2).to(at::kFloat);
}

// x as [T, B, features], zeros in the padding whatever stands there.
inline Tensor without_padding(const Tensor& x, const Tensor& mask, const char* name) {
  check_rank(x, name, 2, 3);
  const int64_t steps = mask.size(0), batch = mask.size(1);
  if (x.dim() == 2)
    check_shape(x, name, {steps * batch, x.size(1)});
  else
    check_shape(x, name, {steps, batch, x.size(2)});
  return at::where(mask > 0, x.reshape({steps, batch, x.size(-1)}), at::zeros({}, x.options()));
}

}  // namespace openaclnn::aten
