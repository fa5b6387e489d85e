// SPDX-License-Identifier: Apache-2.0
// Conversion of arguments before ATen. Rows `in float`: 16-bit floats become float, or double
// beside doubles; put() rounds the results once. dense() rows: tensors become contiguous.
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

// For a composite: read-only arguments, in float and contiguous where asked.
Call prepared_for_composite(const Call& call, bool floats, bool contiguous);

}  // namespace openaclnn::aten
