// SPDX-License-Identifier: Apache-2.0
// Products of fp32 with a large weight of 16-bit floats or integers. Tiles of the weight become
// fp32 in the cache, one after the other: as a whole they would go through memory twice.
#pragma once

#include "core/torch/aten/call.h"

namespace openaclnn::aten {

// A matrix (K, N). Integers of 4 bits are stored as bytes of two along the dim `packed`, -1 or -2.
// Integers have scales and perhaps offsets, (N) or (1, N) for all rows, or (G, N) for `group` rows
// each, 0: K / G.
struct Weight {
  Tensor stored;
  int64_t packed = 0;
  Tensor scale, offset;
  int64_t group = 0;
};

// x (weight + offset) scale, summed in fp32; x has K columns. Undefined where the tensors are
// small, of other dtypes or orders, or without data.
Tensor product_in_tiles(const Tensor& x, const Weight& weight);

// Of a row that promotes: x and weight of any rank, with the batch of a matrix product. Undefined
// likewise, and where the result is not to be summed in fp32.
Tensor promoted_product(const Tensor& x, const Tensor& weight, at::ScalarType out);

}  // namespace openaclnn::aten
