// SPDX-License-Identifier: Apache-2.0
// A row of table.py as phase 1 sees it (what bindings see of it is in direct.h), and phase 1 as
// every C symbol and the Python binding call it.
#pragma once

#include <cstdint>
#include <string>

#include "aclnn/aclnn_base.h"
#include "core/base/executor.h"
#include "core/base/scalar.h"
#include "core/base/tensor.h"
#include "core/kernels/elementwise/call.h"
#include "core/ops/direct.h"
#include "core/support/status.h"

namespace openaclnn {

// A value for one parameter. The parameter's kind decides which member counts.
union Argument {
  const void* handle;  // unchecked, from outside
  const Tensor* tensor;
  const Scalar* scalar;
  double real;
  int64_t integer;
  bool flag;
  const char* text;
};

// Argument can't be brace-initialised by kind in a generated list without naming members; these do
// it by C type.
inline Argument argument(const void* handle) { return {.handle = handle}; }
inline Argument argument(double value) { return {.real = value}; }
inline Argument argument(int64_t value) { return {.integer = value}; }
inline Argument argument(bool value) { return {.flag = value}; }
inline Argument argument(const char* value) { return {.text = value}; }

enum class Shapes : uint8_t { same, broadcast, named };
enum class Inputs : uint8_t { promote, equal };
enum class Output : uint8_t { castable, equal };

inline constexpr int kMaxExtents = 3, kMaxSizes = 8;

// A dimension that the row names.
struct Extent {
  int8_t size;        // which of the sizes that inputs give; -1: the value of an attribute
  int8_t attribute;   // the position of that attribute
  const char* count;  // what it counts: "channels"
};

// The shape that a row gives a tensor; src/openaclnn/rows/shapes.py has the notation.
struct Form {
  Extent extents[kMaxExtents];
  int8_t extent_count;
  bool rest;    // any more dimensions follow
  bool flat;    // only the number of elements and their order count
  int8_t like;  // an input before it of the same shape; -1: none
};

// Whether the arguments and results of a row fit their arrays, and its flags come before its
// outputs.
template <int n>
constexpr bool fits(const Parameter (&parameters)[n]) {
  int outputs = 0, at = 0;
  bool in_order = true;
  for (const Parameter& parameter : parameters) {
    outputs += parameter.role == Role::output || parameter.role == Role::inout;
    in_order &= parameter.condition < at++;
  }
  return n <= kMaxParameters && outputs <= kMaxOutputs && in_order;
}

struct Operator;
using PlanFunction = Status (*)(const Operator& op, const Argument* arguments, Executor& executor);
using InferFunction = Status (*)(const Operator& op, const Argument* arguments, int output,
                                 aclDataType* dtype, Dims* shape);
using RuleFunction = Status (*)(const Operator& op, const Argument* arguments);

struct Operator : Row {
  Shapes shapes;
  const Form* forms;  // of each parameter, where sizes are named
  Inputs inputs;
  Output output;
  PlanFunction plan;
  InferFunction infer;
  FormulaId formula;
  const RuleFunction* rules;  // ends with nullptr

  // The position of a parameter, which must exist.
  int find(const char* parameter) const;
};

extern const Operator* const operators[];  // in the order of table.py
extern const int operator_count;

// Phase 1 for tensors and scalars that are known to be alive, as the Python binding calls it.
Status plan(const Operator& op, const Argument* arguments, Executor& executor);

// Returns the dtype and shape of an output that the caller has not made yet. Outputs among the
// arguments may be NULL.
Status infer(const Operator& op, const Argument* arguments, int output, aclDataType* dtype,
             Dims* shape);
Status infer(const Operator& op, const Argument* arguments, int output, aclDataType* dtype,
             Dims* shape, int product);

// Phase 1 on a product, of a call that will not run.
Status dry_plan(const Operator& op, const Argument* arguments, int product);

// Phase 1 as the C symbols do it: arguments hold handles from outside.
aclnnStatus plan_call(const Operator& op, Argument* arguments, uint64_t* workspace_size,
                      aclOpExecutor** executor);

// Phase 2 as the C symbols do it.
aclnnStatus run_call(const Operator& op, void* workspace, uint64_t workspace_size,
                     aclOpExecutor* executor, void* stream);

}  // namespace openaclnn
