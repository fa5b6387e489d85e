// SPDX-License-Identifier: Apache-2.0
// The rows of table.py as the PyTorch operators see them; src/openaclnn/torch/source.py writes them
// as rows.inc when this folder is compiled.
#pragma once

#include <cstdint>

namespace openaclnn::torch {

enum class Kind : uint8_t { tensor, scalar, real, integer, flag, text };
enum class Role : uint8_t { input, output, inout, attribute };

struct Parameter {
  const char* c_name;
  const char* name;  // in Python
  Kind kind;
  Role role;
  int8_t argument;   // its position in the schema; of an output: among the outputs
  int8_t condition;  // the parameter without which an output is not made; -1: none
};

enum class From : uint8_t { incoming, value, constant, wanted, made };

// Where a parameter of the gradient row takes its value (gradients.py).
struct Source {
  From from;
  int8_t parameter;  // of the row: the output, value or input it is about
  bool constant;
};

struct Row {
  const char* c_name;
  const char* name;
  const char* schema;
  const char* out_schema;  // nullptr for in-place rows
  const Parameter* parameters;
  int parameter_count, arguments, outputs;
  bool inplace;
  bool pointwise;  // an element depends only on the input elements at its position

  // ---- the gradient; -1: none ----
  int gradient;  // a row
  const Source* sources;
  uint32_t zero;         // bit i: the gradient of parameter i is zero
  uint32_t nonnegative;  // bit i: no gradient if attribute i is negative
  int only_if;           // nor if this flag is false; -1: no such flag
  uint64_t dtypes;       // bit d: at::ScalarType d has a gradient
  const char* dtype_list;
  uint64_t extra_dtypes;  // the same for product "any"
};

extern const Row rows[];
extern const int row_count;

inline constexpr int kMaxParameters = 16;
inline constexpr int kMaxOutputs = 3;

}  // namespace openaclnn::torch
