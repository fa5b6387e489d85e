// SPDX-License-Identifier: Apache-2.0
// The rows of table.py as calls from XLA see them; src/openaclnn/jax/source.py writes them as
// rows.inc when this folder is compiled.
#pragma once

#include <cstdint>

namespace openaclnn::jax {

enum class Kind : uint8_t { tensor, scalar, real, integer, flag, text };
enum class Role : uint8_t { input, output, inout, attribute };

struct Parameter {
  const char* name;  // in Python, and of the attribute of the custom call
  Kind kind;
  Role role;
  int8_t condition;  // the parameter without which an output is not made; -1: none
};

struct Row {
  const char* c_name;
  const Parameter* parameters;
  int parameter_count;
  bool pointwise;  // an element depends only on the input elements at its position
};

inline constexpr int kMaxParameters = 16;
inline constexpr int kMaxDims = 8;  // of a tensor of the library

}  // namespace openaclnn::jax
