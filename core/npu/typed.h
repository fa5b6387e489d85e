// SPDX-License-Identifier: Apache-2.0
// How operators by type reach those that ATen computes, which are in a library of their own,
// compiled by the user: a C function and plain data.
#pragma once

#include <cstdint>

namespace openaclnn::npu {

constexpr const char* kTypedFunction = "openaclnn_aten_by_type";

// A text, or numbers, one unless it is a list.
struct TypedAttribute {
  const char* name;
  const char* text;
  const int64_t* integers;
  const double* reals;
  uint64_t count;
};

// Tensors are handles of aclTensor, NULL for one that is left out.
struct TypedCall {
  const char* type;
  const void* const* inputs;
  int input_count;
  const void* const* outputs;
  int output_count;
  const TypedAttribute* attributes;
  int attribute_count;
};

// -1 for a type that is not there, else what the two phases return.
using RunTyped = int32_t (*)(const TypedCall* call, void* stream);

}  // namespace openaclnn::npu
