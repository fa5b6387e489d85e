// SPDX-License-Identifier: Apache-2.0
// Operators by type that ATen computes: a C function of the backend, with plain data.
#pragma once

#include <cstdint>

namespace openaclnn {

constexpr const char* kTypedFunction = "openaclnn_aten_by_type";

// A text, a number or a list of numbers.
struct TypedAttribute {
  const char* name;
  const char* text;
  const int64_t* integers;
  const double* reals;
  uint64_t count;
};

// Tensors are handles of aclTensor; NULL: omitted.
struct TypedCall {
  const char* type;
  const void* const* inputs;
  int input_count;
  const void* const* outputs;
  int output_count;
  const TypedAttribute* attributes;
  int attribute_count;
};

// Returns -1 for a type that does not exist, else what the two phases return.
using RunTyped = int32_t (*)(const TypedCall* call, void* stream);

}  // namespace openaclnn
