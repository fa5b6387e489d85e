// SPDX-License-Identifier: Apache-2.0
// What ATen gets instead of the program's tensors. Rows `in float`: 16-bit floats as float, or as
// double beside doubles; put() rounds the results once. Rows of dense(): contiguous tensors.
#pragma once

#include <ATen/core/stack.h>

#include "core/torch/aten/call.h"

namespace openaclnn::aten {

inline bool has_16_bits(at::ScalarType dtype) {
  return dtype == at::kHalf || dtype == at::kBFloat16;
}

// Arguments that the operator changes: the program's tensor, and its copy.
using FloatCopies = std::vector<std::pair<Tensor, Tensor>>;

// double where a tensor has it, otherwise float.
at::ScalarType wide_of(const std::vector<IValue>& values);

// The tensor, or the tensors of the list, with floats of 16 bits in the wide dtype.
IValue in_float(const IValue& value, at::ScalarType wide, FloatCopies* written = nullptr);

// The tensor, or the tensors of the list, contiguous.
IValue dense(const IValue& value);

// For a composite: what the call only reads, contiguous, and in float where its row says so.
Call prepared_for_composite(const Call& call, bool floats, bool contiguous);

}  // namespace openaclnn::aten
