// SPDX-License-Identifier: Apache-2.0
// View algebra: sizes, bounds and overlap of strided views, exact and without overflow.
#pragma once

#include <cstdint>

#include "core/base/tensor.h"

namespace openaclnn {

// The product of the dims; false when one is negative or the product passes 2^58.
bool element_count(const Dims& dims, int64_t* count);

// Element offsets from `data` of the lowest and one past the highest element; low == high for an
// empty view. False when an offset passes ±2^58.
bool element_range(const Tensor& tensor, int64_t* low, int64_t* high);

// Row-major strides of a shape whose count is known to be in range.
Dims contiguous_strides(const Dims& shape);

bool same_view(const Tensor& a,
               const Tensor& b);  // the same elements at the same addresses, in the same order

// Whether some byte belongs to an element of both. Exact, except that a search of more than ~10^5
// steps returns true.
bool views_overlap(const Tensor& a, const Tensor& b);

// What a sentence about an overlap ends with: which bytes each view spans, and how many acl has
// allocated there. Empty where it has allocated neither.
struct SpansText {
  SpansText(const char* a_name, const Tensor& a, const char* b_name, const Tensor& b);

  char text[400] = "";
};

// Whether two indices of one view reach the same element.
bool overlaps_itself(const Tensor& tensor);

// numpy's rule; false when the shapes do not broadcast.
bool broadcast_shapes(const Dims& a, const Dims& b, Dims* result);

}  // namespace openaclnn
