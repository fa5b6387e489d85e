// SPDX-License-Identifier: Apache-2.0
// What bindings ask the core: what a row is, whether a call is legal, what it returns, and both
// phases at once over memory that the caller describes as plain data. Bindings that other compilers
// build later (core/torch, core/jax) include this header and core/base/parameter.h, and nothing
// else of the library.
//
// How this works
//
//   table.py ──generate.py──▶ Row (one per function, in libopenaclnn) ◀── openaclnn_row, _find
//                              │
//        openaclnn_check ──────┤  phase 1 on metadata: shapes, strides, dtypes, attributes
//        openaclnn_infer ──────┤  one output that is to be made
//        openaclnn_call  ──────┘  both phases
//
// * A Row says what the function takes and returns and where its gradient comes from. Bindings
//   repeat nothing of it: PyTorch's kernels and autograd, XLA's custom calls and `_core.rows()`
//   read the same data.
// * A value for each parameter, in the order of the row, is an openaclnn_value; tensors are views.
// * openaclnn_check runs phase 1 itself, so it refuses what a call would refuse, in the same words.
//   It reads no memory: tensors may lie on another device, whose addresses it compares, and those
//   without an address are placed one behind the other, where none overlaps another. PyTorch's
//   kernels for CUDA, its fake kernels, the tracing of JAX and `openaclnn.compare` ask it; a call
//   on the CPU does not, since it plans anyway.
// * Symbolic sizes have no phase 1. Bindings infer their outputs from the shapes of the row
//   (src/openaclnn/rows/shapes.py), and the kernel checks the call when it runs.
// * A sentence has the names of C. openaclnn_python_sentence gives it those of Python.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/base/parameter.h"

namespace openaclnn {

struct Parameter {
  const char* name;
  const char* python;  // its name in Python, "x" for self; a single output is "out"
  Kind kind;
  Role role;
  bool required;
  bool companion;    // has the dtype of the first tensor or FLOAT, like all other companions
  int8_t condition;  // the flag without which an output is neither needed nor touched; -1: none
  int8_t argument;   // its position among inputs and attributes; of an output: among the outputs
};

inline constexpr int kMaxParameters = 16;
inline constexpr int kMaxOutputs = 3;

enum class From : uint8_t { incoming, value, constant, wanted, made };

// Where a parameter of the gradient row takes its value (src/openaclnn/rows/gradients.py).
struct Source {
  From from;
  int8_t parameter;  // of the row: the output, value or input it is about
  bool constant;
};

// The gradient of a row is another row.
struct Gradient {
  int row;                // its position; -1: there is no gradient
  const Source* sources;  // for each parameter of that row
  int source_count;
  uint32_t zero;         // bit i: the gradient of parameter i is zero
  uint32_t nonnegative;  // bit i: no gradient where attribute i is negative
  int only_if;           // nor where this flag is false; -1: none
};

struct Row {
  const char* name;    // "aclnnElu"
  const char* python;  // "elu"
  const Parameter* parameters;
  int parameter_count, arguments, outputs;
  bool inplace;
  bool pointwise;     // a result depends on the inputs at its place only
  uint32_t products;  // bit i: products[i] has it
  uint64_t dtypes;    // bit d: inputs may be aclDataType d, BF16 only where the product has it
  uint64_t computed;  // what the library computes: more than any product has
  Gradient gradient;
};

}  // namespace openaclnn

extern "C" {

struct openaclnn_view {
  void* data;            // of element (0, ..., 0); NULL: of openaclnn_check only
  const int64_t* shape;  // `rank` of them
  const int64_t*
      strides;  // likewise, in elements, not negative; openaclnn_check: NULL is row-major
  int32_t rank;
  int32_t dtype;  // an aclDataType
};

// What a parameter of the row receives; its kind says which member counts.
union openaclnn_value {
  const openaclnn_view* tensor;  // NULL: not given
  double real;                   // of a scalar too
  int64_t integer;               // of a flag 0 or 1
  const char* text;              // NULL: not given
};

// An output that is to be made.
struct openaclnn_made {
  int64_t shape[openaclnn::kMaxRank];
  int32_t rank;  // -1: given, not wanted, or not an output
  int32_t dtype;
};

// In the order of table.py; NULL after the last.
const openaclnn::Row* openaclnn_row(int32_t position);

// By C name, such as "aclnnElu"; NULL if unknown.
const openaclnn::Row* openaclnn_find(const char* name);

// 1 where inputs may have this aclDataType on the current product, else 0.
int32_t openaclnn_accepts(const openaclnn::Row* row, int32_t dtype);

// The dtype, rank and shape (room for kMaxRank) of an output that is yet to be made, which is NULL
// among the values.
int32_t openaclnn_infer(const openaclnn::Row* row, const openaclnn_value* values, int32_t output,
                        int32_t* dtype, int32_t* rank, int64_t* shape);

// Phase 1 on metadata. Outputs that are NULL are made; `made` has room for one for each parameter.
// `everything`: as product any, else as the current product.
int32_t openaclnn_check(const openaclnn::Row* row, const openaclnn_value* values,
                        int32_t everything, openaclnn_made* made);

// Computes. The calling thread counts as one that calls torch (core/support/parallel.h).
int32_t openaclnn_call(const openaclnn::Row* row, const openaclnn_value* values);

// Computes for XLA: on a thread that does not call torch, into memory that is new.
int32_t openaclnn_call_for_xla(const openaclnn::Row* row, const openaclnn_value* values);

// The sentence of this thread's newest failure, cut to the size; it is forgotten afterwards.
void openaclnn_take_sentence(char* text, size_t size);

// A sentence about a call of the row with Python's names of row, parameters and dtypes, cut to the
// size.
void openaclnn_python_sentence(const openaclnn::Row* row, const char* sentence, char* text,
                               size_t size);

// The aclDataType that Python calls "float32"; ACL_DT_UNDEFINED (-1) for other names.
int32_t openaclnn_dtype(const char* python);

}  // extern "C"
